package enforce

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/enforce/internal/protect"
	"github.com/zsbx/zsbx/enforce/internal/seatbelt"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
	"github.com/zsbx/zsbx/policy"
)

// Caps is what a machine can enforce. Probe finds it by asking the kernel for
// each thing, never by version numbers. The zero value can enforce nothing.
type Caps struct {
	OS string // "linux" or "macos"

	// Err says why Probe could not find out: this machine is short of
	// something (fork.ShortageOf). All else is not known then, and a plan that
	// is made of it all the same confines no command: Confine gives this error.
	Err error

	Landlock       int    // ABI version, 0 when the system calls are missing or refused
	LandlockReason string // why Landlock is 0: "not built into this kernel", "not in the lsm= list", "refused by a seccomp filter"

	Seccomp       bool   // filters can be installed without privileges
	SeccompReason string // why Seccomp is false

	SeccompNotify       bool   // a filter can hand system calls to this process, and this process can take part in them
	SeccompNotifyReason string // why SeccompNotify is false
	Answered            bool   // an outer supervisor may make connect(2) in the command's place, whatever Landlock says here

	// MountNS says that a private mount namespace can be made, with
	// CAP_SYS_ADMIN or through a user namespace. Probe assumes it where
	// nothing speaks against it: finding out for certain costs a process. The
	// start of a command proves it (see Plan.Refused), and so does
	// ProbeNamespaces.
	MountNS     bool
	MountReason string // why MountNS is false
	MountHint   string // what the machine's owner would type to have it; may be ""
	IPCReason   string // why a mount namespace comes without an IPC namespace; "" until the kernel refused one
	PidsReason  string // likewise a PID namespace
	HomeReason  string // and why no home directory can be thrown away
	Privileged  bool   // CAP_SYS_ADMIN is held

	// Orphans says that nobody ends what the command leaves running, although
	// it is not to go on: see InPlace.
	Orphans bool

	UID, GID uint32 // effective ids; the command runs with them

	Capabilities uint64 // the permitted set, as bits (capabilities(7)); 0 for an ordinary user

	Arch string // the machine's name as Go spells it: "amd64", "arm64"

	Seatbelt       bool // sandbox_init works
	SeatbeltReason string
}

// Kind tells the promises of a policy apart.
type Kind string

const (
	// Core promises are file access and whatever was asked for in so many
	// words. A command is not started when one can't be kept, unless the
	// caller accepts the Gap.
	Core Kind = "core"
	// Hardening promises come by default. A missing one is a warning.
	Hardening Kind = "hardening"
)

// Gap is a promise that cannot be kept on this machine.
type Gap struct {
	Name    string        `json:"name"` // stable, for --allow-gap: "tcp-ports", "truncate", "deny"
	Kind    Kind          `json:"kind"`
	Promise string        `json:"promise"`         // what was asked for: "only the TCP ports that are listed"
	Why     string        `json:"why"`             // what is missing: "Landlock ABI 4 (Linux 6.7) is needed, this kernel has 2"
	Hint    string        `json:"hint,omitempty"`  // what to type instead; may be ""
	Origin  policy.Origin `json:"origin,omitzero"` // who asked; zero for the defaults
}

// Layer is one means that a Plan uses, for people: "landlock", "seccomp".
type Layer struct {
	Name   string `json:"name"`
	Detail string `json:"detail"` // "ABI 7: 14 file rights, 2 network rights, signal and abstract-socket scopes"
}

// Plan is what will be enforced for one command on one machine.
type Plan struct {
	Policy *policy.Resolved
	Caps   Caps

	Landlock *landlock.Ruleset // nil when Landlock is not used
	Seccomp  *seccomp.Filter   // nil when seccomp is not used

	// Seatbelt is what the profile on macOS depends on beside the policy;
	// nil when Seatbelt is not used. A caller that has a session fills in
	// Session, and what else it knows, before Confine.
	Seatbelt *seatbelt.Options

	// Mediation is what the calling program answers for the kernel while
	// the command runs; nil when the kernel does it alone, or can't.
	Mediation *broker.Policy

	Mounts *mounts.Plan // nil when the command stays in the caller's mount namespace

	// DropCapabilities are the bits of Caps.Capabilities that the command
	// loses; 0 for an ordinary user.
	DropCapabilities uint64

	Gaps []Gap

	tmp          string // what /tmp and /var/tmp are to the command; "" where there is nothing to say
	profileRules int    // of the Seatbelt profile

	names []netip.Addr  // the machine's name servers, where the command has to find out addresses
	audit protect.Audit // what Snapshot looks at

	model    *Plan               // Options.Model
	reopened []landlock.PathRule // of the command that was confined last: what its descriptors 0 to 2 may be opened anew for
	watched  *seccomp.Filter     // with Options.Explain, what is installed in place of Seccomp
	recorder recorder            // of the command that was confined last; nil without
}

