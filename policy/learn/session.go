package learn

import (
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// Session is what is learnt from several runs of a command.
type Session struct {
	Resolved *policy.Resolved     // without anything that was learnt
	Ask      func(Proposal) error // has Accept or Refuse called; nil accepts
	Sockets  bool                 // nil accepts sockets, too: anything may listen there
	Once     bool                 // there will be one run

	Accepted []Proposal
	Extra    []Proposal // harmless, or not needed
	left     []Left
	needs    []Need     // of the runs that failed
	pinned   []Proposal // accepted in another form than they were proposed
	never    []Proposal
}

// Policy is what was accepted.
func (s *Session) Policy() *policy.Policy { return Policy(s.Accepted, s.Resolved) }

// Accept takes a proposal; changed says that it is another one than was proposed.
func (s *Session) Accept(q Proposal, changed bool) {
	if changed {
		s.pinned = append(s.pinned, q)
	} else {
		s.Accepted = append(s.Accepted, q)
	}
}

// Refuse never proposes again what q would allow.
func (s *Session) Refuse(q Proposal) { s.never = append(s.never, q) }

// Propose makes proposals for what was refused in this run that failed, and all before,
// asks about those that are new, and reports whether any was accepted.
func (s *Session) Propose(needs []Need) (more bool, err error) {
	had, before := s.Accepted, s.Policy().Hash()
	s.needs = append(s.needs, needs...)
	open := slices.DeleteFunc(slices.Clone(s.needs), func(n Need) bool { return covered(s.pinned, &n) || covered(s.never, &n) })
	list, left := Propose(open, s.Resolved)
	s.Accepted, s.Extra, s.left = nil, nil, left
	preset := false // one is new: what else is needed shows when it is in use
	for _, q := range list {
		known := slices.ContainsFunc(had, func(o Proposal) bool { return o.Hint(s.Resolved) == q.Hint(s.Resolved) })
		switch {
		case preset && q.Preset == "" && q.Path != s.Resolved.Dir:
			continue
		case q.Harmless != "":
			s.Extra = append(s.Extra, q)
		case known || s.Ask == nil && (s.Sockets || !q.Socket):
			s.Accept(q, false)
		case s.Ask == nil: // it may be Docker's
			s.left = append(s.left, Left{Need: q.Needs[0], Why: "what listens there may do anything outside for the command; give the flag if that is meant"})
		default:
			if err := s.Ask(q); err != nil {
				return false, err
			}
		}
		took := func(o Proposal) bool { return o.Preset == q.Preset }
		preset = preset || !s.Once && !known && q.Preset != "" && slices.ContainsFunc(s.Accepted, took)
	}
	if preset {
		s.needs = nil
		for _, q := range s.Accepted {
			s.needs = append(s.needs, q.Needs...)
		}
	}
	s.Accepted = append(s.Accepted, s.pinned...)
	return before != s.Policy().Hash(), nil
}

// Succeeded notes what the command was refused and succeeded without.
func (s *Session) Succeeded(needs []Need) {
	list, _ := Propose(needs, s.Resolved)
	for _, q := range list {
		if q.Harmless == "" {
			q.Harmless = "it succeeds without"
		}
		if !slices.ContainsFunc(s.Extra, func(o Proposal) bool { return o.Hint(s.Resolved) == q.Hint(s.Resolved) }) {
			s.Extra = append(s.Extra, q)
		}
	}
}

// Left is what nothing was proposed or accepted for, each reason once.
func (s *Session) Left() []Left {
	said := make(map[Left]bool)
	return slices.DeleteFunc(slices.Clone(s.left), func(x Left) bool {
		once := Left{Why: x.Why}
		if x.Need.Socket {
			once.Need = x.Need
		}
		again := said[once] || covered(s.Accepted, &x.Need)
		said[once] = said[once] || !again
		return again
	})
}

// covered reports whether one of list would allow a need.
func covered(list []Proposal, n *Need) bool {
	return slices.ContainsFunc(list, func(q Proposal) bool { return q.Covers(n) })
}
