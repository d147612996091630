package cmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/track"
)

// plan decides what is enforced for a run.
func (o *policyFlags) plan(a *app, c *composed, r *policy.Resolved, caps enforce.Caps) *enforce.Plan {
	return enforce.NewPlanWith(r, caps, &c.host, enforce.Options{
		NoProtect:      slices.Contains(o.allowGaps, enforce.GapProtect),
		ShareTerminals: slices.Contains(o.allowGaps, enforce.GapTerminals),
		ShareIPC:       slices.Contains(o.allowGaps, enforce.GapIPC),
		LeaveMetadata:  slices.Contains(o.allowGaps, enforce.GapMetadata),
		Protect:        a.ownPaths(c, r, caps.MountNS && (caps.Privileged || !o.inPlace)),
		Hide:           a.hiddenPaths(),
		NoOwn:          slices.Contains(o.allowGaps, enforce.GapOwnFiles),
		InPlace:        o.inPlace,
		Sockets:        enforce.InheritsSockets(),
	})
}

// replan plans again after the kernel refused a namespace, and decides whether
// the command may start with the gaps that this leaves.
func (o *runFlags) replan(a *app, c *composed, old *enforce.Plan, caps enforce.Caps) (*enforce.Plan, error) {
	plan := o.plan(a, c, old.Policy, caps)
	gaps := slices.DeleteFunc(slices.Clone(plan.Gaps), func(g enforce.Gap) bool { return slices.Contains(old.Gaps, g) })
	return plan, o.acceptGaps(a, gaps)
}

// ownPaths are zsbx's own files and directories, which no command may change:
// the directory of the user's policy, the trust store, the sessions, and the
// policies in use. The directories are made where they are missing and the
// command could make them, or look into them once they are there: what does not
// exist can't be protected, and the command would write the next run's policy.
//
// The place for sessions when the first one can't be written lies in the
// directory for temporary files: it is held only with mounts, as otherwise
// nothing new could be made there.
func (a *app) ownPaths(c *composed, r *policy.Resolved, mounts bool) []string {
	var out []string
	for _, dir := range []string{a.configHome(), a.stateHome()} {
		if dir != "" {
			out = append(out, filepath.Join(dir, "zsbx"))
		}
	}
	if st, err := track.OpenStore(); err == nil && mounts {
		for _, dir := range st.Dirs()[1:] {
			out = append(out, filepath.Dir(dir))
		}
	}
	host := c.host.Remembering()
	for _, dir := range out {
		access := policy.Write
		if slices.Contains(a.hiddenPaths(), dir) {
			access |= policy.Read
		}
		real, links, _, err := host.Trail(dir)
		if errors.Is(err, fs.ErrNotExist) && slices.ContainsFunc(append(links, real), func(p string) bool { return inTree(r, p, access) }) {
			_ = os.MkdirAll(real, 0o700) // enforce says what is still missing
		}
	}
	return append(out, c.files...)
}

// hiddenPaths are those of zsbx's own directories that no command needs: what
// other commands ran, and which projects are trusted.
func (a *app) hiddenPaths() []string {
	if dir := a.stateHome(); dir != "" {
		return []string{filepath.Join(dir, "zsbx")}
	}
	return nil
}

// inTree tells whether a path lies in a tree that may be accessed in one of some
// ways.
func inTree(r *policy.Resolved, p string, access policy.Access) bool {
	return slices.ContainsFunc(r.Paths, func(t policy.Path) bool {
		return t.Access&access != 0 && (p == t.Path || t.Path == "/" || strings.HasPrefix(p, t.Path+"/"))
	})
}

// reportChanges says in one line what of the protected set, or of what is
// denied, is not as it was before the command.
func (a *app) reportChanges(s *enforce.Snapshot) {
	changes := s.Changes()
	if len(changes) == 0 {
		return
	}
	const most = 5
	var names []string
	for _, c := range changes[:min(len(changes), most)] {
		what := "changed"
		if c.New {
			what = "new"
		}
		names = append(names, quoteArg(c.Path)+" ("+what+")")
	}
	if more := len(changes) - most; more > 0 {
		names = append(names, count(more, "more", "more"))
	}
	a.say.warn("while the command ran, files appeared or changed that are denied to it, or that programs outside act upon: %s", strings.Join(names, ", "))
}
