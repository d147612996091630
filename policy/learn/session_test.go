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
	socket := learn.Need{Path: "/home/u/s.sock", Socket: true}
	var asked []string
	s := &learn.Session{Resolved: present(t, h)}
	s.Ask = func(q learn.Proposal) error {
		asked = append(asked, q.Path)
		if q.Path == "/home/u/data/b" {
			s.Refuse(q)
		} else {
			s.Accept(q, false)
		}
		return nil
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
	if more, err := unasked.Propose([]learn.Need{socket}); more || err != nil || len(unasked.Left()) != 1 {
		t.Errorf("unasked: %t, %v, left %v", more, err, unasked.Left())
	}
	unasked.Sockets = true // the control
	if more, _ := unasked.Propose(nil); !more || len(unasked.Left()) != 0 {
		t.Errorf("with sockets: left %v", unasked.Left())
	}
	unasked.Succeeded([]learn.Need{read("/home/u/data/a")})
	if len(unasked.Extra) != 1 || unasked.Extra[0].Harmless == "" {
		t.Errorf("extra %v", unasked.Extra)
	}
}
