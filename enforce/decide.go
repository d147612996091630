package enforce

import (
	"fmt"
	"path"
	"strings"

	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/learn"
)

// Act is something that a command would do; see the fields for what has to be
// known of it. The operations and flags are the Act… constants.
type Act = answer.Act

// The operations, the flags of ActOpen, and the verdicts of an Answer.
const (
	ActOpen     = answer.Open
	ActMake     = answer.Make
	ActTempFile = answer.TempFile
	ActRemove   = answer.Remove
	ActRename   = answer.Rename
	ActExchange = answer.Exchange
	ActLink     = answer.Link
	ActTruncate = answer.Truncate
	ActExec     = answer.Exec
	ActMetadata = answer.Metadata
	ActIoctl    = answer.Ioctl
	ActConnect  = answer.Connect
	ActBind     = answer.Bind
	ActSignal   = answer.Signal
	ActTrace    = answer.Trace
	ActCall     = answer.Call

	ActRead  = answer.Read
	ActWrite = answer.Write
	ActTrunc = answer.Trunc
	ActCreat = answer.Creat

	Allowed   = answer.Allowed
	Refused   = answer.Refused
	Undecided = answer.Undecided
)

// Answer is what a plan decides about an act, and why.
type Answer struct {
	Verdict answer.Verdict
	By      string // landlock, mounts, seccomp or sockets; "" where nothing refuses
	Errno   string // what the kernel says: "EACCES"
	Reason  string // in words
	Origin  policy.Origin

	// Needs are what rules would have to allow (see Plan.Hint), and Hint is what
	// else would help. Secret is the place of secrets that it is about, or "".
	Needs  []learn.Need
	Hint   learn.Hint
	Secret string
}

// Decide answers what the plan decides about an act: the one place where that is
// asked. On Linux it goes by what the kernel is given, and names the error that
// the kernel gives; on macOS by the policy, which the profile is made of, and so
// where nothing holds files, which is a Gap.
func (p *Plan) Decide(a Act) Answer {
	if p.Caps.OS == "macos" || p.Landlock == nil {
		return p.decideByPolicy(&a)
	}
	return p.explain(&a, p.world().Decide(&a))
}

// world is the plan as package answer takes it.
func (p *Plan) world() *answer.World {
	const dacOverride = 1
	w := &answer.World{Landlock: p.Landlock, Mounts: p.Mounts, Filter: p.Seccomp, Broker: p.Mediation,
		Override: (p.Caps.Capabilities&^p.DropCapabilities)&(1<<dacOverride) != 0 && (p.Mounts == nil || !p.Mounts.UserNS)}
	return w.Index()
}

// explain puts an answer into words.
func (p *Plan) explain(a *Act, got answer.Answer) Answer {
	out := Answer{Verdict: got.Verdict, By: string(got.By), Errno: got.Errno}
	rule := p.rule(a, got)
	out.Reason, out.Origin = rule.Reason, rule.Origin
	if got.Verdict != Refused {
		if own := p.Mounts.PrivateIn(a.Path); own != "" {
			out.Reason, out.Origin = own+" is the command's own, and ends with it", policy.Origin{}
		}
		return out
	}
	at := got.At
	switch {
	case a.Op == ActSignal || a.Op == ActTrace:
		out.Reason = "processes outside of the session get no signals, and can't be traced"
	case a.Op == ActConnect && a.Path == "" && a.Name != "":
		out.Reason = "an abstract socket of a program outside; no rule can allow it"
	case a.Op == ActConnect && a.Path != "":
		if !rule.Allowed && rule.Deny == nil {
			out.Reason, out.Origin = "no rule allows this socket, unless a process of the session itself listens on it", policy.Origin{}
		}
	case a.Op == ActConnect || a.Op == ActBind && a.Path == "":
	case got.By == answer.Seccomp:
		out.Reason = got.Why
		if p.Policy.Net.Mode == policy.NetNone && strings.HasPrefix(a.Name, "socket") {
			rule := p.Policy.Connect(0)
			if out.Reason, out.Origin = rule.Reason, rule.Origin; rule.Origin.Source != "--no-net" {
				out.Hint = learn.Hint{Flag: "--net"}
			}
		}
	case got.Private != "":
		out.Reason, out.Origin = got.Private+" is the command's own: what lies there outside is not to be seen", policy.Origin{}
	case rule.Deny != nil:
	case got.Mount != nil:
		out.Reason, out.Origin = protectedWords(at, got), got.Mount.Origin
		if m := got.Mount; m.Kind == mounts.Protect && !m.Dir && strings.Contains(m.Path, "/.git/") {
			out.Hint = learn.Hint{Flag: "--rw", Value: p.Policy.Short(m.Path), Key: "fs.rw"}
		}
	case got.Gains != 0:
		out.Reason = p.gainWords(a, got.Gains)
	case rule.Allowed && got.Apart:
		out.Reason = "the two places are mounts of their own, so that the rest can be read-only; programs copy instead"
	case rule.Allowed:
		out.Reason, out.Origin = fmt.Sprintf("a rule gives no right to %s in %s", landlock.BitNames(got.Missing, landlock.FSNames()), at), policy.Origin{}
	}
	if (got.By != answer.Seccomp || a.Path == "") && (got.Mount == nil || out.Origin.Source != "") {
		p.propose(&out, a, got, rule)
	}
	return out
}

