package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/learn"
)

// ask asks about a proposal, and about what it is made of where that is wanted.
func (l *learner) ask(q learn.Proposal) error {
	changed := false
	for queue := []learn.Proposal{q}; len(queue) > 0; {
		q, note := &queue[0], ""
		fmt.Fprintf(l.out, "zsbx: learn: %s  (for %s)\n[a]llow, [n]arrower, [w]ider, ne[v]er, [q]uit? ", printable(q.Flag(l.present)), l.about(q))
		answer, err := l.tty.ReadString('\n')
		switch answer = strings.ToLower(strings.TrimSpace(answer)); {
		case err != nil, answer == "q", answer == "quit":
			return &failure{status: exitFailed, err: errors.New("nothing was written")}
		case answer == "a", answer == "allow":
			if changed {
				l.pinned = append(l.pinned, *q)
			} else {
				l.asked[q.Flag(l.present)] = true
				l.accepted = append(l.accepted, *q)
			}
			queue = queue[1:]
		case answer == "v", answer == "never":
			l.never, queue = append(l.never, *q), queue[1:]
		case answer == "n", answer == "narrower":
			if parts := q.Narrower(); parts != nil {
				queue, changed = append(parts, queue[1:]...), true
			} else {
				note = "nothing narrower would do"
			}
		case answer == "w", answer == "wider":
			if up, ok := q.Wider(l.present, l.host); ok {
				queue[0], changed = up, true
			} else {
				note = "zsbx proposes nothing wider"
			}
		}
		if note != "" {
			fmt.Fprintf(l.out, "zsbx: learn: %s\n", note)
		}
	}
	return nil
}

// about says what a proposal is for.
func (l *learner) about(q *learn.Proposal) string {
	n := &q.Needs[0]
	what := n.Path
	if n.Port != 0 {
		what = fmt.Sprintf("TCP port %d", n.Port)
	}
	if len(q.Needs) > 1 {
		what += fmt.Sprintf(" and %d more", len(q.Needs)-1)
	}
	return printable(what)
}

// open is a policy with all files open but the places of secrets. What is recorded is
// what the present policy would refuse.
func (l *learner) open(c *composed, opts *sandbox.Options) (*policy.Policy, error) {
	model, err := sandbox.Plan(c.Policy, *opts)
	if err != nil {
		return nil, err
	}
	all := policy.Rule{Path: "/", Access: policy.Read | policy.Write | policy.Exec, Origin: flagOrigin("--permissive")}
	p := policy.Merge(c.Policy, &policy.Policy{FS: policy.FS{Rules: []policy.Rule{all}}})
	plan, err := sandbox.Plan(p, *opts)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapDeny }) {
		return nil, &failure{code: codeGap, status: exitFailed, err: errors.New("--permissive: places of secrets can't be kept closed here")}
	}
	l.a.say.warn("--permissive: COMMAND may change all files of yours in this run; only places of secrets are closed")
	opts.Model, l.present, l.host = model, model.Policy, &c.host
	return p, nil
}
