package track

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// SessionEnv is the environment variable that tells a command, and all that
// it starts, the id of its session.
const SessionEnv = "ZSBX_SESSION"

// Errors of a Store.
var (
	// ErrNotFound says that no session has that id, name or prefix.
	ErrNotFound = errors.New("no such session")
	// ErrForeign says that a session, or the directory for sessions,
	// belongs to somebody else or can be changed by others.
	ErrForeign = errors.New("not yours alone")
	// ErrElsewhere says that a session belongs to another machine or PID
	// namespace and can only be reaped from there.
	ErrElsewhere = errors.New("the session runs elsewhere")
	// ErrHeld says that a session's files are locked, so that its keeper or
	// supervisor lives, but that none can be found.
	ErrHeld = errors.New("its files are locked by a keeper or supervisor that can't be told from others, or that runs in another container")
)

// ErrNoPlace says that no directory of a store can hold a new session.
var ErrNoPlace = errors.New("no directory can hold it")

// NameTakenError says that a live session has that name already.
type NameTakenError struct {
	Name string
	ID   string // the session that has it
}

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("session name %q: taken by the running session %s", e.Name, e.ID)
}

// AmbiguousError says that several sessions match what was given.
type AmbiguousError struct {
	Ref string
	IDs []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("session %q: %d sessions match: %s", e.Ref, len(e.IDs), strings.Join(e.IDs, ", "))
}

// Store is where the sessions of one user are kept: a directory of mode 0700
// with, for each session,
//
//	ID.record  what the session is: a Record as JSON, written before anything runs
//	ID.holder  what holds it: a Holder as JSON, written as soon as that is known
//	ID.state   the keeper's own word, see fork.KeeperState; locked with flock(2)
//	           for as long as the supervisor or the keeper lives
//
// (the first two written aside and renamed into place) and a symbolic link
// @NAME to the id for each session that has a name. Nothing is synced to the
// disk: after a crash of the machine no session is left that a record could be
// needed for. What a crash, a full disk or a hand made of the files is met when
// they are read: each is used by itself, as far as it can be.
type Store struct {
	places []place
}

// place is one directory of sessions.
type place struct {
	parent   string // the directory that "sessions" is in
	home     string // a directory above parent that is never made, or ""
	nofollow bool   // others can write where parent lies
}

const sessionsDir = "sessions"

// OpenStore gives the store of the current user: $XDG_STATE_HOME/zsbx
// (~/.local/state/zsbx), or, where that cannot be written, zsbx-UID in the
// directory for temporary files. The second is what a session within a session
// uses, as no command may write to the first. Nothing is created before the
// first session begins, and never a home directory.
func OpenStore() (*Store, error) {
	var s Store
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		s.places = append(s.places, place{parent: filepath.Join(d, "zsbx")})
	} else if h := homeDir(); h != "" {
		s.places = append(s.places, place{parent: filepath.Join(h, ".local", "state", "zsbx"), home: h})
	}
	tmp := filepath.Join(os.TempDir(), "zsbx-"+strconv.Itoa(os.Geteuid()))
	if filepath.IsAbs(tmp) {
		s.places = append(s.places, place{parent: tmp, nofollow: true})
	}
	if len(s.places) == 0 {
		return nil, errors.New("no place for session records: set HOME, XDG_STATE_HOME or TMPDIR to an absolute path")
	}
	return &s, nil
}

// OpenStoreAt gives the store in dir/sessions, with no other place to fall
// back on. dir need not exist.
func OpenStoreAt(dir string) (*Store, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("session store %q: not an absolute path", dir)
	}
	return &Store{places: []place{{parent: filepath.Clean(dir)}}}, nil
}

// Dirs are the directories in which sessions are looked for, in order. No
// command may be allowed to write to them.
func (s *Store) Dirs() []string {
	d := make([]string, 0, len(s.places))
	for _, p := range s.places {
		d = append(d, filepath.Join(p.parent, sessionsDir))
	}
	return d
}

// create makes the directory of a new session in the first place that can be
// written.
func (s *Store) create(id string) (*sessionDir, *os.File, error) {
	var errs []error
	for _, p := range s.places {
		o, err := p.open(true)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d, f, err := o.create(id)
		if err == nil {
			return d, f, nil
		}
		o.close()
		errs = append(errs, err)
	}
	return nil, nil, fmt.Errorf("%w: %w", ErrNoPlace, errors.Join(errs...))
}

// homeDir is $HOME, or the home directory that the user database has.
func homeDir() string {
	if h := os.Getenv("HOME"); filepath.IsAbs(h) {
		return h
	}
	if u, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return ""
}

// matchRef picks the id that ref means among ids: itself, or the only one that
// begins with it. Names were looked up before.
func matchRef(ref string, ids []string) (string, error) {
	var hits []string
	for _, id := range ids {
		if id == ref {
			return id, nil
		}
		if ref != "" && strings.HasPrefix(id, strings.ToLower(ref)) {
			hits = append(hits, id)
		}
	}
	switch len(hits) {
	case 0:
		return "", fmt.Errorf("session %q: %w", cut(ref, 80), ErrNotFound)
	case 1:
		return hits[0], nil
	}
	return "", &AmbiguousError{Ref: cut(ref, 80), IDs: hits}
}

// isID reports whether name is a session id in its only spelling.
func isID(name string) bool {
	if len(name) != len("00000000-0000-0000-0000-000000000000") {
		return false // the usual answer, and cheaper than an error
	}
	id, err := uuid.Parse(name)
	return err == nil && id.String() == name
}
