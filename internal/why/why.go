package why

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/enforce/trace"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// Report is what a command was refused, for people and programs.
type Report struct {
	Status      int          `json:"status"`
	Proved      bool         `json:"proved"` // each error was seen to come from the kernel
	Seen        int          `json:"seen"`   // traced system calls
	Entries     []Entry      `json:"refusals"`
	Ordinary    int          `json:"ordinary"`    // refusals that would happen without zsbx, too
	Environment []string     `json:"environment"` // variables that the command did not get but may have wanted
	Hosts       []Host       `json:"hosts"`       // those of Entries that are hosts outside
	More        bool         `json:"more"`        // there were more than could be recorded
	Last        *Failure     `json:"last_failure,omitempty"`
	Causes      int          `json:"-"` // entries with Cause
	Needs       []learn.Need `json:"-"` // for all entries
}

// Host is a host outside that was refused, for one reason.
type Host struct {
	Host    string      `json:"host"`
	Port    uint16      `json:"port,omitempty"` // 0 if its name was refused
	Reason  rule.Reason `json:"reason"`
	Text    string      `json:"text"`           // the reason, for people
	Hint    string      `json:"hint,omitempty"` // what to type to have it allowed
	Program string      `json:"program,omitempty"`
	Refused int         `json:"refused"` // how often
}

// Failure is the call that failed last before a command did, for an ordinary reason: the modes
// of files, or a missing file. It came after all refusals, or after all but those of programs
// that went on.
type Failure struct {
	Verb    string `json:"operation"`
	Path    string `json:"path"`
	Errno   string `json:"errno"`
	Program string `json:"program"`
}

// Entry is one thing that was refused, however often. It has the most telling refusal, with
// Count, Proved, Left and When for all of them.
type Entry struct {
	Rank  int    `json:"rank"`
	Cause bool   `json:"cause"` // it looks like the reason why the command failed
	Verb  string `json:"operation"`
	Path  string `json:"path"`         // or a port, a socket, a process, a system call
	To    string `json:"to,omitempty"` // of a rename or link
	trace.Refusal
	By       string          `json:"by"`    // landlock, mounts, seccomp, sockets, no_new_privs, seatbelt, or unknown
	Paths    int             `json:"paths"` // how many different paths it has
	Reason   string          `json:"reason"`
	Origin   policy.Origin   `json:"origin,omitzero"`
	Hint     learn.Hint      `json:"-"`
	Flags    string          `json:"hint,omitempty"`     // the flags of Hint
	TOML     json.RawMessage `json:"toml,omitempty"`     // the policy of Hint
	GivesUp  string          `json:"gives_up,omitempty"` // the promise that Hint gives up, or ""
	Harmless string          `json:"harmless,omitempty"` // why programs continue without it, or ""
	NoHint   string          `json:"no_hint,omitempty"`  // why no rule is proposed, or ""
	Secret   bool            `json:"secret"`             // it is about a secret, so there is no hint

	instead string // another program that PATH leads to after this one
}

// New returns the report of a command that ended with a status.
func New(plan *enforce.Plan, got enforce.Refusals, status int) *Report {
	r := &Report{Status: status, Proved: got.Proved, Seen: got.Seen, More: got.More}
	refused := r.take(got.List, plan.Policy.Home)
	rules := newRules(plan, r.Needs)
	for _, g := range rules.groups(refused) {
		e := entry(plan.Policy, g.refusals, g.rules)
		if e.Flags == "" {
			e.NoHint = rules.noHint(g.refusals)
		}
		r.Entries = append(r.Entries, e)
	}
	followed := func(f trace.Refusal) bool { return follows(&f, refused) }
	r.rank(slices.DeleteFunc(slices.Clone(got.Failures), followed))
	if status != 0 {
		r.Environment = r.missed(plan.Policy.EnvDrop)
	}
	return r
}

