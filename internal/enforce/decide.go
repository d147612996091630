package enforce

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/policy"
)

// Act is something that a command may do. The fields say what must be known about it. The
// operations and flags are the Act… constants.
type Act = answer.Act

// The operations that other packages ask about, the flags of ActOpen, and the verdicts
// of an Answer.
const (
	ActOpen    = answer.Open
	ActExec    = answer.Exec
	ActConnect = answer.Connect

	ActRead  = answer.Read
	ActWrite = answer.Write
	ActCreat = answer.Creat

	Allowed = answer.Allowed
	Refused = answer.Refused
)

// Answer is what a plan decides about an act, and why.
type Answer struct {
	answer.Answer
	Reason string        // for people
	Origin policy.Origin // of the rule that decides

	// Needs is what rules would have to allow (see Plan.Hint). Hint is what else would help.
	// Secret is the place of secrets that the act is about, or "".
	Needs  []learn.Need
	Hint   learn.Hint
	Secret string
}

// Decide returns what the plan decides about an act. Nothing else answers this question. On
// Linux it goes by what the kernel is given, and returns the kernel's error. On macOS it goes
// by the policy, from which the profile is made, and by what the profile closes anyway. If
// nothing restricts files, which is a Gap, it goes by the policy.
func (p *Plan) Decide(a Act) Answer {
	if p.Caps.OS == "macos" || p.Landlock == nil {
		got := answer.Answer{Verdict: Refused, Errno: "EPERM"}
		if p.rule(&a, got).Allowed {
			if at := p.closed(&a); at != "" {
				got.By, got.Mount = answer.Seatbelt, &mounts.Mount{Path: at, Kind: mounts.Protect, Dir: at != a.Path || a.Mode.IsDir()}
			} else {
				got = answer.Answer{Verdict: Allowed}
			}
		}
		return p.explain(&a, got)
	}
	if own := p.Mounts.PrivateIn(a.Path); own != "" && own != a.Path && a.Op != answer.Make && a.Flags&ActCreat == 0 && !p.Mounts.Leads(a.Path) {
		return p.explain(&a, answer.Unseen(a.Path))
	}
	return p.explain(&a, p.world().Decide(&a))
}

// closed returns what the profile closes to an act on a file, or "".
func (p *Plan) closed(a *Act) string {
	if p.Seatbelt == nil || a.Path == "" || a.Op == ActConnect {
		return ""
	}
	return p.Seatbelt.Closed(p.Policy, a.Path, access(a, 0))
}

// Warnings returns what the user should know of the plan for a command line, in the order in
// which it is printed.
func (p *Plan) Warnings(argv []string) policy.Errors {
	all := slices.Clone(p.Policy.Warnings)
	add := func(text, hint string) {
		if text != "" {
			all = append(all, &policy.Error{Msg: text, Hint: hint})
		}
	}
	if why := p.unnamed(); why != "" {
		add("names can't be resolved: "+why, namesHint)
	}
	add(p.stillWritable(), "")
	open := slices.ContainsFunc(p.Gaps, func(g Gap) bool { return g.Name == GapDeny && g.Kind == Hardening })
	if p.open > 0 {
		add(fmt.Sprintf("%d of %d denied files can be read", p.open, p.denied), "")
	}
	add(p.Policy.Spared(!open), "")
	if file, program := p.Policy.ClosedTo(argv); file != "" {
		hint := learn.Settings(p.Policy, file)
		text := fmt.Sprintf("%s is closed to %s", shell.QuotePath(p.Policy.Short(file)), program)
		if hint.GivesUp != "" {
			text += "; " + hint.GivesUp
		}
		add(text, hint.Typed(p.Policy))
	}
	add(p.closedPath(), "")
	if apart := p.Policy.Apart(); apart.Dir != "" {
		hint, _ := learn.Ask(p.Policy, learn.Need{Path: apart.Dir, Access: apart.Access, Dir: true})
		add(apart.Text, hint.Typed(p.Policy))
	}
	return all
}

// closedPath returns one line about directories on PATH that are closed, with the flags that open
// them, or "". A program that looks for another one there goes on to the next directory.
func (p *Plan) closedPath() string {
	closed := p.Policy.ClosedPath()
	if len(closed) == 0 {
		return ""
	}
	const shown = 3
	var names []string
	for _, dir := range closed {
		names = append(names, shell.QuotePath(p.Policy.Short(dir)))
	}
	if more := len(names) - shown; more > 0 {
		names = append(names[:shown], fmt.Sprintf("%d more", more))
	}
	text := "on PATH but closed, so that others of the same name may run instead of the programs there: " + strings.Join(names, ", ")
	if flags := learn.Execute(p.Policy, closed).Typed(p.Policy); flags != "" {
		text += ": " + flags
	}
	return text
}

