package resolve

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/policy"
)

// resolver is one run of Policy.
type resolver struct {
	r    *Resolved
	host *view
	w    *host.Walker

	presets view          // the host as presets see it
	secrets []secretPlace // found with the variables of presets
	errs    policy.Errors
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
		wholeApp(rs.w, &p)
	}
	rs.r.Paths = append(rs.r.Paths, p)
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

// refuse returns an error for a rule that would break what zsbx relies on.
func (rs *resolver) refuse(p *Path) error {
	if rs.host.OS != "linux" {
		return nil
	}
	for _, link := range p.Links {
		if (link == "/proc/self" || link == "/proc/thread-self") && host.Within(p.Path, "/proc") {
			return fmt.Errorf("%s would be the directory of zsbx itself, not of the command: allow /proc instead",
				p.Written)
		}
	}
	if p.Access&policy.Write == 0 {
		return nil
	}
	for _, dir := range [...]string{"/proc", "/sys/fs/cgroup"} {
		if host.Within(p.Path, dir) {
			return fmt.Errorf("%s must not be writable: tracking and the sandbox itself rely on %s", p.Path, dir)
		}
	}
	return nil
}

func (rs *resolver) fail(o policy.Origin, code policy.Code, hint, msg string) {
	e := policy.Error{Origin: o, Code: code, Msg: msg, Hint: hint}
	// Merge keeps some values twice: for all systems, and over those for one
	if !slices.ContainsFunc(rs.errs, func(said *policy.Error) bool { return *said == e }) {
		rs.errs = append(rs.errs, &e)
	}
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

// skipped notes why a rule, or its write access, was left out, if there is a reason.
func (rs *resolver) skipped(rule policy.Rule, why string) bool {
	if why != "" {
		rs.r.Skipped = append(rs.r.Skipped, Skip{Rule: rule, Reason: why})
	}
	return why != ""
}

func (rs *resolver) denyPath(p, written string, from policy.Origin, secret bool) {
	deny := policy.Named{Value: glob.QuoteMeta(syntax.Literal(written)), Origin: from}
	rs.r.Deny = append(rs.r.Deny, DenyPath{Pattern: p, Deny: deny, Secret: secret})
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
