package track

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fingerprint"
)

// The marker files of a session on macOS. They have to exist while processes
// are asked about them: a missing path counts as denied. The session's own
// profile keeps its processes from changing them.

// makeMarkers makes the directory and the two files. A directory that exists
// already is an error: session ids are never used twice.
func makeMarkers(session string) error {
	err := os.Mkdir(fingerprint.Dir(session), 0o700)
	if err == nil {
		err = os.Chmod(fingerprint.Dir(session), 0o700) // whatever the umask is
	}
	if err != nil {
		return fmt.Errorf("making the session's markers: %w", err)
	}
	for _, name := range []string{fingerprint.Allow(session), fingerprint.Deny(session)} {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			err = errors.Join(f.Chmod(0o600), f.Close())
		}
		if err != nil {
			_ = removeMarkers(session, os.Geteuid())
			return fmt.Errorf("making the session's markers: %w", err)
		}
	}
	return checkMarkers(session, os.Geteuid())
}

// checkMarkers makes sure that the markers are what makeMarkers made: of that
// user, no symbolic links, nobody else's to change.
func checkMarkers(session string, owner int) error {
	for name, mode := range map[string]fs.FileMode{
		fingerprint.Dir(session):   fs.ModeDir | 0o700,
		fingerprint.Allow(session): 0o600,
		fingerprint.Deny(session):  0o600,
	} {
		st, err := os.Lstat(name)
		if err != nil {
			return err
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		if !ok || int(sys.Uid) != owner || st.Mode() != mode {
			return fmt.Errorf("%s: %w", name, errForeign)
		}
	}
	return nil
}

// removeMarkers removes what makeMarkers made, and nothing else: a directory
// that is not the owner's stays, and so does one that something else lies in.
func removeMarkers(session string, owner int) error {
	st, err := os.Lstat(fingerprint.Dir(session))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != owner || !st.IsDir() {
		return fmt.Errorf("%s: %w", fingerprint.Dir(session), errForeign)
	}
	for _, name := range []string{fingerprint.Allow(session), fingerprint.Deny(session), fingerprint.Dir(session)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the session's markers: %w", err)
		}
	}
	return nil
}