// stillWritable returns one line about rules that have no effect: they give no right to write,
// but a wider rule does, and rules add up. It returns "" if there are none.
func (p *Plan) stillWritable() string {
	var first, wide *policy.Path
	var writable []*policy.Path // by the user's own rules, which are few
	for i := range p.Policy.Paths {
		if t := &p.Policy.Paths[i]; t.Access&policy.Write != 0 && !t.Rule.Origin.BuiltIn() {
			writable = append(writable, t)
		}
	}
	world := sync.OnceValue(p.world)      // computed once
	closed := func(r *policy.Path) bool { // whether it is denied or protected
		act := Act{Op: ActOpen, Path: r.Path, Mode: r.Mode, Flags: ActWrite | ActCreat, Inside: true}
		if p.Landlock != nil {
			return world().Decide(&act).Verdict == Refused
		}
		return p.Decide(act).Verdict == Refused
	}
	count := 0
	for i := range p.Policy.Paths {
		if w := wider(&p.Policy.Paths[i], writable); w != nil && !closed(&p.Policy.Paths[i]) {
			if count++; count == 1 {
				first, wide = &p.Policy.Paths[i], w
			}
		}
	}
	if count == 0 {
		return ""
	}
	name, more := p.Policy.Short(first.Path), ""
	if count > 1 {
		more = fmt.Sprintf(" and %d more", count-1)
	}
	return fmt.Sprintf("%s: %s%s: writable by %q (%s), as rules add up; --deny %s closes it altogether", first.Rule.Origin,
		shell.QuotePath(name), more, wide.Access.String()+" "+wide.Rule.Path, wide.Rule.Origin, shell.QuotePath(glob.QuoteMeta(name)))
}

// wider returns the first of the user's writable rules that covers r, a narrower rule that was
// meant to forbid writing, or nil. r was meant so if it is a flag or in the same file. A
// project's policy is somebody else's.
func wider(r *policy.Path, writable []*policy.Path) *policy.Path {
	from := r.Rule.Origin
	flag := strings.HasPrefix(from.Source, "--")
	if r.Access&policy.Write != 0 || !flag && (from.Line == 0 || path.Base(from.Source) == policy.ProjectFile) {
		return nil
	}
	for _, w := range writable {
		same := flag || w.Rule.Origin.Source == from.Source
		if same && w.Path != r.Path && w.Covers(r.Path) && r.Access&^w.Access == 0 { // else r adds a right
			return w
		}
	}
	return nil
}

// world returns the plan in package answer's form.
func (p *Plan) world() *answer.World {
	const dacOverride = 1
	w := &answer.World{Landlock: p.Landlock, Mounts: p.Mounts, Filter: p.Seccomp, Broker: p.Mediation, Reopened: p.reopened,
		Override: p.keeps()&(1<<dacOverride) != 0}
	return w.Index()
}

// inGitDir reports whether a file is in a git directory, wherever that lies.
func (p *Plan) inGitDir(file string) bool {
	host := p.Policy.Host()
	return strings.Contains(file, "/.git/") || host.Lstat != nil && host.IsGitDir(path.Dir(file)) == policy.Present
}