// take counts the refusals that would happen without zsbx, too. It returns the others and notes
// what would have been needed for them.
func (r *Report) take(list []enforce.Refusal, home string) (refused []*enforce.Refusal) {
	for i := range list {
		x := &list[i]
		if x.Ordinary {
			r.Ordinary += x.Count
			continue
		}
		for j := range x.Answer.Needs {
			n := &x.Answer.Needs[j]
			n.Why = harmless(home, x.Act.Verb(), n.Path, x.Program)
		}
		refused = append(refused, x)
		if x.Verdict != nil {
			r.Hosts = append(r.Hosts, hostOf(&x.Refusal))
		}
		r.Needs = append(r.Needs, x.Answer.Needs...)
	}
	return refused
}

// hostOf returns what is said of a host that was refused.
func hostOf(x *trace.Refusal) Host {
	return Host{
		Host:    rule.Printable(x.Verdict.Host),
		Port:    x.Verdict.Port,
		Reason:  x.Reason,
		Text:    x.Verdict.Text,
		Hint:    x.Verdict.Flag,
		Program: x.Program,
		Refused: x.Count,
	}
}

// missed returns the variables that a failed command may have wanted. If no other cause was found,
// these are all that were left out, except those that shells set.
func (r *Report) missed(dropped []string) []string {
	names := wanted(dropped)
	if r.Causes > 0 {
		return names
	}
	setByShells := []string{"OLDPWD", "SHLVL", "_"}
	for _, name := range dropped {
		if !slices.Contains(names, name) && !slices.Contains(setByShells, name) {
			names = append(names, name)
		}
	}
	return names
}

// rules knows which rules would allow what was refused.
type rules struct {
	plan    *enforce.Plan
	of      map[learn.Need]*learn.Proposal
	left    []learn.Need           // nothing is proposed for these
	withAll *enforce.Plan          // the plan with all the rules
	with    map[pair]*enforce.Plan // plans with only the rules that an act needs
}

func newRules(plan *enforce.Plan, needs []learn.Need) *rules {
	s := &rules{
		plan: plan,
		of:   make(map[learn.Need]*learn.Proposal),
		with: make(map[pair]*enforce.Plan),
	}
	proposed, left := learn.Rules(needs, plan.Policy)
	s.left = left
	var all []*learn.Proposal
	for _, q := range proposed {
		for _, n := range q.Needs {
			s.of[n] = &q
		}
		all = append(all, &q)
	}
	s.withAll = plan.With(all...)
	return s
}

// group is what becomes one entry: refusals that the same rules would allow, or, without rules,
// refusals of the same act.
type group struct {
	rules    pair
	refusals []*enforce.Refusal
}

// groups puts refusals into groups, in the order in which these began.
func (s *rules) groups(refused []*enforce.Refusal) (all []*group) {
	known := make(map[any]*group)
	for _, x := range refused {
		q := s.helping(x)
		key := any(q)
		if q[0] == nil {
			key = [...]string{x.Act.Verb(), subject(&x.Refusal), x.Act.To, string(x.Answer.By), x.Errno, x.Via}
		}
		g := known[key]
		if g == nil {
			g = &group{rules: q}
			known[key] = g
			all = append(all, g)
		}
		g.refusals = append(g.refusals, x)
	}
	return all
}

// helping returns the rules that would allow what was refused, or none. If rules are proposed that
// would not be enough, the refusal gets the answer of the plan with these rules. Plans take time:
// one is made only if the plan with all the rules refuses the act, too.
func (s *rules) helping(x *enforce.Refusal) pair {
	if acrossMounts(x) {
		return pair{} // with a rule, the copying that follows would be hidden as harmless
	}
	q := pairOf(x.Answer.Needs, s.of)
	if q[0] == nil || hopeless(s.withAll, x.Act) == nil {
		return q
	}
	if s.with[q] == nil {
		s.with[q] = s.plan.With(q[:]...)
	}
	ans := hopeless(s.with[q], x.Act)
	if ans == nil {
		return q
	}
	if ans.Hint.Flags != "" && x.Answer.Needs[0].Change {
		ans.Hint = q.hint(s.plan.Policy).And(ans.Hint)
	}
	x.Answer = *ans
	return pair{}
}

// noHint returns why nothing is proposed for refusals, or "".
func (s *rules) noHint(refusals []*enforce.Refusal) string {
	for _, n := range s.left {
		needs := func(x *enforce.Refusal) bool { return slices.ContainsFunc(x.Answer.Needs, n.Same) }
		if slices.ContainsFunc(refusals, needs) {
			return n.Why
		}
	}
	return ""
}

