package track

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/zsbx/zsbx/track/internal/proc"
)

const (
	howKeeper = "the keeper, which adopts every orphan of the session, has no child left (wait4: ECHILD)"
	howReboot = "the machine was restarted since"
)

// Reap kills all that is left of the session that ref means and removes it
// from the store. It needs no new process and no memory of the session but
// what is on disk. The report says what was done and whether it is certain
// that nothing is left; an error, that the session could not be dealt with at
// all. When ctx is done before the last process died, the report names the
// survivors; without a deadline Reap may wait for ever.
//
// A session whose files were removed, but whose keeper lives, is found by its
// keeper (see Survey) and ended without proof. Two that reap the same session both succeed.
func (s *Store) Reap(ctx context.Context, ref string) (Report, error) {
	f, err := s.find(ref)
	if err != nil {
		return Report{}, err
	}
	defer f.close()
	r := Report{ID: f.record.ID, Name: f.record.Name, Tracker: f.record.Tracker, Temp: f.record.Temp}
	here, err := proc.Here()
	if err != nil {
		return r, err
	}
	switch f.away(here) {
	case "":
		err = f.reap(ctx, &r)
	case Elsewhere:
		err = fmt.Errorf("session %s: %w: on the machine %.64q, or in another PID namespace (a container?)", r.ID, ErrElsewhere, f.record.Host)
	default:
		if r.prove(howKeeper); !f.empty() {
			r.prove(howReboot)
		}
	}
	if err == nil && !r.Left() {
		err = f.forget(&r)
	}
	return r, err
}

// Within is a context for Reap that is over after some time, as Err says; nothing waits
// for its Done. The timer of another takes a place in epoll(7), without which Go's runtime
// ends the program: a session can use up all that its user has.
func Within(ctx context.Context, d time.Duration) context.Context {
	return &within{ctx, time.Now().Add(d)}
}

type within struct {
	context.Context
	end time.Time
}

func (w *within) Deadline() (time.Time, bool) { return w.end, true }

func (w *within) Err() error {
	if time.Now().After(w.end) {
		return context.DeadlineExceeded
	}
	return w.Context.Err()
}

// proveEmpty reports that the keeper said that nothing is left.
func (f *found) proveEmpty(r *Report) {
	r.prove(howKeeper)
	r.Killed += int(f.word.Killed)
	for i, name := range []string{"domain", "cgroup", "subtree"} { // the bits of KeeperState.Method
		if f.word.Method&(1<<i) != 0 {
			r.addMethod(name)
		}
	}
}

// forget removes the session from the store and its group from the system. It is no
// error if somebody else did so already, or does so at the same time.
func (f *found) forget(r *Report) error {
	if f.orphan {
		return nil
	}
	err := f.cleanup()
	if err == nil {
		if err = os.Remove(f.in.file(f.record.ID)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	r.Removed = err == nil
	return err
}

// Report is what a reaping came to.
type Report struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Tracker Kind   `json:"tracker"`

	Killed  int      `json:"killed"`            // processes that had to be killed, where that was counted
	Methods []string `json:"methods,omitempty"` // what was used: "domain", "cgroup", "subtree", "walk", "group"

	// Proof says that nothing of the session is left, How why that is
	// certain. Without it, Unproved says what can't be known.
	Proof    bool   `json:"proof"`
	How      string `json:"how,omitempty"`
	Unproved string `json:"unproved,omitempty"`

	Survivors []Proc `json:"survivors,omitempty"` // what is known to be left
	Kept      bool   `json:"kept,omitempty"`      // the session goes on, as it was asked for
	Removed   bool   `json:"removed"`             // it is gone from the store
	Temp      string `json:"temp,omitempty"`      // Options.Temp: for the caller to remove once Removed

	NotRemoved error `json:"-"` // why Session.Close could not take the session from the store
}

// Left reports whether something of the session is known to be left.
func (r *Report) Left() bool { return len(r.Survivors) > 0 || r.Kept }

// Done reports whether the session is certainly gone: what an exit status of 0
// means.
func (r *Report) Done() bool { return r.Proof && !r.Left() }

func (r *Report) prove(how string) { r.Proof, r.How, r.Unproved = true, how, "" }

func (r *Report) addMethod(m string) {
	if !slices.Contains(r.Methods, m) {
		r.Methods = append(r.Methods, m)
	}
}
