package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// defaultPath is where a command is searched when its environment has no
// PATH; execvp(3) of the GNU C library does the same.
const defaultPath = "/bin:/usr/bin"

// execEnv is what the search for a command depends on.
type execEnv struct {
	dir  string // the command's working directory, for names with a slash
	path string // the command's PATH
}

// lookPath finds the file that execvp(3) would execute for name, without
// executing it: with a slash, name itself; else the first executable file of
// that name in PATH. Relative elements of PATH, the empty one included, start
// at the command's working directory.
//
// The error is a *failure with status 127 when nothing was found, and 126 when
// only things were found that can't be executed.
func lookPath(name string, e execEnv) (string, error) {
	if name == "" {
		return "", &failure{code: codeNotFound, status: exitNotFound, err: errors.New("the command's name is empty")}
	}
	if strings.Contains(name, "/") {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(e.dir, file)
		}
		if err := executable(file); err != nil {
			return "", notRunnable(name, err)
		}
		return file, nil
	}
	var refused error
	for _, dir := range filepath.SplitList(e.path) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(e.dir, dir)
		}
		file := filepath.Join(dir, name)
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if refused == nil && !missing(err) && !unsearchable(err) {
			refused = notRunnable(file, err)
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", notRunnable(name, errNotInPath)
}

var errNotInPath = errors.New("not found in PATH")

// errIsDir is what the kernel calls EACCES.
var errIsDir = errors.New("is a directory")

// executable reports whether file could be executed by this process, but for
// what is in it.
func executable(file string) error {
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return errIsDir
	}
	if !st.Mode().IsRegular() {
		return errors.New("is not a regular file")
	}
	const xOK = 1 // X_OK of access(2)
	if err := syscall.Access(file, xOK); err != nil {
		return err
	}
	return nil
}

// unsearchable tells a directory in PATH that this user may not look into. It
// has no commands for this user, and hides none.
func unsearchable(err error) bool {
	var pe *fs.PathError // from stat(2), not from access(2)
	return errors.As(err, &pe) && errors.Is(err, fs.ErrPermission)
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, errNotInPath)
}

// notRunnable says why name was not started, with the exit status of env(1).
func notRunnable(name string, err error) *failure {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	f := &failure{code: codeCannotRun, status: exitCannotRun, err: fmt.Errorf("%s: %w", name, err)}
	if missing(err) {
		f.code, f.status = codeNotFound, exitNotFound
	}
	if errors.Is(err, syscall.EACCES) {
		f.err = fmt.Errorf("%s: %w", name, errNoX)
	}
	return f
}

// errNoX is EACCES from access(2) with X_OK.
var errNoX = errors.New("is not executable: permission denied")
