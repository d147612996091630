package selftest

import (
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// mountTrials attack what a mount namespace holds, and a file of zsbx's own in a
// writable tree, which is held with mounts and without. Where there is none, there
// is nothing else to prove: the plan has the gaps.
func (s *linuxScene) mountTrials(caps enforce.Caps) ([]trial, error) {
	host, err := policy.ThisHost()
	if err != nil {
		return nil, err
	}
	own := trial{name: enforce.GapOwnFiles, promise: "no change of zsbx's own files", means: "mounts", steps: opening(s.dir+"/"+ownFile, unix.O_WRONLY),
		plan: enforce.NewPlanWith(s.policy, caps, &host, enforce.Options{Protect: []string{s.dir + "/" + ownFile}})}
	if own.plan.Mounts == nil {
		own.means = "Landlock"
	}
	r := *s.policy
	r.Deny = []policy.DenyPath{{Pattern: s.dir + "/" + deniedFile}}
	r.Paths = append(r.Paths, privatePaths()...)
	plan := enforce.NewPlanWith(&r, caps, &host, enforce.Options{})
	if plan.Mounts == nil {
		return []trial{own}, nil
	}
	out := append(s.privateTrials(plan.Mounts), []trial{
		{name: enforce.GapDeny, promise: "no access to what is denied inside a writable tree", steps: opening(s.dir+"/"+deniedFile, unix.O_RDONLY)},
		{name: enforce.GapProtect, promise: "no change of git's configuration and hooks and the like", steps: opening(s.dir+"/"+protectedFile, unix.O_WRONLY)},
		{name: enforce.GapMetadata, promise: "no change of mode, owner, times, attributes and flags of files outside",
			steps: []fork.Step{callPath("fchmodat(2)", unix.SYS_FCHMODAT, s.dir+"/file", 1, at, 0, 0o600)}},
	}...)
	for i := range out {
		out[i].means, out[i].plan = "mounts", plan
	}
	return append([]trial{own}, out...), nil
}
