package track

import (
	"errors"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// world is a model of some sessions. It says what must be alive and what the store must report,
// whatever happened to them.
type world struct {
	t        *testing.T
	o        Options
	sessions map[string]*modelled
}

// modelled is what the model knows about a session.
type modelled struct {
	keep       bool
	supervised *supervised
	supervisor bool // lives
	keeper     bool // lives
	processes  int  // how many must be alive
}

// TestModel runs random histories of sessions, crashes and reaps, and compares the system with
// the model after each step.
func TestModel(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		check := canary(t)
		histories := rounds(t)
		for n := range histories {
			o.Store = tempStore(t)
			w := &world{t: t, o: o, sessions: map[string]*modelled{}}
			steps := rapid.SliceOfN(rapid.IntRange(0, 1000), 8, 12).Example(n)
			for _, s := range steps {
				w.step(s)
				w.compare()
			}
			w.end()
		}
		check()
	})
}

// step does one thing to one session, chosen by the number.
func (w *world) step(n int) {
	id, m := "", (*modelled)(nil)
	for i, s := range w.sessions { // any
		if id == "" || (n/10)%2 == 0 {
			id, m = i, s
		}
	}
	if m == nil || n%10 < 3 && len(w.sessions) < 4 {
		m := &modelled{keep: n%2 == 0, supervisor: true, keeper: true, processes: 6}
		flags := "-"
		if m.keep {
			flags = "keep"
		}
		m.supervised = supervise(w.t, w.o, flags, "sleepers")
		w.sessions[m.supervised.id] = m
		return
	}
	switch n % 10 {
	case 3, 4: // the supervisor is killed
		if m.supervisor {
			_ = m.supervised.cmd.Process.Kill()
			_ = m.supervised.cmd.Wait()
			m.supervisor = false
			if !m.keep && m.keeper {
				m.keeper, m.processes = false, 0
			}
		}
	case 5: // the keeper is killed
		if m.keeper {
			_ = syscall.Kill(m.supervised.keeper, syscall.SIGKILL)
			m.keeper = false
			m.processes = min(m.processes, 5) // the command dies with it
		}
	case 6: // the command's first process is killed
		if m.processes == 6 {
			_ = syscall.Kill(m.supervised.pid, syscall.SIGKILL)
			m.processes = 5
			if m.keeper && !m.keep {
				m.keeper, m.processes = false, 0
			}
		}
	case 7: // stale sessions are removed
		rs, err := w.o.Store.Prune(deadline(w.t))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range rs {
			if w.sessions[r.ID].keeper {
				w.t.Fatalf("a living session was removed: %+v", r)
			}
			w.forget(r.ID)
		}
	default: // it is reaped
		r, err := w.o.Store.Reap(deadline(w.t), id)
		if errors.Is(err, ErrNotFound) {
			w.t.Fatalf("session %s is in the model and not in the store", id)
		}
		if err != nil || r.Left() || m.keeper && !r.Proof {
			w.t.Fatalf("%+v, %v", r, err)
		}
		w.forget(id)
	}
}

// forget drops a session that must be gone by now.
func (w *world) forget(id string) {
	w.t.Helper()
	if left := marked(w.t, id); len(left) > 0 {
		w.t.Fatalf("session %s was removed, and these are left: %v", id, left)
	}
	_ = w.sessions[id].supervised.cmd.Process.Kill()
	delete(w.sessions, id)
}

// compare waits until the world is as the model says.
func (w *world) compare() {
	w.t.Helper()
	for id, m := range w.sessions {
		eventually(w.t, "the processes are those of the model", func() bool { return len(marked(w.t, id)) == m.processes })
	}
	eventually(w.t, "the store says what the model says", func() bool {
		ls, err := w.o.Store.List()
		if err != nil || len(ls) != len(w.sessions) {
			return false
		}
		for _, i := range ls {
			m := w.sessions[i.ID]
			if m == nil || len(i.Procs) != m.processes || i.Life.Stale() == m.keeper {
				return false
			}
		}
		return true
	})
}

// end reaps all that is left.
func (w *world) end() {
	for id := range w.sessions {
		if r, err := w.o.Store.Reap(deadline(w.t), id); err != nil || r.Left() {
			w.t.Fatalf("%+v, %v", r, err)
		}
		w.forget(id)
	}
	eventually(w.t, "nothing is stored", func() bool {
		ls, err := w.o.Store.List()
		return err == nil && len(ls) == 0
	})
}
