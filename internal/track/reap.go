package track

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/zsbx/zsbx/internal/track/proc"
)

const (
	howKeeper = "the keeper, which adopts every orphan of the session, has no child left (wait4: ECHILD)"
	howReboot = "the machine was restarted since"
)

// Reap kills all that is left of the session that ref means and removes it from the store. It
// needs no new process and only the session's files. The report says what was done and whether
// it is certain that nothing is left. An error means that nothing could be done about the
// session. If ctx is done before the last process dies, the report names the survivors. Without
// a deadline Reap may wait for ever.
//
// If a session's files were removed but its keeper lives, Reap finds the keeper (see Survey)
// and ends the session without proof. Two processes that reap the same session both succeed.
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
		err = fmt.Errorf("session %s: %w: on the machine %.64q, or in another PID namespace (a container?)",
			r.ID, ErrElsewhere, f.record.Host)
	default:
		r.prove(howKeeper)
		if !f.empty() {
			r.prove(howReboot)
		}
	}
	if err == nil && !r.Left() {
		err = f.forget(&r)
	}
	return r, err
}

// proveEmpty records in the report that the keeper said that nothing is left.
func (f *found) proveEmpty(r *Report) {
	r.prove(howKeeper)
	r.Killed += int(f.word.Killed)
	for i, name := range []string{"domain", "cgroup", "subtree"} { // the bits of KeeperState.Method
		if f.word.Method&(1<<i) != 0 {
			r.addMethod(name)
		}
	}
}

// forget removes the session from the store and its group from the system. Another process may
// have done so already.
func (f *found) forget(r *Report) error {
	if f.orphan {
		return nil
	}
	if err := f.cleanup(); err != nil {
		return err
	}
	err := os.Remove(f.in.file(f.record.ID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.Removed = true
	return nil
}

// Report is the result of a Reap.
type Report struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Tracker Kind   `json:"tracker"`

	Killed  int      `json:"killed"`            // how many processes were killed, if counted
	Methods []string `json:"methods,omitempty"` // what was used: "domain", "cgroup", "subtree", "walk", "group"

	// Proof says that certainly nothing of the session is left, and How says why that is
	// certain. Without Proof, Unproved says what can't be known.
	Proof    bool   `json:"proof"`
	How      string `json:"how,omitempty"`
	Unproved string `json:"unproved,omitempty"`

	Survivors []Proc `json:"survivors,omitempty"` // what is known to be left
	Kept      bool   `json:"kept,omitempty"`      // the session keeps running, as asked for
	Removed   bool   `json:"removed"`             // it was removed from the store
	Temp      string `json:"temp,omitempty"`      // Options.Temp: the caller removes it if Removed is set

	NotRemoved error `json:"-"` // why Session.Close could not remove the session from the store
}

// Left reports whether something of the session is known to be left.
func (r *Report) Left() bool { return len(r.Survivors) > 0 || r.Kept }

// Done reports whether the session is certainly gone. Then the exit status is 0.
func (r *Report) Done() bool { return r.Proof && !r.Left() }

func (r *Report) prove(how string) {
	r.Proof = true
	r.How = how
	r.Unproved = ""
}

func (r *Report) addMethod(m string) {
	if !slices.Contains(r.Methods, m) {
		r.Methods = append(r.Methods, m)
	}
}
