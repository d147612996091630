package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/policy/shell"
)

// defaultPath is where a command is searched when its environment has no
// PATH; execvp(3) of the GNU C library does the same.
const defaultPath = "/bin:/usr/bin"

// LookPath finds the file that execvp(3) would execute for name, without
// executing it: with a slash, name itself; else the first executable file of
// that name in the PATH of env. Relative elements of PATH, the empty one included,
// start at dir, the command's working directory.
//
// The error is an *Error, CodeNotFound when nothing was found, and CodeCannotRun
// when only things were found that can't be executed.
func LookPath(name string, env []string, dir string) (string, error) {
	if name == "" {
		return "", &Error{Code: CodeNotFound, Err: errors.New("the command's name is empty")}
	}
	if strings.Contains(name, "/") || name == "." || name == ".." { // these two are directories on PATH, too
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if err := executable(file); err != nil {
			return "", notRunnable(name, err)
		}
		return file, nil
	}
	var refused error
	for _, d := range filepath.SplitList(searchPath(env)) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		file := filepath.Join(d, name)
		err := executable(file)
		if err == nil {
			return file, nil
		}
		// A directory that this user may not look into has no commands for this user,
		// and hides none.
		if refused == nil && !missing(err) && !errors.Is(err, fs.ErrPermission) {
			refused = notRunnable(file, err)
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", &Error{Code: CodeNotFound, Err: fmt.Errorf("%s: not found in PATH", shell.Quote(name))}
}

// searchPath is the PATH of an environment; the first one counts.
func searchPath(env []string) string {
	for _, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			return path
		}
	}
	return defaultPath
}

// errNoX is what access(2) calls EACCES; that of stat(2) is fs.ErrPermission.
var errNoX = errors.New("is not executable: permission denied")

// executable reports whether file could be executed by this process, but for
// what is in it.
func executable(file string) error {
	st, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case st.IsDir():
		return errors.New("is a directory") // execve(2) says EACCES
	case !st.Mode().IsRegular():
		return errors.New("is not a regular file")
	}
	const xOK = 1 // X_OK of access(2)
	if err = syscall.Access(file, xOK); errors.Is(err, syscall.EACCES) {
		return errNoX
	}
	return err
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// notRunnable says why name was not started.
func notRunnable(name string, err error) *Error {
	e := &Error{Code: CodeCannotRun, Err: fmt.Errorf("%s: %w", name, files.Plain(err))}
	if missing(err) {
		e.Code = CodeNotFound
	}
	return e
}
