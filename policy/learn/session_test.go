package learn_test

import (
	"slices"
	"testing"

	"github.com/zsbx/zsbx/policy/learn"
)

// TestSession: rounds add up, nobody is asked the same again, what is refused stays
// refused, and no socket is accepted unasked.
func TestSession(t *testing.T) {
	h := host("/home/u/data/a", "/home/u/data/b", "/home/u/s.sock")
	socket := learn.Need{Path: "/home/u/s.sock", Key: "net.unix"}
	var asked []string
	s := &learn.Session{Resolved: present(t, h)}
	s.Ask = func(q learn.Proposal) ([]learn.Proposal, error) {
		asked = append(asked, q.Path)
		if q.Path == "/home/u/data/b" {
			return nil, nil
		}
		return []learn.Proposal{q}, nil
	}
	for round, c := range []struct {
		needs []learn.Need
		more  bool
	}{{[]learn.Need{read("/home/u/data/a")}, true}, {[]learn.Need{read("/home/u/data/b")}, false}, {[]learn.Need{socket}, true}, {nil, false}} {
		if more, err := s.Propose(c.needs); more != c.more || err != nil {
			t.Errorf("round %d: %t, %v", round, more, err)
		}
	}
	if want := []string{"/home/u/data/a", "/home/u/data/b", "/home/u/s.sock"}; !slices.Equal(asked, want) || len(s.Accepted) != 2 {
		t.Errorf("asked %q, want %q; accepted %v", asked, want, s.Accepted)
	}

	unasked := &learn.Session{Resolved: present(t, h)}
	if more, err := unasked.Propose([]learn.Need{socket}); more || err != nil || len(unasked.Left) != 1 {
		t.Errorf("unasked: %t, %v, left %v", more, err, unasked.Left)
	}
}
