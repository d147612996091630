// Package track finds and ends the sessions of zsbx: commands that were started by zsbx run, or by
// package sandbox, with all that they left behind, whoever started them and whether that program
// still lives.
//
// A program that was killed finds its sessions again by name or id:
//
//	st, err := track.OpenStore()
//	...
//	report, err := st.Reap(ctx, "job-7")
//
// Starting commands is package sandbox's work; with Options.TrackOnly it confines nothing.
package track

import (
	"context"
	"time"

	"github.com/zsbx/zsbx/internal/tempdir"
	"github.com/zsbx/zsbx/internal/track"
)

// SessionEnv is the variable that has a session's id, in the environment of its processes.
const SessionEnv = track.SessionEnv

// Kind is a way to keep track of all processes of a session.
type Kind string

// The trackers, strongest first. Fingerprint is macOS's, the others are Linux's.
const (
	Auto        Kind = "auto"        // the strongest that works here
	Domain      Kind = "domain"      // an outer Landlock domain with a keeper in it
	Fingerprint Kind = "fingerprint" // a Seatbelt profile with two recognizable answers
	Cgroup      Kind = "cgroup"      // a control group for the session
	Subtree     Kind = "subtree"     // a keeper that adopts every orphan
	Process     Kind = "process"     // the command itself, which replaced zsbx; can't be asked for
)

// Life is the state of a session.
type Life string

// The states of a session.
const (
	Starting  Life = "starting"  // its supervisor has just begun it
	Running   Life = "running"   // the command runs
	Kept      Life = "kept"      // the command ended, what it left behind keeps running
	Ending    Life = "ending"    // it is being killed
	Ended     Life = "ended"     // only its record is left
	Lost      Life = "lost"      // its keeper was killed, or stopped for good; something may be left
	Elsewhere Life = "elsewhere" // it belongs to another machine or PID namespace
)

// ErrNotFound says that there is no such session.
var ErrNotFound = track.ErrNotFound

// ErrElsewhere says that a session belongs to another machine or PID namespace.
var ErrElsewhere = track.ErrElsewhere

// Session is a session in the store, with its living processes.
type Session struct {
	ID      string    // a UUID
	Name    string    // given by the user, or ""
	Tracker Kind      // "" until something was started
	Life    Life      // its state
	Args    []string  // the command's; may be cut
	Dir     string    // the command's working directory
	Started time.Time // when it began
	Procs   []Proc    // living processes, without keeper and supervisor
	Err     error     // why some of its files can't be read; the rest is set all the same
}

// Proc is what can be seen of a process from outside.
type Proc struct {
	Pid   int      // its process id
	State string   // one letter, as in ps(1)
	Comm  string   // its name (proc_pid_comm(5)), which it can change
	Args  []string // its command line, which it can change; may be cut or empty
}

// Report says how a session was ended.
type Report struct {
	ID      string // of the session
	Name    string // of the session, or ""
	Tracker Kind   // what tracked it

	// Killed is how many processes were killed, as far as they were counted.
	Killed int

	// Proof says that certainly nothing of the session is left, and How says why that is certain.
	// Without Proof, Unproved says what can't be known.
	Proof    bool
	How      string
	Unproved string

	Survivors []Proc // what is known to be left
	Kept      bool   // the session keeps running, as asked for
	Removed   bool   // it was removed from the store
}

// Done reports whether the session is certainly gone.
func (r *Report) Done() bool { return r.Proof && !r.Kept && len(r.Survivors) == 0 }

// CheckName returns an error if a session can't have a name. It must be 1 to 64 letters, digits,
// dots, underscores and hyphens, begin with a letter or digit, and not look like an id.
func CheckName(name string) error { return track.CheckName(name) }

// Store has the sessions of one user, of this program and others.
type Store struct{ st *track.Store }

// OpenStore returns the store of the current user: $XDG_STATE_HOME/zsbx (~/.local/state/zsbx), or,
// if that can't be written, zsbx-UID in the directory for temporary files. Nothing is created
// before the first session begins.
func OpenStore() (*Store, error) {
	st, err := track.OpenStore()
	if err != nil {
		return nil, err
	}
	return &Store{st}, nil
}

// List returns all sessions, oldest first. It returns an error if a directory could not be read,
// together with what was found elsewhere.
func (s *Store) List() ([]Session, error) {
	all, err := s.st.List()
	var out []Session
	for i := range all {
		out = append(out, sessionOf(&all[i]))
	}
	return out, err
}

// Get returns the session that ref means: an id, a name, or the unambiguous beginning of an id. A
// name means the last session that had it. The error is ErrNotFound if there is none.
func (s *Store) Get(ref string) (Session, error) {
	info, err := s.st.Get(ref)
	if err != nil {
		return Session{}, err
	}
	return sessionOf(&info), nil
}

// Reap kills all that is left of the session that ref means, and removes it from the store, with its
// private temporary directory. It needs no new process. The report says whether it is certain that
// nothing is left. An error means that nothing could be done about the session or, if Report.Removed
// is true, that the temporary directory is left. If ctx is done before the last process dies, the
// report names the survivors. Without a deadline Reap may wait for ever. Two processes that reap the
// same session both succeed.
func (s *Store) Reap(ctx context.Context, ref string) (Report, error) {
	r, err := s.st.Reap(ctx, ref)
	if err == nil && r.Removed {
		err = tempdir.RemoveOf(r.Temp)
	}
	return Report{
		ID:        r.ID,
		Name:      r.Name,
		Tracker:   Kind(r.Tracker),
		Killed:    r.Killed,
		Proof:     r.Proof,
		How:       r.How,
		Unproved:  r.Unproved,
		Survivors: procsOf(r.Survivors),
		Kept:      r.Kept,
		Removed:   r.Removed,
	}, err
}

func sessionOf(i *track.Info) Session {
	return Session{
		ID:      i.ID,
		Name:    i.Name,
		Tracker: Kind(i.Tracker),
		Life:    Life(i.Life),
		Args:    i.Argv,
		Dir:     i.Dir,
		Started: i.Started,
		Procs:   procsOf(i.Procs),
		Err:     i.Err,
	}
}

func procsOf(all []track.Proc) []Proc {
	var out []Proc
	for _, p := range all {
		out = append(out, Proc{Pid: p.Pid, State: p.State, Comm: p.Name, Args: p.Argv})
	}
	return out
}
