package track

import (
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

// SessionEnv is the environment variable with the session's id, for a command and all that it
// starts.
const SessionEnv = "ZSBX_SESSION"

var (
	// ErrNotFound says that no session has that id, name or prefix.
	ErrNotFound = errors.New("no such session")
	// ErrElsewhere says that a session belongs to another machine or PID
	// namespace and can only be reaped from there.
	ErrElsewhere = errors.New("the session runs elsewhere")
	// ErrLocked says that a session's files are locked, so its keeper or supervisor lives, but
	// neither was found.
	ErrLocked = errors.New("its files are locked by a keeper or supervisor that can't be identified, " +
		"that /proc hides (hidepid), or that runs in another container")
	// ErrInit says that a session's command is init, which no process in its PID namespace can
	// kill. Nothing of the session was killed.
	ErrInit = errors.New("its command is process 1, which no process in the same container can kill: " +
		"stop the container")
	// ErrNoDir says that no directory of a store can hold a new session.
	ErrNoDir = errors.New("no directory can hold it")
	// ErrNameTaken says that a live session has that name already.
	ErrNameTaken = errors.New("taken by the running session")

	errAmbiguous = errors.New("sessions match")
	errForeign   = errors.New("not yours alone") // another user's, or others can change it
	errOthers    = errors.New("another user's")
)

// Store has the sessions of one user, in a directory of mode 0700 with a file ID.session for
// each. The file begins with the keeper's own word, a fork.KeeperState. Then comes a Record as
// JSON, which is written before the command runs. The file is locked with flock(2) as long as
// the supervisor or the keeper lives. It is not synced to the disk, since a crash of the
// machine ends all sessions. If a crash, a full disk or a person damaged a file, each half is
// used as far as possible.
type Store struct {
	dirs []storeDir
}

// OpenStore returns the store of the current user: $XDG_STATE_HOME/zsbx (~/.local/state/zsbx),
// or, if that can't be written, zsbx-UID in the directory for temporary files. Nested sessions
// use the second, since no command may write to the first. Nothing is created before the first
// session begins, and a home directory is never created.
func OpenStore() (*Store, error) {
	var s Store
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		s.dirs = append(s.dirs, storeDir{parent: filepath.Join(d, "zsbx")})
	} else if h := homeDir(); h != "" {
		s.dirs = append(s.dirs, storeDir{parent: filepath.Join(h, ".local", "state", "zsbx"), above: h})
	}
	tmp := filepath.Join(os.TempDir(), "zsbx-"+strconv.Itoa(os.Geteuid()))
	if filepath.IsAbs(tmp) {
		s.dirs = append(s.dirs, storeDir{parent: tmp, above: os.TempDir(), nofollow: true})
	}
	if len(s.dirs) == 0 {
		return nil, errors.New("no place for session records: set HOME, XDG_STATE_HOME or TMPDIR to an absolute path")
	}
	return &s, nil
}

// OpenStoreAt returns the store in dir/sessions, without another directory to fall back on. dir
// need not exist.
func OpenStoreAt(dir string) (*Store, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("session store %q: not an absolute path", dir)
	}
	return &Store{dirs: []storeDir{{parent: filepath.Clean(dir)}}}, nil
}

// homeDir returns $HOME, or the home directory in the user database.
func homeDir() string {
	if h := os.Getenv("HOME"); filepath.IsAbs(h) {
		return h
	}
	if u, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return ""
}

// create makes the file of a new session in the first directory that can be written, and returns
// that directory.
func (s *Store) create(id string) (storeDir, *os.File, error) {
	var errs []error
	for _, p := range s.dirs {
		err := p.check(true)
		if err == nil {
			var f *os.File
			f, err = p.create(id)
			if err == nil {
				return p, f, nil
			}
		}
		errs = append(errs, err)
	}
	return storeDir{}, nil, fmt.Errorf("%w: %w", ErrNoDir, errors.Join(errs...))
}

// Parents returns the directories that the directories of sessions are in, whether they exist or not.
func (s *Store) Parents() (dirs []string) {
	for _, p := range s.dirs {
		dirs = append(dirs, p.parent)
	}
	return dirs
}

// Clear removes the directories of sessions. It is an error if something is in one, such as the file of a
// session that has just begun.
func (s *Store) Clear() error {
	return s.listed(true, func(p storeDir, _ []string) error {
		if err := unix.Rmdir(p.dir()); err != nil {
			return &os.PathError{Op: "rmdir", Path: p.dir(), Err: err}
		}
		return nil
	})
}

