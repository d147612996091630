package why

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/learn"
)

// knownFile is what is known of paths and variables.
//
//go:embed known.txt
var knownFile string

// Report is what a command was refused, for people and programs.
type Report struct {
	Status      int      `json:"status"`
	Proved      bool     `json:"proved"` // each error was seen to be given by the kernel
	Seen        int      `json:"seen"`   // system calls that were looked at
	Entries     []Entry  `json:"refusals"`
	Ordinary    int      `json:"ordinary"`    // refusals that there would be without zsbx too
	Environment []string `json:"environment"` // variables that the command did not get and may have wanted
	More        bool     `json:"more"`        // there was more than could be remembered
}

// Entry is one thing that was refused, however often.
type Entry struct {
	Rank     int             `json:"rank"`
	Cause    bool            `json:"cause"` // it looks like the reason why the command failed
	Verb     string          `json:"operation"`
	Path     string          `json:"path"`         // or a port, a socket, a process, a system call
	To       string          `json:"to,omitempty"` // of a rename or link
	Errno    string          `json:"errno"`
	By       string          `json:"by"` // landlock, mounts, seccomp, sockets, seatbelt, or unknown
	Program  string          `json:"program"`
	Pid      int             `json:"pid"`
	Count    int             `json:"count"`
	Paths    int             `json:"paths"` // how many different ones it stands for
	Proved   bool            `json:"proved"`
	Reason   string          `json:"reason"`
	Via      string          `json:"interpreter_of,omitempty"` // the program whose interpreter Path is, or ""
	Origin   policy.Origin   `json:"origin,omitzero"`
	Hint     learn.Hint      `json:"-"`
	Flag     string          `json:"hint,omitempty"`     // Hint, as flags
	TOML     json.RawMessage `json:"toml,omitempty"`     // Hint, as a policy
	Harmless string          `json:"harmless,omitempty"` // why programs go on without it, or ""
	Secret   bool            `json:"secret"`             // that is why there is no hint

	seen map[string]bool
	left int
	when float64
}

// New makes the report. env are the names of the variables that the command did not
// get.
func New(plan *enforce.Plan, got *enforce.Refusals, status int) *Report {
	r := &Report{Status: status, Proved: got.Proved, Seen: got.Seen, More: got.More}
	rules := learn.Rules(Needs(plan, got), plan.Policy)
	index := make(map[any]int)
	for i := range got.List {
		x := &got.List[i]
		if x.Ordinary {
			r.Ordinary += x.Count
			continue
		}
		q := narrowest(rules, x)
		key := any(q)
		if q == nil {
			key = [...]string{x.Act.Verb(), subject(x), x.Act.To, x.Answer.By, x.Errno, x.Via}
		}
		at, ok := index[key]
		if !ok {
			at = len(r.Entries)
			index[key], r.Entries = at, append(r.Entries, Entry{Proved: true, seen: make(map[string]bool), left: x.Left})
		}
		r.Entries[at].add(plan.Policy, x, q)
	}
	slices.SortStableFunc(r.Entries, func(a, b Entry) int { return cmp.Compare(b.score(), a.score()) })
	for i := range r.Entries {
		e := &r.Entries[i]
		e.Rank, e.Flag, e.TOML = i+1, e.Hint.String(), e.Hint.JSON()
		e.Cause = status != 0 && e.left <= soon && e.Harmless == ""
	}
	if status != 0 {
		if i := slices.IndexFunc(r.Entries, func(e Entry) bool { return e.Harmless == "" }); i >= 0 && r.Causes() == 0 {
			r.Entries[i].Cause = true
		}
		r.Environment = wanted(plan.Policy.EnvDrop)
	}
	return r
}

// soon is how many calls a thread may make after the refusal that made it give up.
const soon = 8

// score says how likely an entry is the cause: by what it is, how soon its thread ended,
// how late it was.
func (e *Entry) score() float64 {
	score := weight(e.Verb) + 20*e.when
	if e.left <= soon {
		score += 60 - 5*float64(e.left)
	}
	if e.Harmless != "" {
		score -= 80
	}
	return score
}

// Causes counts the entries that are marked: what a thread ended right after, or else
// the first that programs do not go on without.
func (r *Report) Causes() (n int) {
	for i := range r.Entries {
		if r.Entries[i].Cause {
			n++
		}
	}
	return n
}

// wanted are the variables that a failed command may have wanted: agents, displays,
// tokens, and what has programs load things.
func wanted(dropped []string) []string {
	return slices.DeleteFunc(slices.Clone(dropped), func(name string) bool {
		for line := range strings.Lines(knownFile) {
			if is, _ := path.Match(strings.TrimSpace(line), "$"+name); is {
				return false
			}
		}
		return true
	})
}