func (p *Plan) explain(a *Act, got answer.Answer) Answer {
	rule := p.rule(a, got)
	out := Answer{Answer: got, Reason: rule.Reason, Origin: rule.Origin}
	own := p.Mounts.PrivateIn(a.Path)
	switch {
	case got.Verdict != Refused && own != "":
		out.Reason, out.Origin = own+" is the command's own, and ends with it", policy.Origin{}
	case own != "" && got.IsUnseen():
		out.Reason, out.Origin = own+" is the command's own: what is there outside can't be seen", policy.Origin{}
	case got.Verdict != Refused, rule.Deny != nil:
	case got.By == answer.NoNewPrivs:
		out.Reason, out.Origin = "its set-user-ID bit or capabilities (getcap(8)) give nothing here, and no rule changes that", policy.Origin{}
		return out
	case a.Op == answer.Signal || a.Op == answer.Trace:
		out.Reason = "processes outside the session get no signals and can't be traced"
	case a.Op == ActConnect && a.Path == "" && a.Name != "":
		out.Reason = "an abstract socket of a program outside; no rule can allow it"
	case a.Op == ActConnect || a.Op == answer.Bind && a.Path == "":
	case got.By == answer.Seccomp && got.Errno == "ESOCKTNOSUPPORT": // with or without a network
		out.Reason = "a filter can't see where a Unix datagram goes, which may be outside"
	case got.By == answer.Seccomp:
		out.Reason = got.Why
		if p.Policy.Net.Mode == policy.NetNone && strings.HasPrefix(a.Name, "socket") {
			rule := p.Policy.Connect(0)
			if out.Reason, out.Origin = rule.Reason, rule.Origin; rule.Origin.Source != "--no-net" {
				out.Hint = learn.Hint{Flags: "--net", GivesUp: "every host can be reached"}
			}
		}
	case got.Mount != nil:
		m := got.Mount
		out.Reason, out.Origin = m.Path+" is protected: programs outside act upon it, or zsbx does (docs/security.md)", m.Origin
		if m.Kind == mounts.Protect && !m.Dir && p.inGitDir(m.Path) {
			out.Hint = learn.NewHint("fs.rw", p.Policy.Short(m.Path), false)
			out.Hint.GivesUp = "git outside may run programs that " + p.Policy.Short(m.Path) + " names"
		}
	case got.Gains != 0:
		out.Reason = fmt.Sprintf("a move may not give a file new rights: %s is given in %s only", landlock.BitNames(got.Gains, landlock.FSNames[:]), path.Dir(a.To))
	case rule.Allowed && got.Apart:
		out.Reason = "the two places are different mounts, so that the rest can be read-only; programs copy instead"
	case rule.Allowed && got.Missing == landlock.FSReadDir:
		out.Reason, out.Origin = got.At+" contains something denied, so it can't be listed", policy.Origin{}
	case rule.Allowed:
		out.Reason, out.Origin = fmt.Sprintf("no rule gives the right to %s in %s", landlock.BitNames(got.Missing, landlock.FSNames[:]), got.At), policy.Origin{}
	}
	if got.Verdict == Refused && (got.By != answer.Seccomp || a.Path == "") && (got.Mount == nil || out.Origin.Source != "") {
		p.propose(&out, a, rule)
	}
	return out
}

// propose sets what would have to be allowed.
func (p *Plan) propose(out *Answer, a *Act, rule policy.Verdict) {
	out.Needs = p.needed(a, out.Gains != 0)
	r := p.Policy
	home := r.Home
	if real, _, ok := r.Look(home); ok && home != "" {
		home = real
	}
	if rule.Deny != nil || rule.Allowed || a.Path == "" || a.Path == "/" || home != "" && policy.Within(home, a.Path) {
		return // never propose a rule for a whole home directory
	}
	out.Secret = r.Secret(a.Path)
	tmp := (policy.Within(a.Path, "/tmp") || policy.Within(a.Path, "/var/tmp")) && !(r.Home != "" && policy.Within(a.Path, r.Home))
	if tmp && out.Secret == "" && access(a, out.Missing)&policy.Write != 0 && p.Mounts.PrivateIn(a.Path) == "" {
		n := len(list(r.Host(), "/tmp")) + len(list(r.Host(), "/var/tmp"))
		lost := "all that is in /tmp and /var/tmp can be read and changed, now " + cmp.Or(counted(n, "entry", "entries"), "nothing")
		out.Hint = learn.Hint{Flags: "--shared-tmp", GivesUp: lost}
	}
}

// rule returns what the policy says about the path that decided.
func (p *Plan) rule(a *Act, got answer.Answer) policy.Verdict {
	at := cmp.Or(got.At, a.Path)
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
		if got.Verdict == Allowed {
			return policy.Verdict{Allowed: true, Reason: "nothing on this machine restricts sockets"}
		}
		return policy.Verdict{Reason: "no rule allows this socket, unless a process of the session itself listens on it"}
	case a.Op == ActConnect && a.Name == "":
		return p.Policy.Connect(a.Port)
	case a.Op == answer.Bind && a.Path == "":
		return p.Policy.Bind(a.Port)
	case at == "":
		return policy.Verdict{Reason: "it can't be resolved"}
	}
	return p.Policy.Allowed(at, access(a, got.Missing))
}

// access returns the policy access that an act needs.
func access(a *Act, missing uint64) policy.Access {
	switch {
	case a.Op == ActExec:
		return policy.Exec | policy.Read
	case a.Op == ActOpen && missing != 0 && missing&^(landlock.FSReadFile|landlock.FSReadDir) == 0, a.Op == ActOpen && a.Flags&^ActRead == 0:
		return policy.Read
	}
	return policy.Write
}

// Covered returns the sorted paths that the plan hides from the command ("mask") or makes
// read-only whatever the policy says ("protect").
func (p *Plan) Covered() map[mounts.Kind][]string {
	by := make(map[mounts.Kind][]string)
	if p.Mounts != nil {
		for _, m := range p.Mounts.Mounts {
			by[m.Kind] = append(by[m.Kind], m.Path)
		}
	}
	if p.Seatbelt != nil {
		by[mounts.Protect] = slices.Sorted(slices.Values(p.Seatbelt.Protect))
	}
	return by
}
