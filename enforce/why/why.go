package why

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/internal/watch"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/learn"
)

// Report is what a command was refused, for people and programs.
type Report struct {
	Status      int          `json:"status"`
	Proved      bool         `json:"proved"` // each error was seen to be given by the kernel
	Seen        int          `json:"seen"`   // system calls that were looked at
	Entries     []Entry      `json:"refusals"`
	Ordinary    int          `json:"ordinary"`    // refusals that there would be without zsbx too
	Environment []string     `json:"environment"` // variables that the command did not get and may have wanted
	More        bool         `json:"more"`        // there was more than could be remembered
	Causes      int          `json:"-"`           // entries that are marked as such
	Needs       []learn.Need `json:"-"`           // of all entries
}

// Entry is one thing that was refused, however often: the refusal that tells most of it,
// with Count, Proved, Left and When of all.
type Entry struct {
	Rank  int    `json:"rank"`
	Cause bool   `json:"cause"` // it looks like the reason why the command failed
	Verb  string `json:"operation"`
	Path  string `json:"path"`         // or a port, a socket, a process, a system call
	To    string `json:"to,omitempty"` // of a rename or link
	watch.Refusal
	By       string          `json:"by"`    // landlock, mounts, seccomp, sockets, seatbelt, or unknown
	Paths    int             `json:"paths"` // how many different ones it stands for
	Reason   string          `json:"reason"`
	Origin   policy.Origin   `json:"origin,omitzero"`
	Hint     learn.Hint      `json:"-"`
	Flags    string          `json:"hint,omitempty"`     // of Hint
	TOML     json.RawMessage `json:"toml,omitempty"`     // the policy of Hint
	Harmless string          `json:"harmless,omitempty"` // why programs go on without it, or ""
	Secret   bool            `json:"secret"`             // that is why there is no hint
}

// New makes the report of a command that ended with a status.
func New(plan *enforce.Plan, got enforce.Refusals, status int) *Report {
	r := &Report{Status: status, Proved: got.Proved, Seen: got.Seen, More: got.More}
	var list []*enforce.Refusal
	for i := range got.List {
		x := &got.List[i]
		if x.Ordinary {
			r.Ordinary += x.Count
			continue
		}
		for j := range x.Answer.Needs {
			n := &x.Answer.Needs[j]
			n.Why = harmless(plan.Policy.Home, x.Act.Verb(), n.Path)
		}
		list, r.Needs = append(list, x), append(r.Needs, x.Answer.Needs...)
	}
	rules := make(map[learn.Need]*learn.Proposal)
	for _, q := range learn.Rules(r.Needs, plan.Policy) {
		for _, n := range q.Needs {
			rules[n] = &q
		}
	}
	groups := make(map[any][]*enforce.Refusal) // what one rule would allow is one entry
	var order []any
	for _, x := range list {
		key := any([...]string{x.Act.Verb(), subject(x), x.Act.To, x.Answer.By, x.Errno, x.Via})
		if len(x.Answer.Needs) > 0 && !apart(x) && rules[x.Answer.Needs[0]] != nil { // apart hides, as harmless, the copying that follows
			key = rules[x.Answer.Needs[0]]
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], x)
	}
	for _, key := range order {
		q, _ := key.(*learn.Proposal)
		r.Entries = append(r.Entries, entry(plan.Policy, groups[key], q))
	}
	r.rank(status != 0)
	if status != 0 {
		r.Environment = wanted(plan.Policy.EnvDrop)
	}
	return r
}

// entry tells of refusals that the rule q would end, nil for none.
func entry(r *policy.Resolved, group []*enforce.Refusal, q *learn.Proposal) Entry {
	x := slices.MaxFunc(group, func(a, b *enforce.Refusal) int { return cmp.Compare(weight(a.Act.Verb()), weight(b.Act.Verb())) })
	e := Entry{Verb: x.Act.Verb(), Path: subject(x), To: x.Act.To, Refusal: x.Refusal, By: x.Answer.By, Reason: x.Answer.Reason, Origin: x.Answer.Origin,
		Hint: x.Answer.Hint, Secret: q == nil && x.Answer.Secret != ""}
	if q != nil {
		e.Hint = q.Hint(r)
	}
	e.Flags, e.TOML = e.Hint.Flags, e.Hint.JSON()
	if e.Harmless = harmless(r.Home, e.Verb, e.Path); apart(x) {
		e.Harmless = "programs copy where they can't rename"
	}
	if x.Unknown() {
		e.By, e.Reason = "unknown", "neither the policy nor file permissions say so: please report it"
	}
	if x.Via != "" {
		e.Reason += "; it is the interpreter of " + r.Short(x.Via)
	}
	paths := make(map[string]bool)
	e.Count = 0
	for _, x := range group {
		paths[x.Act.Path] = true
		e.Count, e.Proved = e.Count+x.Count, e.Proved && x.Proved
		e.Left, e.When = min(e.Left, x.Left), max(e.When, x.When)
	}
	e.Paths = len(paths)
	return e
}

// apart reports whether a rename failed only since its ends are mounts of their own.
func apart(x *enforce.Refusal) bool { return x.Errno == "EXDEV" && x.Answer.By == "mounts" }

// soon is how many calls a thread may make after the refusal that made it give up.
const soon = 8

// rank puts the likely cause first. Of a command that failed it marks that, and what a
// thread ended right after.
func (r *Report) rank(failed bool) {
	slices.SortStableFunc(r.Entries, func(a, b Entry) int { return cmp.Compare(b.score(), a.score()) })
	for i := range r.Entries {
		e := &r.Entries[i]
		e.Rank = i + 1
		if e.Cause = failed && e.Harmless == "" && (r.Causes == 0 || e.Left <= soon); e.Cause {
			r.Causes++
		}
	}
}

// score says how likely an entry is the cause: by what it is, how soon its thread ended,
// how late it was.
func (e *Entry) score() float64 {
	score := weight(e.Verb) + 20*e.When
	if e.Left <= soon {
		score += 60 - 5*float64(e.Left)
	}
	if e.Harmless != "" {
		score -= 80
	}
	return score
}