// Snapshot remembers the files of the protected set that lie in writable
// trees, and the denied names that are free. It costs about a microsecond for
// each of a few dozen paths; a glob among the denials costs a walk through the
// writable trees. It is for the time right before the command starts.
func (p *Plan) Snapshot(host *policy.Host) *protect.Snapshot { return p.audit.Snapshot(host) }

// NewPlan decides what will be enforced for r on a machine that can enforce
// caps. It is pure but for what it looks at through host: on Linux what is denied or
// protected inside the writable trees, and directories, to keep a denial inside a
// read-only one. A nil host turns such a denial into a Gap. Where this machine is too
// short of something to look, Plan.Caps.Err says so (see Noted).
func NewPlan(r *policy.Resolved, caps Caps, host *policy.Host, opts Options) *Plan {
	p := &Plan{Policy: r, Caps: caps}
	host, short := Noted(host)
	if host != nil {
		host = host.Remembering()
	}
	switch caps.OS {
	case "macos":
		p.planMacOS(host, opts)
	default:
		p.planLinux(host, opts)
	}
	p.Caps.Err = cmp.Or(p.Caps.Err, short())
	return p
}

// What a Plan is made of, by the names that callers outside use. Each has its
// room below internal.
type (
	// Mediator answers the calls that a Mediation is about.
	Mediator = broker.Broker
	// Snapshot is how the protected set was at one time.
	Snapshot = protect.Snapshot
	// Change is a file that is not as it was.
	Change = protect.Change
	// SeatbeltOptions are what a Seatbelt profile depends on beside the policy.
	SeatbeltOptions = seatbelt.Options
)

// SeatbeltProfile writes the Seatbelt profile for a policy.
func SeatbeltProfile(r *policy.Resolved, o SeatbeltOptions) (string, error) {
	return seatbelt.Profile(r, o)
}

// Confine makes the command start under the plan. On Linux it opens the
// Landlock ruleset and appends the system calls that put the restrictions on
// to c.Steps, to be made in the child between fork and exec; what was opened
// is closed by c.Cleanup. Steps that the caller wants to make unrestricted have
// to be in c.Steps before.
//
// The Mediator is nil unless the plan has a Mediation. The caller lets its Serve
// run in a goroutine of its own, before or after the command is started, and
// Closes it if the command is not started.
//
// On macOS it writes the profile for the command's terminal and the session of
// ForSession into c.Sandbox; programs that start such commands have to call
// fork.SandboxMain.
//
// Confine does not look at the gaps: ask Err first. On Linux the ruleset is
// filled by c.Commit; the command is not started when a path of the policy is no
// longer what was resolved.
func (p *Plan) Confine(c *fork.Command) (*Mediator, error) { return p.confine(c) }

// Options are choices of the caller that no policy makes.
type Options struct {
	// Accepted are gaps by name, of which these are left open where they could be
	// closed: GapProtect, GapIPC, GapTerminals; GapMetadata if it alone would take a
	// mount namespace, GapOwnFiles if a writable tree would be taken apart for it.
	Accepted []string

	// Protect are files and directories of the caller that the command must
	// never change, absolute and clean: the policy's own files, the trust
	// store, the records of sessions. They should exist.
	Protect []string

	// Watch are files and directories of the caller that can't be held. What
	// became of them is told when the command has ended.
	Watch []string

	// Repository is the root of the repository around the working directory,
	// "" for none. Where it lies in a writable tree, it is protected like one
	// near the top, however deep it is.
	Repository string

	// Hide are directories of Protect that the command has no reason to look
	// into either, such as the records of other sessions. They are covered
	// where there is a mount namespace, unless the policy names one of them,
	// or something in it; elsewhere they can be read as the policy has it.
	Hide []string

	// Explain has what the command is refused recorded: see Plan.Refusals. The
	// command has to have a keeper, and whoever starts it answers its calls.
	Explain bool

	// Model is a plan whose refusals are recorded too, though this one allows them.
	Model *Plan

	// NoLimits says why the memory, processes and processors of the policy's
	// limits can't be bounded, or "": package track finds out.
	NoLimits string
}

func (o *Options) accepts(gap string) bool { return slices.Contains(o.Accepted, gap) }

// protectRequest is what the caller wants protected.
func (o *Options) protectRequest() protect.Request {
	return protect.Request{Self: o.Protect, Watch: o.Watch, Users: !o.accepts(GapProtect), Repository: o.Repository}
}