// pair has the rules that an act needs. A rename may need two.
type pair [2]*learn.Proposal

// pairOf returns no rules if one of them may not be proposed, since the other alone would not
// help.
func pairOf(needs []learn.Need, rules map[learn.Need]*learn.Proposal) (q pair) {
	for i, n := range needs {
		if rules[n] == nil {
			return pair{}
		}
		if rules[n] != q[0] {
			q[i] = rules[n]
		}
	}
	return q
}

func (q pair) hint(r *resolve.Resolved) learn.Hint {
	h := q[0].Hint(r)
	if q[1] != nil {
		h = h.And(q[1].Hint(r))
	}
	return h
}

// hopeless returns a plan's answer to an act if the plan refuses it and no rule would allow it,
// or nil.
func hopeless(plan *enforce.Plan, act enforce.Act) *enforce.Answer {
	if plan == nil {
		return nil
	}
	ans := plan.Decide(act)
	if ans.Errno == "EXDEV" { // programs copy instead, and remove the source
		ans = plan.Decide(enforce.Act{
			Op:      enforce.ActOpen,
			Flags:   enforce.ActWrite | enforce.ActCreat,
			Path:    act.To,
			Missing: !act.ToExists,
		})
		if ans.Verdict != enforce.Refused && act.Op == answer.Rename {
			ans = plan.Decide(enforce.Act{Op: answer.Remove, Path: act.Path, Mode: act.Mode})
		}
	}
	if ans.Verdict == enforce.Refused && ans.Needs == nil {
		return &ans
	}
	return nil
}

// entry returns the entry for refusals that the rules q would end.
func entry(r *resolve.Resolved, group []*enforce.Refusal, q pair) Entry {
	x := slices.MaxFunc(group, func(a, b *enforce.Refusal) int {
		return cmp.Compare(weight(a.Act.Verb()), weight(b.Act.Verb()))
	})
	e := Entry{
		Verb:    x.Act.Verb(),
		Path:    subject(&x.Refusal),
		To:      x.Act.To,
		Refusal: x.Refusal,
		By:      string(x.Answer.By),
		Reason:  x.Answer.Reason,
		Origin:  x.Answer.Origin,
		Hint:    x.Answer.Hint,
		Secret:  q[0] == nil && x.Answer.Secret != "",
	}
	if q[0] != nil {
		e.Hint = q.hint(r)
	}
	e.Flags = e.Hint.Typed(r)
	e.TOML = e.Hint.JSON()
	e.GivesUp = e.Hint.GivesUp
	e.Harmless = harmless(r.Home, e.Verb, e.Path, e.Program)
	if acrossMounts(x) {
		e.Harmless = "programs copy where they can't rename"
	}
	e.instead = instead(r, &e)
	if e.instead != "" {
		e.Reason += "; " + r.Short(e.instead) + " comes next on PATH, and may have run instead"
	}
	if x.Unknown() {
		e.By = "unknown"
		e.Reason = "neither the policy nor file permissions explain it: please report this"
	}
	if x.Via != "" {
		e.Reason += "; it is the interpreter of " + r.Short(x.Via)
	}
	paths := make(map[string]bool)
	e.Count = 0
	for _, x := range group {
		paths[x.Act.Path] = true
		e.Count += x.Count
		e.Proved = e.Proved && x.Proved
		e.Left = min(e.Left, x.Left)
		if x.When >= e.When {
			e.When = x.When
			e.Process = x.Process
			e.Exit = x.Exit
		}
	}
	e.Paths = len(paths)
	return e
}

// instead returns the program that execvp(3) goes on to when the one of an entry is refused, or "".
func instead(r *resolve.Resolved, e *Entry) string {
	if e.Verb != "exec" || e.Errno != "EACCES" {
		return ""
	}
	next := r.NextOnPATH(e.Path)
	if next == "" || !r.Allowed(next, policy.Exec).Allowed {
		return ""
	}
	return next
}