// each calls do for all directories that exist, with the sessions there.
func (s *Store) each(do func(p storeDir, ids []string) error) error {
	return s.listed(false, func(p storeDir, names []string) error { return do(p, sessionIDs(names)) })
}

// listed calls do for all directories that exist, with the names of their files. A directory that can't be
// used is an error, since it may have what is looked for. With skipOthers, another user's directory,
// such as after sudo -u, is left out: this user's sessions are not there.
func (s *Store) listed(skipOthers bool, do func(p storeDir, names []string) error) error {
	var errs []error
	for _, p := range s.dirs {
		var names []string
		err := p.check(false)
		if err == nil {
			names, err = p.names()
		}
		if err == nil {
			errs = append(errs, do(p, names))
		} else if !s.mayLack(p, skipOthers, err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// mayLack reports whether listed leaves out a directory that can't be used for that reason.
func (s *Store) mayLack(p storeDir, skipOthers bool, why error) bool {
	if errors.Is(why, fs.ErrNotExist) || errors.Is(why, unix.ENOTDIR) {
		return true
	}
	anybody := p.nofollow // somebody else may have made it first, where everybody can write
	if (skipOthers || anybody) && errors.Is(why, errOthers) {
		return true
	}
	// A command may not read its user's store, but it has a second directory.
	inside := os.Getenv(SessionEnv) != ""
	return inside && len(s.dirs) > 1 && errors.Is(why, fs.ErrPermission)
}

// Find returns the id of the session that ref means. ref is an id, a name, or the unambiguous
// beginning of an id. A name means the last session that had it. The error is ErrNotFound if
// there is none.
func (s *Store) Find(ref string) (string, error) {
	f, err := s.find(ref)
	if err != nil {
		return "", err
	}
	f.close()
	return f.record.ID, nil
}

// find is Find, and loads the session.
func (s *Store) find(ref string) (*found, error) {
	l := lookup{ref: ref, isName: CheckName(ref) == nil}
	err := s.each(func(p storeDir, ids []string) error {
		for _, id := range ids {
			l.add(p, id)
		}
		return nil
	})
	hits := l.hits
	if l.named != nil {
		hits = []*found{l.named}
	}
	if len(hits) == 0 {
		_, orphans, _ := s.Survey()
		hits = l.among(orphans)
	}
	missing := fmt.Errorf("session %.80q: %w", ref, ErrNotFound)
	switch len(hits) {
	case 0:
		return nil, errors.Join(append([]error{missing, err}, l.unread...)...)
	case 1:
		if hits[0].orphan {
			return hits[0], nil
		}
		f, err := hits[0].in.load(hits[0].record.ID)
		if errors.Is(err, fs.ErrNotExist) {
			err = missing
		}
		return f, err
	}
	var ids []string
	for _, f := range hits {
		ids = append(ids, f.record.ID)
	}
	return nil, fmt.Errorf("session %.80q: %d %w: %s", ref, len(hits), errAmbiguous, strings.Join(ids, ", "))
}

// lookup collects the sessions that ref may mean.
type lookup struct {
	ref    string
	isName bool     // else no record need be read
	hits   []*found // those whose id begins with ref
	named  *found   // the last one with that name, or nil
	unread []error  // why records that may have the name could not be read
}

func (l *lookup) begins(id string) bool {
	return l.ref != "" && strings.HasPrefix(id, strings.ToLower(l.ref))
}

// add looks whether ref may mean a session of a store.
func (l *lookup) add(p storeDir, id string) {
	if l.begins(id) {
		l.hits = append(l.hits, &found{in: p, record: Record{ID: id}})
	}
	if !l.isName {
		return
	}
	f, err := p.load(id)
	if err == nil {
		f.close()
		l.addNamed(f)
		err = f.damage
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.unread = append(l.unread, fmt.Errorf("session %s: %w", id, err))
	}
}

// addNamed takes a session with that name, if it is the last so far.
func (l *lookup) addNamed(f *found) {
	if f.record.Name != l.ref {
		return
	}
	if l.named == nil || f.record.Started.After(l.named.record.Started) {
		l.named = f
	}
}

// among returns the orphans that ref means.
func (l *lookup) among(orphans []Info) (hits []*found) {
	for _, o := range orphans {
		if l.begins(o.ID) {
			hits = append(hits, &found{record: o.Record, orphan: true})
		}
	}
	return hits
}
