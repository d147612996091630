package learn

import (
	"cmp"
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// Session is what is learnt from several runs of a command.
type Session struct {
	Resolved *policy.Resolved                   // without anything that was learnt
	Ask      func(Proposal) ([]Proposal, error) // what is accepted of a proposal; nil accepts all but sockets

	Accepted []Proposal
	Left     []Left // what nothing was proposed or accepted for, each reason once

	needs        []Need     // of the runs that failed
	asked, taken []Proposal // by Ask
}

// Policy is what was accepted.
func (s *Session) Policy() *policy.Policy { return Policy(s.Accepted, s.Resolved) }

// Propose makes proposals for what was refused in this run that failed, and all before,
// asks about those that are new, and reports whether any was accepted.
func (s *Session) Propose(needs []Need) (more bool, err error) {
	before := s.Policy().Hash()
	s.needs = append(s.needs, needs...)
	open := slices.DeleteFunc(slices.Clone(s.needs), func(n Need) bool {
		return slices.ContainsFunc(s.asked, func(q Proposal) bool { return q.Covers(&n) })
	})
	list, left := Propose(open, s.Resolved)
	s.Accepted, s.Left = nil, left
	for _, q := range list {
		switch {
		case s.Ask != nil:
			taken, err := s.Ask(q)
			if err != nil {
				return false, err
			}
			s.asked, s.taken = append(s.asked, q), append(s.taken, taken...)
		case q.Key == "net.unix": // it may be Docker's
			s.Left = append(s.Left, Left{q.Need, "what listens there may do anything outside for the command; give the flag if that is meant"})
		default:
			s.Accepted = append(s.Accepted, q)
		}
	}
	s.Accepted = append(s.Accepted, s.taken...)
	slices.SortStableFunc(s.Left, func(a, b Left) int { return cmp.Compare(a.Why, b.Why) })
	s.Left = slices.CompactFunc(s.Left, func(a, b Left) bool { return a.Why == b.Why && a.Need.Key == "" })
	return before != s.Policy().Hash(), nil
}
