package supervise

import (
	"slices"
	"strings"
	"sync"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// reached collects the rules that a command needs to reach what it has reached.
type reached struct {
	mu    sync.Mutex
	rules map[string]rule.Rule // by host and port
}

// event takes the end of a connection: by then it is known what it carried.
func (r *reached) event(e egress.Event) {
	if e.Broken || e.Kind != egress.Closed && e.Kind != egress.Cut {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, needed := range e.Verdict.Needed() {
		r.add(*needed)
	}
}

// add adds a rule. Two for the same host and port become one that allows what both do.
func (r *reached) add(one rule.Rule) {
	at := one
	at.Kind = ""
	at.Private = false
	at.ECH = false
	key := at.String()
	if r.rules == nil {
		r.rules = map[string]rule.Rule{}
	}
	old, known := r.rules[key]
	if known {
		one.Private = one.Private || old.Private
		one.ECH = one.ECH || old.ECH
	}
	if known && one.Kind != old.Kind {
		one.Kind = rule.TCP
	}
	r.rules[key] = one
}

// all returns the rules, sorted.
func (r *reached) all() (all []rule.Rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.rules {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b rule.Rule) int { return strings.Compare(a.String(), b.String()) })
	return all
}
