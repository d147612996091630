package supervise

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/program"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/policy"
)

// CheckExec returns an error if a command would not start under a plan: it is not found,
// or not all that execve(2) opens for it may be executed. file is where it was found. If err is
// nil, answer is the plan's decision for file. Otherwise it is the decision for the part that was
// refused.
func CheckExec(plan *enforce.Plan, args []string) (file string, answer enforce.Answer, err error) {
	file, err = LookPath(args[0], plan.Env, plan.Policy.Dir)
	if err == nil {
		answer, err = explainExec(plan, file, 0)
	}
	return file, answer, err
}

// CheckParts checks the files that execve(2) opens for a program, such as its
// interpreter. It returns the first that the plan refuses, as an answer and an error.
func CheckParts(plan *enforce.Plan, file string) (answer enforce.Answer, err error) {
	answer, err = explainExec(plan, file, 0)
	if answer.Verdict != enforce.Refused {
		err = nil
	}
	return answer, err
}

// part is one of the files that execve(2) has to open before a command runs.
type part struct {
	file string
	role string // "", "interpreter", "ELF loader"
}

// String names the part for a message about the command cmd.
func (p part) String() string {
	if p.role == "" {
		return p.file
	}
	return "its " + p.role + " " + p.file
}

// execParts lists what is opened to run file as execvp(3) does: the file, the interpreters
// that "#!" lines name, or else the shell, and the ELF loader of the last one. It stops at
// what it can't read.
func execParts(file string) []part {
	parts := []part{{file: file}}
	for range program.Depth {
		f, err := openProgram(parts[len(parts)-1].file)
		if err != nil {
			break
		}
		next, loader := program.Interpreter(f)
		if next == "" && len(parts) == 1 && program.IsText(f) {
			next = binSh // see launch
		}
		f.Close()
		switch {
		case next == "":
			return parts
		case loader:
			return append(parts, part{next, "ELF loader"})
		}
		parts = append(parts, part{next, "interpreter"})
	}
	return parts
}

// explainExec turns the errno of execve(2) for file into an error for the user, which says
// what is missing or can't be executed, or what the policy refuses: then the answer is the
// plan's. Without an errno, the error is nil if nothing is wrong, and the answer is about
// the file.
func explainExec(plan *enforce.Plan, file string, errno syscall.Errno) (answer enforce.Answer, _ error) {
	var own enforce.Answer
	for _, p := range execParts(file) {
		real, err := filepath.EvalSymlinks(p.file)
		if err == nil {
			err = executable(real)
		}
		switch {
		case err != nil && p.role == "":
			return answer, notRunnable(file, err)
		case err != nil:
			return answer, notRunnable(file+": "+p.String(), err)
		case plan == nil:
			continue
		}
		path, st, _ := plan.Policy.Look(real)
		got := plan.Decide(enforce.Act{Op: enforce.ActExec, Path: path, Mode: st.Mode.Type(), Inside: true})
		if got.Verdict == enforce.Refused {
			hint, why := learn.Program(plan.Policy, path)
			if v := plan.Policy.Allowed(real, policy.Exec); v.Deny != nil {
				why = v.Reason
			}
			e := cannotRun("%s: the policy does not allow executing %s", file, p)
			if why == "" {
				e.Hint = hint.Typed(plan.Policy)
			} else {
				e.Err = fmt.Errorf("%w: %s", e.Err, why)
			}
			return got, e
		}
		if p.role == "" {
			own = got
		}
	}
	if plan != nil && plan.Caps.OS == "macos" && isSetID(file) {
		return answer, cannotRun("%s: macOS executes no set-user-ID or set-group-ID program in a sandbox", file)
	}
	if errno == 0 && plan != nil && wants(file, plan.DropCapabilities) {
		errno = syscall.EPERM
	}
	switch errno {
	case 0:
		return own, nil
	case syscall.EPERM:
		if _, err := unix.Getxattr(file, "security.capability", nil); err == nil && plan != nil {
			return answer, cannotRun("%s: the capabilities of its file (getcap(8)) are not given here: %w", file, errno)
		}
	case syscall.ENOEXEC:
		return answer, cannotRun("%s: not a program for this machine: %w", file, errno)
	}
	return answer, notRunnable(file, errno)
}

func cannotRun(format string, args ...any) *Error {
	return &Error{Code: CodeCannotRun, Err: fmt.Errorf(format, args...)}
}

// isSetID reports whether a program's file gives it another user's or group's rights.
func isSetID(file string) bool {
	st, err := os.Stat(file)
	return err == nil && st.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0
}

// wants reports whether a program's file demands one of these capabilities. The kernel
// does not execute it without.
func wants(file string, capabilities uint64) bool {
	// struct vfs_cap_data has this flag, the lower halves of permitted and inheritable, then the
	// upper halves.
	const effective = 1
	var b [24]byte
	n, err := unix.Getxattr(file, "security.capability", b[:])
	if err != nil || n < 12 || b[0]&effective == 0 {
		return false
	}
	permitted := uint64(binary.LittleEndian.Uint32(b[4:])) | uint64(binary.LittleEndian.Uint32(b[12:]))<<32
	return permitted&capabilities != 0
}

// openProgram opens an executable file for reading. A script may name a FIFO, for which
// zsbx does not wait.
func openProgram(file string) (*os.File, error) {
	if err := executable(file); err != nil {
		return nil, err
	}
	return os.OpenFile(file, syscall.O_NONBLOCK, 0)
}

// defaultPath is where a command is looked up if its environment has no PATH, as by
// execvp(3) of the GNU C library.
const defaultPath = "/bin:/usr/bin"

// LookPath finds the file that execvp(3) would execute for name, without
// executing it: with a slash, name itself; else the first executable file of
// that name in the PATH of env. Relative elements of PATH, the empty one included,
// start at dir, the command's working directory.
//
// The error is an *Error, with CodeNotFound if nothing was found, and CodeCannotRun if
// what was found can't be executed.
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
		// A directory that this user may not search is skipped.
		if refused == nil && !missing(err) && !errors.Is(err, fs.ErrPermission) {
			refused = notRunnable(file, err)
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", &Error{Code: CodeNotFound, Err: fmt.Errorf("%s: not found in PATH", shell.Quote(name))}
}

// searchPath returns the first PATH of an environment, or the default.
func searchPath(env []string) string {
	for _, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			return path
		}
	}
	return defaultPath
}

// errNoX stands for EACCES from access(2). From stat(2) that is fs.ErrPermission.
var errNoX = errors.New("is not executable: permission denied")

// executable returns why this process could not execute file, or nil. It does not look
// into the file.
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
	err = syscall.Access(file, xOK)
	if errors.Is(err, syscall.EACCES) {
		return errNoX
	}
	return err
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// notRunnable returns the error for name, which was not started because of err.
func notRunnable(name string, err error) *Error {
	e := &Error{Code: CodeCannotRun, Err: fmt.Errorf("%s: %w", name, files.Plain(err))}
	if missing(err) {
		e.Code = CodeNotFound
	}
	return e
}
