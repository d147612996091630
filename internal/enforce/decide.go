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
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/resolve"
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
		return p.explain(&a, p.byPolicy(&a))
	}
	if p.hides(&a) {
		return p.explain(&a, answer.Unseen(a.Path))
	}
	return p.explain(&a, p.world().Decide(&a))
}

// byPolicy answers by the policy's rules and by what the profile closes anyway.
func (p *Plan) byPolicy(a *Act) answer.Answer {
	refused := answer.Answer{Verdict: Refused, Errno: "EPERM"}
	if !p.rule(a, refused).Allowed || p.reachesNone(a) {
		return refused
	}
	at := p.closed(a)
	if at == "" {
		return answer.Answer{Verdict: Allowed}
	}
	refused.By = answer.Seatbelt
	refused.Mount = &mounts.Mount{Path: at, Kind: mounts.Protect, Dir: at != a.Path || a.Mode.IsDir()}
	return refused
}

// reachesNone reports whether an act is about a host outside, where the policy lists hosts and none
// can be reached.
func (p *Plan) reachesNone(a *Act) bool {
	outside := a.Op == ActConnect && a.Path == "" && a.Name == ""
	return outside && p.Policy.Net.Mode == resolve.NetHosts && p.hosts == nil
}

// hides reports whether a private directory hides the file that an act is about.
func (p *Plan) hides(a *Act) bool {
	private := p.Mounts.PrivateIn(a.Path)
	if private == "" || private == a.Path || p.Mounts.Leads(a.Path) {
		return false
	}
	makes := a.Op == answer.Make || a.Flags&ActCreat != 0
	return !makes
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
	if git := p.Policy.UnprovedGit(); git.Dir != "" {
		hint, _ := learn.Ask(p.Policy, learn.Need{Path: git.Dir, Access: git.Access, Dir: true})
		add(git.Text, hint.Typed(p.Policy))
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
	text := "on PATH but closed, so that others of the same name may run instead of the programs there: "
	text += strings.Join(names, ", ")
	if flags := learn.Execute(p.Policy, closed).Typed(p.Policy); flags != "" {
		text += ": " + flags
	}
	return text
}

// stillWritable returns one line about rules that have no effect: they give no right to write,
// but a wider rule does, and rules add up. It returns "" if there are none.
func (p *Plan) stillWritable() string {
	var first, wide *resolve.Path
	writable := p.userWritable()
	refused := p.refusesWriting()
	count := 0
	for i := range p.Policy.Paths {
		rule := &p.Policy.Paths[i]
		w := wider(rule, writable)
		if w == nil || refused(rule) {
			continue
		}
		count++
		if count == 1 {
			first = rule
			wide = w
		}
	}
	if count == 0 {
		return ""
	}
	name := p.Policy.Short(first.Path)
	more := ""
	if count > 1 {
		more = fmt.Sprintf(" and %d more", count-1)
	}
	by := wide.Access.String() + " " + wide.Rule.Path
	return fmt.Sprintf("%s: %s%s: writable by %q (%s), as rules add up; --deny %s closes it altogether",
		first.Rule.Origin, shell.QuotePath(name), more, by, wide.Rule.Origin, shell.QuotePath(glob.QuoteMeta(name)))
}

// userWritable returns the paths that the user's rules make writable. They are few.
func (p *Plan) userWritable() (out []*resolve.Path) {
	for i := range p.Policy.Paths {
		t := &p.Policy.Paths[i]
		if t.Access&policy.Write != 0 && !t.Rule.Origin.BuiltIn() {
			out = append(out, t)
		}
	}
	return out
}

// refusesWriting returns a function that reports whether a rule's path can't be written, since
// it is denied or protected.
func (p *Plan) refusesWriting() func(*resolve.Path) bool {
	world := sync.OnceValue(p.world)
	return func(r *resolve.Path) bool {
		act := Act{Op: ActOpen, Path: r.Path, Mode: r.Mode, Flags: ActWrite | ActCreat, Inside: true}
		if p.Landlock != nil {
			return world().Decide(&act).Verdict == Refused
		}
		return p.Decide(act).Verdict == Refused
	}
}

// wider returns the first of the user's writable rules that covers r, or nil. It returns nil,
// too, if r is not meant to forbid writing. A flag is meant to, and so is a rule in the same
// file as the wider one. A project's policy is not, since somebody else wrote it.
func wider(r *resolve.Path, writable []*resolve.Path) *resolve.Path {
	from := r.Rule.Origin
	flag := strings.HasPrefix(from.Source, "--")
	inFile := from.Line != 0 && path.Base(from.Source) != resolve.ProjectFile
	if r.Access&policy.Write != 0 || !flag && !inFile {
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
	w := &answer.World{
		Landlock: p.Landlock,
		Mounts:   p.Mounts,
		Filter:   p.Seccomp,
		Broker:   p.Broker,
		Reopened: p.reopened,
		Override: p.keeps()&(1<<dacOverride) != 0,
	}
	return w.Index()
}

// inGitDir reports whether a file is in a git directory, wherever that lies.
func (p *Plan) inGitDir(file string) bool {
	h := p.Policy.Host()
	return strings.Contains(file, "/.git/") || h.Lstat != nil && h.IsGitDir(path.Dir(file)) == host.Present
}

// explain says why an act is answered so, by which rule, and what would allow it.
func (p *Plan) explain(a *Act, got answer.Answer) Answer {
	rule := p.rule(a, got)
	out := Answer{Answer: got, Reason: rule.Reason, Origin: rule.Origin}
	if got.Verdict != Refused {
		if private := p.Mounts.PrivateIn(a.Path); private != "" {
			out.set(private + " is the command's own, and ends with it")
		}
		return out
	}
	p.explainRefused(&out, a, rule)
	if out.mayHelp(a) {
		p.propose(&out, a, rule)
	}
	return out
}

// set sets a reason that no rule is the origin of.
func (out *Answer) set(reason string) {
	out.Reason = reason
	out.Origin = policy.Origin{}
}

// mayHelp reports whether a rule may allow a refused act. No rule changes what the filter says
// of calls with a path, what no_new_privs takes away, and what is protected without a rule.
func (out *Answer) mayHelp(a *Act) bool {
	switch out.By {
	case answer.NoNewPrivs:
		return false
	case answer.Seccomp:
		if a.Path != "" {
			return false
		}
	}
	return out.Mount == nil || out.Origin.Source != ""
}

// explainRefused sets the reason of a refusal. Where it sets none the policy's rule is the
// reason.
func (p *Plan) explainRefused(out *Answer, a *Act, rule resolve.Verdict) {
	if private := p.Mounts.PrivateIn(a.Path); private != "" && out.IsUnseen() {
		out.set(private + " is the command's own: files outside can't be seen")
		return
	}
	if rule.Deny != nil {
		return
	}
	if out.By == answer.NoNewPrivs {
		out.set("its set-user-ID bit or capabilities (getcap(8)) give nothing here, and no rule changes that")
		return
	}
	switch a.Op {
	case answer.Signal, answer.Trace:
		out.Reason = "processes outside the session get no signals and can't be traced"
		return
	case ActConnect:
		if a.Path == "" && a.Name != "" {
			out.Reason = "an abstract socket of a program outside; no rule can allow it"
		}
		if a.Path == "" && a.Name == "" {
			out.Reason += p.butOwn()
			out.Hint.Flags = rule.Flag
		}
		if p.reachesNone(a) {
			out.Hint.Flags = ""
			out.set("no host outside is reached here: " + cmp.Or(p.noHosts, p.Caps.without()))
		}
		return
	case answer.Bind:
		if a.Path == "" && p.shared() && !rule.Allowed {
			out.set("servers of the session are closed here: " + p.noOwnNet())
		}
		if a.Path == "" {
			return
		}
	}
	switch {
	case out.By == answer.Seccomp:
		p.explainFilter(out, a)
	case out.Mount != nil:
		p.explainMount(out)
	default:
		explainRights(out, a, rule)
	}
}

// butOwn is the end of "there is no network", if the session has one for its own servers.
func (p *Plan) butOwn() string {
	if p.own && p.Policy.Net.Mode == resolve.NetNone {
		return " but the session's own on localhost"
	}
	return ""
}

// explainFilter sets the reason why the filter refuses a call.
func (p *Plan) explainFilter(out *Answer, a *Act) {
	if out.Errno == "ESOCKTNOSUPPORT" { // with or without a network
		out.Reason = "a filter can't see where a Unix datagram goes, which may be outside"
		return
	}
	out.Reason = out.Why
	if p.Policy.Net.Mode != resolve.NetNone || !strings.HasPrefix(a.Name, "socket") {
		return
	}
	network := p.Policy.Connect("", 0)
	out.Reason = network.Reason + p.butOwn()
	out.Origin = network.Origin
	if network.Origin.Source != "--no-net" {
		out.Hint = learn.Hint{Flags: "--net", GivesUp: "every host can be reached"}
	}
}

// explainMount sets the reason why a mount, or the profile on macOS, refuses an act.
func (p *Plan) explainMount(out *Answer) {
	m := out.Mount
	out.Reason = m.Path + " is protected: programs outside, or zsbx, run or trust it (docs/security.md)"
	out.Origin = m.Origin
	if m.Kind == mounts.Protect && !m.Dir && p.inGitDir(m.Path) {
		name := p.Policy.Short(m.Path)
		out.Hint = learn.NewHint("fs.rw", name, false)
		out.Hint.GivesUp = "git outside may run programs that " + name + " names"
	}
}

// explainRights sets the reason why Landlock refuses an act that the policy's rules allow, or
// that would give a file rights.
func explainRights(out *Answer, a *Act, rule resolve.Verdict) {
	if out.Gains != 0 {
		gains := landlock.BitNames(out.Gains, landlock.FSNames[:])
		out.Reason = fmt.Sprintf("the file would get new rights: %s allows %s, its present directory does not",
			path.Dir(a.To), gains)
		return
	}
	if !rule.Allowed {
		return
	}
	switch {
	case out.CrossMount:
		out.Reason = "the two places are different mounts, so that the rest can be read-only; programs copy instead"
	case out.Missing == landlock.FSReadDir:
		out.set(out.At + " contains something denied, so it can't be listed")
	default:
		missing := landlock.BitNames(out.Missing, landlock.FSNames[:])
		out.set(fmt.Sprintf("no rule gives the right to %s in %s", missing, out.At))
	}
}

// propose sets what would have to be allowed. It never proposes a rule for a whole home
// directory.
func (p *Plan) propose(out *Answer, a *Act, rule resolve.Verdict) {
	out.Needs = p.needed(a, out.Gains != 0)
	if rule.Deny != nil || rule.Allowed || a.Path == "" || a.Path == "/" || p.holdsHome(a.Path) {
		return
	}
	out.Secret = p.Policy.Secret(a.Path)
	writes := access(a, out.Missing)&policy.Write != 0
	if writes && out.Secret == "" && p.inSharedTmp(a.Path) {
		h := p.Policy.Host()
		n := len(list(h, "/tmp")) + len(list(h, "/var/tmp"))
		now := cmp.Or(counted(n, "entry", "entries"), "nothing")
		out.Hint = learn.Hint{
			Flags:   "--shared-tmp",
			GivesUp: "all that is in /tmp and /var/tmp can be read and changed, now " + now,
		}
	}
}

// holdsHome reports whether the home directory is a path or is below it.
func (p *Plan) holdsHome(dir string) bool {
	home := p.Policy.Home
	real, _, ok := p.Policy.Look(home)
	if ok && home != "" {
		home = real
	}
	return home != "" && host.Within(home, dir)
}

// inSharedTmp reports whether a file is in /tmp or /var/tmp as programs outside see them. A home
// directory there does not count.
func (p *Plan) inSharedTmp(file string) bool {
	if !host.Within(file, "/tmp") && !host.Within(file, "/var/tmp") {
		return false
	}
	inHome := p.Policy.Home != "" && host.Within(file, p.Policy.Home)
	return !inHome && p.Mounts.PrivateIn(file) == ""
}

// rule returns what the policy says about the path that decided.
func (p *Plan) rule(a *Act, got answer.Answer) resolve.Verdict {
	switch a.Op {
	case ActConnect:
		if a.Path != "" {
			return p.socketRule(a.Path, got.Verdict)
		}
		if a.Name == "" {
			return p.Policy.Connect(a.Host, a.Port)
		}
	case answer.Bind:
		if a.Path == "" {
			return p.Policy.Bind(a.Port)
		}
	}
	at := cmp.Or(got.At, a.Path)
	if at == "" {
		return resolve.Verdict{Reason: "it can't be resolved"}
	}
	return p.Policy.Allowed(at, access(a, got.Missing))
}

// socketRule returns what the policy says about a socket with a path.
func (p *Plan) socketRule(file string, got answer.Verdict) resolve.Verdict {
	for _, s := range p.Policy.Net.Unix {
		if s.Covers(file) {
			reason := fmt.Sprintf("the socket is allowed by %q (%s)", s.Rule.Path, s.Rule.Origin)
			return resolve.Verdict{Allowed: true, Origin: s.Rule.Origin, Reason: reason}
		}
	}
	if v := p.Policy.Allowed(file, policy.Read); v.Deny != nil {
		return v
	}
	if got == Allowed {
		return resolve.Verdict{Allowed: true, Reason: "nothing on this machine restricts sockets"}
	}
	return resolve.Verdict{Reason: "no rule allows this socket, unless a process of the session itself listens on it"}
}

// access returns the policy access that an act needs.
func access(a *Act, missing uint64) policy.Access {
	switch a.Op {
	case ActExec:
		return policy.Exec | policy.Read
	case ActOpen:
		const reads = landlock.FSReadFile | landlock.FSReadDir
		lacksReading := missing != 0 && missing&^reads == 0
		if lacksReading || a.Flags&^ActRead == 0 {
			return policy.Read
		}
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
