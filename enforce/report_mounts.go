package enforce

import (
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/enforce/internal/protect"
)

// What of the promises that take mounts is open: zsbx's own files, the protected set,
// metadata, shared memory, terminals, denials in writable trees.

// self are zsbx's own files that the command can change, and what it may not
// do for their sake.
func (r *report) self(facts []protect.Fact) {
	for _, f := range facts {
		g := Gap{Name: GapOwnFiles, Kind: Core, Promise: f.Promise, Why: f.Why, Hint: f.Hint, Origin: f.Origin}
		if f.Closed {
			g.Kind = Hardening
		}
		r.add(g)
	}
}

// namespace is what is open without a mount namespace, or beside one.
func (r *report) namespace() {
	m := r.mounts
	if m.Plan == nil {
		hint := ""
		if !r.p.Caps.MountNS {
			hint = r.p.Caps.MountHint
		}
		r.protected(m.None, hint)
		r.metadata(m.None, hint)
		r.shared(m.None, hint)
	} else {
		if m.IPC != "" {
			r.ipc(m.IPC, "")
		}
		if m.Metadata != "" {
			r.metadata(m.Metadata, "")
		}
	}
	for _, d := range r.cut.Later {
		r.add(Gap{Name: GapDenyMissing, Kind: Hardening,
			Promise: "nothing new is made under the denied name " + d.Pattern,
			Why:     "what does not exist yet in a writable tree can't be covered; it is reported when the command ends",
			Origin:  d.Deny.Origin})
	}
}

// withoutLandlock names what is open beside the files on a machine without
// Landlock: whoever accepts the gap for files is told of it.
func (r *report) withoutLandlock() {
	const why = "without Landlock no mount namespace is made"
	if len(r.opts.Protect) > 0 {
		r.hardening(GapOwnFiles, "no change of zsbx's own files", why, "")
	}
	r.protected(why, "")
	r.metadata(why, "")
	r.shared(why, "")
}

// protected is the protected set without mounts.
func (r *report) protected(why, hint string) {
	if len(r.set.Mounts) > 0 {
		r.hardening(GapProtect, "no change of "+r.set.Summary(), why, hint)
	}
}

// metadata is that of files outside. There are none when / is writable.
func (r *report) metadata(why, hint string) {
	if mounts.WritableTrees(r.p.Policy.Paths) != nil {
		r.hardening(GapMetadata, "no change of mode, owner, times, attributes and flags of files outside the writable trees", why, hint)
	}
}

// shared is what a namespace would have kept apart.
func (r *report) shared(why, hint string) {
	r.ipc(why, hint)
	if mounts.OpensTerminals(r.p.Policy) {
		r.hardening(GapTerminals, "no access to the user's other terminals", why, hint)
	}
}

func (r *report) ipc(why, hint string) {
	r.hardening(GapIPC, "no shared memory, semaphores and message queues of programs outside", why, hint)
}
