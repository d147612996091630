package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/internal/program"
	"github.com/zsbx/zsbx/policy/compose"
	"github.com/zsbx/zsbx/policy/shell"
)

// decideExec asks the plan about executing a file.
func decideExec(plan *enforce.Plan, file string) enforce.Answer {
	path, st, _ := plan.Policy.Look(file)
	return plan.Decide(enforce.Act{Op: enforce.ActExec, Path: path, Mode: st.Mode.Type(), Inside: true})
}

// mayExec reports whether the plan lets a file be executed. No plan refuses nothing.
func mayExec(plan *enforce.Plan, file string) bool {
	return plan == nil || decideExec(plan, file).Verdict != enforce.Refused
}

// CheckExec says whether a command would start under a plan: whether it is found,
// and whether all that execve(2) opens for it may be executed. file is where it was
// found, and the answer that for it, or for the part that is refused.
func CheckExec(plan *enforce.Plan, args []string) (file string, answer enforce.Answer, _ error) {
	file, err := LookPath(args[0], plan.Policy.Env, plan.Policy.Dir)
	if err != nil {
		return "", enforce.Answer{}, err
	}
	for n, p := range execParts(file) {
		x := decideExec(plan, p.file)
		if err := executable(p.file); err != nil || x.Verdict == enforce.Refused {
			errno := syscall.EACCES
			if missing(err) {
				errno = syscall.ENOENT
			}
			return file, x, explainExec(plan, file, errno)
		}
		if n == 0 {
			answer = x
		}
	}
	return file, answer, nil
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

// execParts lists what execve(2) opens to run file: the file, the interpreters
// that "#!" lines name, and the ELF loader of the last one. It stops at what
// it can't read.
func execParts(file string) []part {
	parts := []part{{file: file}}
	for range program.Depth {
		f, err := os.Open(parts[len(parts)-1].file)
		if err != nil {
			break
		}
		next, loader := program.Interpreter(f)
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

// explainExec turns the errno of execve(2) for file into what the user should
// know: which file is missing, or which one the policy does not let execute.
func explainExec(plan *enforce.Plan, file string, errno syscall.Errno) *Error {
	parts := execParts(file)
	f := &Error{Code: CodeCannotRun, Err: fmt.Errorf("%s: %w", file, errno)}
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR:
		for i, p := range parts {
			if _, err := os.Stat(p.file); err != nil {
				f.Code = CodeNotFound
				if i > 0 {
					f.Err = fmt.Errorf("%s: %s does not exist", file, p)
				}
				return f
			}
		}
		// All is there, outside: what the command gets of its own hides it.
		if !explainDenied(plan, f, parts) {
			f.Code = CodeNotFound
		}
	case syscall.EACCES, syscall.EPERM:
		explainDenied(plan, f, parts)
	case syscall.ENOEXEC:
		f.Err = fmt.Errorf("%s: not a program for this machine: %w", file, errno)
	}
	return f
}

// explainDenied finds the first part that may not be executed, and reports
// whether there is one.
func explainDenied(plan *enforce.Plan, f *Error, parts []part) bool {
	cmd := parts[0].file
	for _, p := range parts {
		real, err := filepath.EvalSymlinks(p.file)
		if err != nil {
			continue
		}
		if err := executable(real); err != nil {
			f.Err = fmt.Errorf("%s: %s: %w", cmd, p, plainErr(err))
			return true
		}
		if !mayExec(plan, real) {
			f.Err = fmt.Errorf("%s: the policy does not allow executing %s", cmd, p)
			dir := filepath.Dir(real)
			if slices.Contains(compose.SharedDirs(), dir) {
				dir = real
			}
			f.Hint = "--rox " + shell.Quote(dir)
			return true
		}
	}
	return false
}

// plainErr strips the path from an error that is printed behind it.
func plainErr(err error) error {
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// isScriptWithoutInterpreter reports whether execvp(3) would hand file to /bin/sh.
func isScriptWithoutInterpreter(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return program.IsText(f)
}