// propose notes what would have to be allowed.
func (p *Plan) propose(out *Answer, a *Act, got answer.Answer, rule policy.Verdict) {
	out.Needs = p.needed(a, got)
	r := p.Policy
	home := r.Home
	if real, _, ok := r.Look(home); ok && home != "" {
		home = real
	}
	if rule.Deny != nil || rule.Allowed || a.Path == "" || a.Path == "/" || home != "" && policy.Within(home, a.Path) {
		return // all of a home directory is no rule to propose, whatever is in it
	}
	out.Secret = r.Secret(a.Path)
	tmp := (policy.Within(a.Path, "/tmp") || policy.Within(a.Path, "/var/tmp")) && !(r.Home != "" && policy.Within(a.Path, r.Home))
	if tmp && out.Secret == "" && access(a, got.Missing)&policy.Write != 0 && p.Mounts.PrivateIn(a.Path) == "" {
		out.Hint = learn.Hint{Flag: "--shared-tmp"}
	}
}

// rule is what the policy says about the place that decided.
func (p *Plan) rule(a *Act, got answer.Answer) policy.Verdict {
	at := got.At
	if at == "" {
		at = a.Path
	}
	switch {
	case a.Op == ActConnect && a.Path != "":
		for _, s := range p.Policy.Net.Unix {
			if s.Covers(a.Path) {
				return policy.Verdict{Allowed: true, Origin: s.Rule.Origin,
					Reason: fmt.Sprintf("the socket is allowed by %q (%s)", s.Rule.Path, s.Rule.Origin)}
			}
		}
		if v := p.Policy.Allowed(a.Path, policy.Read); v.Deny != nil {
			return v
		}
		return policy.Verdict{Allowed: got.Verdict == Allowed, Reason: "nothing on this machine holds sockets"}
	case a.Op == ActConnect && a.Name == "":
		return p.Policy.Connect(a.Port)
	case a.Op == ActBind && a.Path == "":
		return p.Policy.Bind(a.Port)
	case at == "":
		return policy.Verdict{Reason: "it can't be resolved"}
	}
	return p.Policy.Allowed(at, access(a, got.Missing))
}

// access is what of a policy an act is about.
func access(a *Act, missing uint64) policy.Access {
	switch {
	case a.Op == ActExec:
		return policy.Exec | policy.Read
	case a.Op == ActOpen && missing != 0 && missing&^(landlock.FSReadFile|landlock.FSReadDir) == 0, a.Op == ActOpen && a.Flags&^ActRead == 0:
		return policy.Read
	}
	return policy.Write
}

func protectedWords(at string, got answer.Answer) string {
	m := got.Mount
	switch {
	case m.Kind == mounts.Mask:
		return "hidden: " + m.Path + " is zsbx's own"
	case m.Kind == mounts.Pin:
		return at + " can't be moved or removed: it holds what is protected"
	}
	return m.Path + " is protected: programs outside act upon it, or zsbx does (docs/security.md)"
}

// gainWords say which two rules keep a file from being moved.
func (p *Plan) gainWords(a *Act, gains uint64) string {
	acc, what := policy.Read, "to be read"
	switch {
	case gains&landlock.FSExecute != 0:
		acc, what = policy.Exec, "to be executed"
	case gains&landlock.FSWriteFile != 0:
		acc, what = policy.Write, "to be written"
	}
	from, to := p.Policy.Allowed(path.Dir(a.Path), acc), p.Policy.Allowed(path.Dir(a.To), acc)
	return fmt.Sprintf("nothing may gain the right %s by being moved: %s; %s", what, from.Reason, to.Reason)
}

// decideByPolicy is Decide where the kernel is given the policy itself.
func (p *Plan) decideByPolicy(a *Act) Answer {
	v := p.rule(a, answer.Answer{Verdict: Refused, At: a.Path})
	out := Answer{Verdict: Allowed, Reason: v.Reason, Origin: v.Origin}
	if v.Allowed {
		return out
	}
	out.Verdict, out.Errno = Refused, "EPERM"
	if a.Op == ActConnect && a.Path != "" && v.Deny == nil {
		out.Reason = "no rule allows this socket, unless a process of the session itself listens on it"
	}
	p.propose(&out, a, answer.Answer{}, v)
	return out
}

// Covered are the paths that the plan hides from the command, or keeps as they
// are whatever the policy lets it write, sorted.
func (p *Plan) Covered() (masked, protected []string) {
	if p.Mounts == nil {
		return nil, nil
	}
	for _, m := range p.Mounts.Mounts {
		switch m.Kind {
		case mounts.Mask:
			masked = append(masked, m.Path)
		case mounts.Protect:
			protected = append(protected, m.Path)
		}
	}
	return masked, protected
}
