package resolve

import (
	"fmt"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// Policy finds out what the policy means on one machine: it applies the overrides for the
// machine's system, expands and canonicalises every path, and decides about network,
// environment and limits. It looks at the machine only through h, and changes nothing.
//
// ".." in a path as written is taken lexically, before symbolic links are followed:
// "a/link/../b" is "a/b". A missing path is an error, except in optional rules, which are
// listed in Skipped. All errors are found at once: the error is an Errors. The result is
// nil if and only if there is an error.
//
// A rule that makes /proc or /sys/fs/cgroup writable is refused, because a command could
// escape tracking there. A rule for a directory above them is not refused;
// internal/enforce leaves them out.
func Policy(p *policy.Policy, h host.Host) (*Resolved, error) {
	if err := h.Check(); err != nil {
		return nil, policy.Errors{{Code: policy.CodeValue, Msg: "host", Err: err}}
	}
	flat := p.On(h.OS)
	paths := 0
	asked := len(flat.FS.Deny) + len(flat.Net.ConnectTCP) + len(flat.Net.BindTCP) + len(flat.Net.Unix) +
		len(flat.Net.Hosts) + len(flat.Net.DenyHosts) + notBuiltIn(flat.Env.Allow) + notBuiltIn(flat.Env.Set)
	for rule := range flat.Rules {
		paths++
		if !rule.Optional { // not from the baseline or a preset
			asked++
		}
	}
	v := view{Host: h, agents: cacheOfAgents(flat.FS.Rules)}
	rs := &resolver{
		r:    &Resolved{OS: h.OS, Dir: h.Dir, Home: h.Home, TempDir: h.TempDir, host: v},
		host: &v,
	}
	rs.w = v.Remember(paths + 32) // and the directories above; rs.r has another copy of the Host
	rs.presets = v.forPresets(flat.Env.Set)
	if h.OS == "macos" && h.Home != "" {
		rs.r.RealHome = h.Home
		if pl, err := v.Spelled(h.Home); err == nil {
			rs.r.RealHome = pl.Path
		}
	}
	if asked > policy.MaxRules {
		msg := fmt.Sprintf("%d rules: the most is %d", asked, policy.MaxRules)
		return nil, policy.Errors{{Code: policy.CodeLimit, Msg: msg}}
	}
	rs.r.Paths = make([]Path, 0, paths+1)
	rs.r.Skipped = make([]Skip, 0, paths)
	for rule := range flat.Rules {
		rs.rule(rule)
	}
	rs.signing()
	rs.git(flat.Presets)
	rs.guard()
	rs.projectCache(flat)
	rs.temporary()
	rs.denials(flat.FS.Deny)
	rs.denySecrets()
	rs.spareSecrets()
	rs.net(&flat.Net)
	rs.sockets(flat.Net.Unix)
	rs.r.Private = flat.Private
	rs.r.Writes = flat.FS.Writes
	rs.environment(&flat.Env, flat.Presets)
	rs.r.env = flat.Env
	rs.r.audit = flat.Audit
	rs.r.closed = flat.Closed
	rs.r.Limits = flat.Limits
	rs.r.Presets = flat.Presets
	rs.r.Guard = flat.Guard
	if err := rs.errs.Err(); err != nil {
		return nil, err
	}
	return rs.r, nil
}

// notBuiltIn counts the values that are not from the baseline or a preset.
func notBuiltIn(list []policy.Named) (n int) {
	for i := range list {
		if !list[i].Origin.BuiltIn() {
			n++
		}
	}
	return n
}
