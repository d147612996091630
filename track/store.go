package track

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SessionEnv is the environment variable that tells a command, and all that
// it starts, the id of its session.
const SessionEnv = "ZSBX_SESSION"

var (
	// ErrNotFound says that no session has that id, name or prefix.
	ErrNotFound = errors.New("no such session")
	// ErrElsewhere says that a session belongs to another machine or PID
	// namespace and can only be reaped from there.
	ErrElsewhere = errors.New("the session runs elsewhere")
	// ErrHeld says that a session's files are locked, so that its keeper or
	// supervisor lives, but that none can be found.
	ErrHeld = errors.New("its files are locked by a keeper or supervisor that can't be told from others, that /proc hides (hidepid), or that runs in another container")
	// ErrInit says that a session's command is init, which nobody in its PID namespace
	// can kill. Nothing of the session was.
	ErrInit = errors.New("its command is process 1, which no process in the same container can kill: stop the container")
	// ErrNoPlace says that no directory of a store can hold a new session.
	ErrNoPlace = errors.New("no directory can hold it")
	// ErrNameTaken says that a live session has that name already.
	ErrNameTaken = errors.New("taken by the running session")

	errAmbiguous = errors.New("sessions match")
	errForeign   = errors.New("not yours alone") // somebody else's, or others can change it
)

// Store is where the sessions of one user are kept: a directory of mode 0700 with a
// file ID.session for each. It begins with the keeper's own word, a fork.KeeperState;
// then comes what the session is and what holds it, a Record as JSON, written before
// the command runs. It is locked with flock(2) for as long as the supervisor or the
// keeper lives. Nothing is synced to the disk: after a crash of the machine no session
// is left that a record could be needed for. What a crash, a full disk or a hand made
// of a file is met when it is read: each half is used as far as it can be.
type Store struct {
	places []place
}

// place is one directory of sessions.
type place struct {
	parent   string // the directory that "sessions" is in
	above    string // a directory above parent that is never made, or ""
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
		s.places = append(s.places, place{parent: filepath.Join(h, ".local", "state", "zsbx"), above: h})
	}
	tmp := filepath.Join(os.TempDir(), "zsbx-"+strconv.Itoa(os.Geteuid()))
	if filepath.IsAbs(tmp) {
		s.places = append(s.places, place{parent: tmp, above: os.TempDir(), nofollow: true})
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

// Dirs are the directories in which sessions are looked for, in order. No
// command may be allowed to write to them.
func (s *Store) Dirs() []string {
	d := make([]string, 0, len(s.places))
	for _, p := range s.places {
		d = append(d, filepath.Join(p.parent, sessionsDir))
	}
	return d
}

// create makes the file of a new session in the first place that can be written, and
// gives that.
func (s *Store) create(id string) (opened, *os.File, error) {
	var errs []error
	for _, p := range s.places {
		o, err := p.open(true)
		if err == nil {
			var f *os.File
			if f, err = o.create(id); err == nil {
				return o, f, nil
			}
			o.close()
		}
		errs = append(errs, err)
	}
	return opened{}, nil, fmt.Errorf("%w: %w", ErrNoPlace, errors.Join(errs...))
}

// each opens all places that exist. Places that can't be used are errors of
// their own: one of them may hold what somebody looks for.
func (s *Store) each(do func(o opened) error) error {
	var errs []error
	inside := os.Getenv(SessionEnv) != ""
	for _, p := range s.places {
		o, err := p.open(false)
		switch {
		case err == nil:
			errs = append(errs, do(o))
			o.close()
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), p.foreign():
		case errors.Is(err, fs.ErrPermission) && inside && len(s.places) > 1: // a command may not look into its user's store
		default:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Find gives the id of the session that ref means: an id, a name, or the
// beginning of an id that no other has. Of a name the last session counts. The error is
// ErrNotFound if there is none.
func (s *Store) Find(ref string) (string, error) {
	var ids []string
	var named Record
	err := s.each(func(o opened) error {
		all, err := o.ids()
		ids = append(ids, all...)
		for _, id := range all {
			if CheckName(ref) != nil {
				break // no name: no record need be read
			}
			if f, lerr := o.load(id); lerr == nil {
				f.close()
				if r := f.record; r.Name == ref && r.Started.After(named.Started) {
					named = r
				}
			}
		}
		return err
	})
	if named.ID != "" {
		return named.ID, nil
	}
	id, merr := matchRef(ref, ids)
	if !errors.Is(merr, ErrNotFound) {
		return id, merr
	}
	ids = nil
	orphans, _ := s.allOrphans()
	for _, o := range orphans {
		ids = append(ids, o.ID)
	}
	if id, oerr := matchRef(ref, ids); !errors.Is(oerr, ErrNotFound) {
		return id, oerr
	}
	return "", errors.Join(merr, err)
}

// matchRef picks the id that ref means among ids: itself, or the only one that
// begins with it. Names were looked up before.
func matchRef(ref string, ids []string) (string, error) {
	var hits []string
	for _, id := range ids {
		if ref == "" || !strings.HasPrefix(id, strings.ToLower(ref)) {
			continue
		}
		if id == ref {
			return id, nil
		}
		hits = append(hits, id)
	}
	switch len(hits) {
	case 0:
		return "", fmt.Errorf("session %.80q: %w", ref, ErrNotFound)
	case 1:
		return hits[0], nil
	}
	return "", fmt.Errorf("session %.80q: %d %w: %s", ref, len(hits), errAmbiguous, strings.Join(hits, ", "))
}

// with finds a session and calls do while it is open. The error is ErrNotFound
// if there is none.
func (s *Store) with(id string, do func(f *found) error) error {
	seen := false
	var answer error
	err := s.each(func(o opened) error {
		if seen {
			return nil
		}
		f, err := o.load(id)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		seen = true
		if answer = err; err == nil {
			answer = do(f)
			f.close()
		}
		return nil
	})
	switch {
	case seen:
		return answer // whatever other places are like
	case err != nil:
		return err
	}
	all, err := s.allOrphans()
	for _, o := range all {
		if o.ID == id {
			return do(&found{record: Record{ID: id, Holder: Holder{Keeper: o.Keeper.ID}}, orphan: true})
		}
	}
	return cmp.Or(err, fmt.Errorf("session %q: %w", id, ErrNotFound))
}
