package resolve

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// sourceTemp is the origin of the rule for Host.TempDir.
const sourceTemp = "private temporary directory"

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
// escape tracking there. A rule for a directory above them is not refused; package sandbox
// leaves them out.
func Policy(p *policy.Policy, h host.Host) (*Resolved, error) {
	if err := h.Check(); err != nil {
		return nil, policy.Errors{{Code: policy.CodeValue, Msg: "host", Err: err}}
	}
	flat := p.On(h.OS)
	paths := 0
	asked := len(flat.FS.Deny) + len(flat.Net.ConnectTCP) + len(flat.Net.BindTCP) + len(flat.Net.Unix) +
		len(flat.Env.Allow) + len(flat.Env.Set)
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

// resolver is one run of Resolve.
type resolver struct {
	r    *Resolved
	host *view
	w    *host.Walker

	presets view          // the host as presets see it
	secrets []secretPlace // found with the variables of presets
	errs    policy.Errors
}

func (rs *resolver) fail(o policy.Origin, code policy.Code, hint, msg string) {
	e := policy.Error{Origin: o, Code: code, Msg: msg, Hint: hint}
	// Merge keeps some values twice: for all systems, and over those for one
	if !slices.ContainsFunc(rs.errs, func(said *policy.Error) bool { return *said == e }) {
		rs.errs = append(rs.errs, &e)
	}
}

func (rs *resolver) rule(rule policy.Rule) {
	if rule.Access == 0 || rule.Access&^(policy.Read|policy.Write|policy.Exec) != 0 {
		rs.fail(rule.Origin, policy.CodeValue, "", fmt.Sprintf("path %q has no known access", rule.Path))
		return
	}
	p, ok := rs.path(rule)
	if !ok {
		return
	}
	if err := rs.refuse(&p); err != nil {
		rs.leave(rule, rule.Origin.BuiltIn(), policy.CodeRefused, "", err.Error())
		return
	}
	if rs.host.OS == "macos" && rule.Origin.Source == "baseline" {
		rs.wholeApp(&p)
	}
	rs.r.Paths = append(rs.r.Paths, p)
}

// leave leaves a rule out, by noting it in Skipped if skip is true, and otherwise as an
// error. A built-in rule whose path the environment may have moved is always skipped.
func (rs *resolver) leave(rule policy.Rule, skip bool, code policy.Code, hint, why string) {
	if skip {
		rs.r.Skipped = append(rs.r.Skipped, Skip{Rule: rule, Reason: why})
	} else {
		rs.fail(rule.Origin, code, hint, why)
	}
}

// path finds what a rule names, or reports why it cannot.
func (rs *resolver) path(rule policy.Rule) (Path, bool) {
	h := rs.host
	if rule.Origin.BuiltIn() {
		h = &rs.presets
	}
	written, err := h.absolute(rule.Path)
	if err != nil {
		code := expandCode(err)
		rs.leave(rule, rule.Origin.BuiltIn() || rule.Optional && code == policy.CodeVariable, code, "", err.Error())
		return Path{}, false
	}
	walk := rs.w.Spelled
	if rule.Origin.BuiltIn() { // spelled as on disk
		walk = rs.w.Walk
	}
	pl, err := walk(written)
	p := Path{
		Path: pl.Path, Access: rule.Access, Mode: pl.Stat.Mode.Type(), ID: pl.Stat.ID,
		Rule: rule, Written: written, Links: pl.Links,
	}
	switch {
	case err != nil:
		rs.leave(rule, rule.Optional, policy.CodePath, "", written+": "+err.Error())
	case pl.Gone != "":
		homeless := host.Within(pl.Path, rs.r.Home) && host.Within(rs.r.Home, pl.At) // no home directory is ever made
		if rule.Create && !homeless {
			if err := rs.refuse(&p); err != nil {
				rs.leave(rule, rule.Origin.BuiltIn(), policy.CodeRefused, "", err.Error())
				return Path{}, false
			}
			p.Mode = fs.ModeDir
			rule.Optional = true
			rs.r.Create = append(rs.r.Create, p)
		}
		hint := ""
		if !rule.Optional {
			hint = missingHint(&rule, written, &pl)
		}
		rs.leave(rule, rule.Optional, policy.CodeMissing, hint, pl.WhyGone(written))
	default:
		return p, true
	}
	return Path{}, false
}

// expandCode returns the code for an error of view.absolute or view.whole.
func expandCode(err error) policy.Code {
	if errors.Is(err, errUnset) {
		return policy.CodeVariable
	}
	return policy.CodeValue
}

// userAccess returns what rules that are not built in allow on a canonical path.
func (rs *resolver) userAccess(p string) policy.Access {
	var sum policy.Access
	for i := range rs.r.Paths {
		if rule := &rs.r.Paths[i]; host.Within(p, rule.Path) && !rule.Rule.Origin.BuiltIn() {
			sum |= rule.Access
		}
	}
	return sum
}

// fromFlag reports whether the origin is the command line.
func fromFlag(o policy.Origin) bool { return strings.HasPrefix(o.Source, "--") }

// net decides how much of the network is open. A list of ports, empty or not, limits the
// network to these ports, whether allow is "false" or not set.
func (rs *resolver) net(n *policy.Net) {
	out := &rs.r.Net
	ports := slices.Concat(n.ConnectTCP, n.BindTCP)
	byFlag := slices.ContainsFunc(ports, func(p policy.Port) bool { return fromFlag(p.Origin) })
	for _, p := range ports {
		if p.Number == 0 {
			rs.fail(p.Origin, policy.CodeValue, "", "port 0 is not between 1 and 65535")
		}
	}
	allow := n.Allow
	switch {
	case n.ConnectTCP == nil && n.BindTCP == nil, fromFlag(allow.Origin) && !byFlag: // --net and --no-net outrank files
		out.Mode = NetOpen
		out.From = cmp.Or(allow.Origin, policy.Origin{Source: "default"})
		if allow.Value == "false" {
			out.Mode = NetNone
		}
		return
	case len(ports) == 0:
		out.Mode = NetNone
		out.From = policy.Origin{Source: "an empty list of ports"}
		return
	}
	out.Mode = NetPorts
	out.From = ports[0].Origin
	out.ConnectTCP = n.ConnectTCP
	out.BindTCP = n.BindTCP
	// In one file "allow = true" beside a list means the list. In two files the
	// two contradict each other. A flag outranks what files allow.
	other := slices.IndexFunc(ports, func(p policy.Port) bool { return p.Origin.Source != allow.Origin.Source })
	if allow.Value == "true" && byFlag == fromFlag(allow.Origin) && other >= 0 {
		rs.fail(allow.Origin, policy.CodeContradiction, fmt.Sprintf("--connect-tcp %d", ports[other].Number),
			fmt.Sprintf("the whole network is allowed here, but %s limits it to port %d", ports[other].Origin,
				ports[other].Number))
	}
}

// sockets resolves the Unix sockets that may be connected to: a socket, or a
// directory for all sockets below.
func (rs *resolver) sockets(names []policy.Named) {
	for _, n := range names {
		p, ok := rs.path(policy.Rule{Path: n.Value, Optional: n.Optional, Origin: n.Origin})
		switch {
		case !ok:
		case p.Mode&(fs.ModeSocket|fs.ModeDir) == 0:
			rs.fail(n.Origin, policy.CodeValue, "", fmt.Sprintf("%s is neither a socket nor a directory", p.Written))
		default:
			rs.r.Net.Unix = append(rs.r.Net.Unix, p)
		}
	}
}
