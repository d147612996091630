package selftest

import (
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// tryMounts attacks what the mount namespace holds. Where there is none, there
// is nothing to prove: the plan has the gaps.
func (s *scene) tryMounts(caps enforce.Caps) ([]Proof, error) {
	host, err := policy.ThisHost()
	if err != nil {
		return nil, err
	}
	r := *s.policy
	r.Deny = []policy.DenyPath{{Pattern: s.dir + "/" + deniedFile}}
	r.Paths = append(r.Paths, privatePaths()...)
	plan := enforce.NewPlanWith(&r, caps, &host, enforce.Options{})
	if plan.Mounts == nil {
		return nil, nil
	}
	open := func(file string, flags uintptr) []fork.Step {
		return []fork.Step{callPath("openat(2)", unix.SYS_OPENAT, s.dir+"/"+file, 1, at, 0, flags)}
	}
	var out []Proof
	for _, t := range append(s.privateTrials(plan.Mounts), []trial{
		{name: enforce.GapDeny, promise: "no access to what is denied inside a writable tree", steps: open(deniedFile, unix.O_RDONLY)},
		{name: enforce.GapProtect, promise: "no change of git's configuration and hooks and the like", steps: open(protectedFile, unix.O_WRONLY)},
		{name: enforce.GapMetadata, promise: "no change of mode, owner, times, attributes and flags of files outside",
			steps: []fork.Step{callPath("fchmodat(2)", unix.SYS_FCHMODAT, s.dir+"/file", 1, at, 0, 0o600)}},
	}...) {
		confined, err := inChild(plan, t.steps)
		if _, refused := plan.Refused(err); refused {
			return nil, nil
		}
		if err != nil {
			return out, err
		}
		free, err := inChild(nil, t.steps)
		if err != nil {
			return out, err
		}
		t.means = "mounts"
		out = append(out, proof(t, t.steps[len(t.steps)-1].Name, confined, free))
	}
	return out, nil
}

// tryOwn attacks a file of zsbx's own in a writable tree, which is held with
// mounts and without.
func (s *scene) tryOwn(caps enforce.Caps) (Proof, error) {
	host, err := policy.ThisHost()
	if err != nil {
		return Proof{}, err
	}
	t := trial{name: enforce.GapOwnFiles, promise: "no change of zsbx's own files", means: "mounts",
		steps: []fork.Step{callPath("openat(2)", unix.SYS_OPENAT, s.dir+"/"+ownFile, 1, at, 0, unix.O_WRONLY)}}
	opts := enforce.Options{Protect: []string{s.dir + "/" + ownFile}}
	plan := enforce.NewPlanWith(s.policy, caps, &host, opts)
	confined, err := inChild(plan, t.steps)
	if plan.MountsRefused(err) != "" {
		caps.MountNS = false
		plan = enforce.NewPlanWith(s.policy, caps, &host, opts)
		confined, err = inChild(plan, t.steps)
	}
	if err != nil {
		return Proof{}, err
	}
	if plan.Mounts == nil {
		t.means = "Landlock"
	}
	free, err := inChild(nil, t.steps)
	return proof(t, t.steps[0].Name, confined, free), err
}

// What the scene holds for tryMounts and tryOwn, in the writable directory.
const (
	deniedFile    = "in/denied"
	ownFile       = "in/own"
	protectedFile = "in/.git/config"
)