// acrossMounts reports whether a rename failed only because its ends are on different mounts.
func acrossMounts(x *enforce.Refusal) bool { return x.Errno == "EXDEV" && x.Answer.By == answer.Mounts }

// soon is how many calls a thread may make after a refusal that made it give up.
const soon = 8

// rank puts the likely cause first. If the command failed, it marks that one as a cause, and
// also refusals right after which a thread of the same process ended. The order of events
// decides between processes: what came before the last one that gave up was survived. If a
// process failed later for an ordinary reason, that reason is the likelier cause, and nothing is
// marked.
func (r *Report) rank(failures []trace.Refusal) {
	last := r.lastProcess()
	slices.SortStableFunc(r.Entries, func(a, b Entry) int { return cmp.Compare(b.score(last), a.score(last)) })
	var after *trace.Refusal // the last ordinary failure
	gaveUp := func(f trace.Refusal) bool { return f.Exit != 0 && f.Left <= soon }
	if i := slices.IndexFunc(failures, gaveUp); i >= 0 && r.Status != 0 {
		after = &failures[i]
	}
	found := false // whether a cause is more than a call
	for i := range r.Entries {
		e := &r.Entries[i]
		e.Rank = i + 1
		survived := after != nil && after.When > e.When
		ended := e.Left <= soon && e.Process == last
		if e.ran() {
			ended = !found
		}
		likely := r.mayExplain(e) && !survived && (r.Causes == 0 || ended)
		e.Cause = likely || e.instead != ""
		if e.Cause {
			r.Causes++
			found = found || e.Verb != "call"
		}
	}
	if after != nil && r.Causes == 0 {
		r.Last = &Failure{after.Act.Verb(), cmp.Or(after.Act.To, subject(after)), after.Errno, after.Program}
	}
}

// mayExplain reports whether an entry can be why the command failed.
func (r *Report) mayExplain(e *Entry) bool {
	return r.Status != 0 && e.Harmless == "" && e.explains(r.Status)
}

// follows reports whether a file is missing because a refused call would have made it, or a
// directory above it.
func follows(f *trace.Refusal, list []*enforce.Refusal) bool {
	return slices.ContainsFunc(list, func(x *enforce.Refusal) bool {
		made := cmp.Or(x.Act.To, x.Act.Path)
		return made != "" && host.Within(f.Act.Path, made)
	})
}

// lastProcess returns the process that failed last because of a refusal, as far as that is
// known, or 0. Programs make up for many calls that are refused.
func (r *Report) lastProcess() (process int) {
	for _, is := range []func(*Entry) bool{
		func(e *Entry) bool { return e.Verb != "call" && e.Exit != 0 && e.Left <= soon },
		func(e *Entry) bool { return e.Verb != "call" && e.Exit != 0 },
		func(e *Entry) bool { return e.Verb != "call" && e.Left <= soon },
		func(e *Entry) bool { return e.Left <= soon },
	} {
		when := -1.0
		for i := range r.Entries {
			e := &r.Entries[i]
			if e.Harmless == "" && !e.ran() && e.When > when && is(e) {
				process = e.Process
				when = e.When
			}
		}
		if when >= 0 {
			return process
		}
	}
	return 0
}

// explains reports whether a refusal can be why a command ended with a status. With 127 shells
// say that a program was not found, and loaders that a library was not.
func (e *Entry) explains(status int) bool {
	return status != 127 || slices.Contains([]string{"exec", "read", "list"}, e.Verb)
}

// score returns how likely an entry is the cause: by its operation, how soon its thread ended
// after it, and how late it came. last is the process that gave up last.
func (e *Entry) score(last int) float64 {
	score := weight(e.Verb) + 20*e.When
	if e.ran() {
		return score - 50
	}
	if e.Left <= soon {
		score += 60 - 5*float64(e.Left)
	}
	if e.Process == last && (e.Left <= soon || e.Exit != 0) {
		score += 100
	}
	if e.Harmless != "" {
		score -= 200
	}
	return score
}

// ran reports whether the entry is about a program that ran without the rights that its file
// would give. It may not have needed them.
func (e *Entry) ran() bool { return e.By == string(answer.NoNewPrivs) && e.Errno == "" }
