package track

import (
	"errors"
	"os"
	"testing"
)

func TestSession(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		check := canary(t)
		c := shell(t, `sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &); exit 7`)
		s := begin(t, o, c)
		if got := s.Tracker().Kind; got != o.Tracker {
			t.Errorf("tracker %s, want %s", got, o.Tracker)
		}
		ws, err := s.Wait()
		if err != nil || ws.ExitStatus() != 7 {
			t.Fatalf("status %v, %v", ws, err)
		}
		r, err := s.Close(deadline(t))
		if err != nil || !r.Done() || !r.Removed {
			t.Fatalf("%+v, %v", r, err)
		}
		if left := marked(t, s.ID()); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
		if left, err := os.ReadDir(o.Store.Dirs()[0]); err != nil || len(left) > 0 {
			t.Errorf("still on disk: %v, %v", left, err)
		}
		check()
	})
}

func TestKeepAndReap(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		o.Keep, o.Name = true, "kept"
		check := canary(t)
		s := begin(t, o, shell(t, `sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &)`))
		if _, err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		r, err := s.Close(deadline(t))
		if err != nil || !r.Kept || r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
		if _, err := Begin(o); !errors.As(err, new(*NameTakenError)) {
			t.Fatalf("a name was given twice: %v", err)
		}
		eventually(t, "five processes are listed", func() bool { return len(one(t, o.Store).Procs) == 5 })
		if i := one(t, o.Store); i.Life != Kept {
			t.Fatalf("%+v", i)
		}
		r, err = o.Store.Reap(deadline(t), "kept")
		if err != nil || !r.Done() || !r.Removed || r.Killed < 3 {
			t.Fatalf("%+v, %v", r, err)
		}
		if left := marked(t, s.ID()); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
		if _, err := o.Store.Reap(deadline(t), s.ID()); !errors.Is(err, ErrNotFound) {
			t.Errorf("reaped again: %v", err)
		}
		check()
	})
}
