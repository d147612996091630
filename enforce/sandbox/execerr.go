package sandbox

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/enforce"
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

// RefusedExec is the first of the files that execve(2) opens for a command which the
// plan refuses to have executed, canonical; "" for none.
func RefusedExec(plan *enforce.Plan, args []string) string {
	file, err := LookPath(args[0], plan.Policy.Env, plan.Policy.Dir)
	if err != nil {
		return ""
	}
	for _, p := range execParts(file) {
		if !mayExec(plan, p.file) {
			path, _, _ := plan.Policy.Look(p.file)
			return path
		}
	}
	return ""
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

// interpreterDepth is how many interpreters execve(2) follows from script to
// script.
const interpreterDepth = 5

// execParts lists what execve(2) opens to run file: the file, the interpreters
// that "#!" lines name, and the ELF loader of the last one. It stops at what
// it can't read.
func execParts(file string) []part {
	parts := []part{{file: file}}
	for range interpreterDepth {
		last := parts[len(parts)-1].file
		interp, role := nextPart(last)
		if interp == "" {
			break
		}
		parts = append(parts, part{interp, role})
		if role == roleLoader {
			break
		}
	}
	return parts
}

const (
	roleInterpreter = "interpreter"
	roleLoader      = "ELF loader"
)

// nextPart reads what file needs to be executed by.
func nextPart(file string) (next, role string) {
	f, err := os.Open(file)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	head := readHead(f)
	if bytes.HasPrefix(head, []byte("#!")) {
		return shebang(head), roleInterpreter
	}
	if bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return elfLoader(f), roleLoader
	}
	return "", ""
}

// scriptHead is how much of a script the kernel reads to find its interpreter
// (BINPRM_BUF_SIZE).
const scriptHead = 256

// shebang gives the interpreter that the first line of a script names, without
// its argument.
func shebang(head []byte) string {
	line, _, _ := bytes.Cut(head[len("#!"):], []byte("\n"))
	name := strings.TrimLeft(string(line), " \t")
	if i := strings.IndexAny(name, " \t"); i >= 0 {
		name = name[:i]
	}
	return name
}

// longestPath is PATH_MAX of Linux, in bytes.
const longestPath = 4096

// elfLoader gives the PT_INTERP of an ELF file, "" when it has none.
func elfLoader(r io.ReaderAt) string {
	f, err := elf.NewFile(r)
	if err != nil {
		return ""
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < longestPath {
			b := make([]byte, p.Filesz)
			if _, err := p.ReadAt(b, 0); err != nil {
				return ""
			}
			return strings.TrimRight(string(b), "\x00")
		}
	}
	return ""
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

// isScriptWithoutInterpreter reports whether file is what execvp(3) hands to
// /bin/sh after ENOEXEC: a file that is no ELF program.
func isScriptWithoutInterpreter(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	head := readHead(f)
	return !bytes.HasPrefix(head, []byte(elf.ELFMAG)) && bytes.IndexByte(head, 0) < 0
}

// readHead reads the beginning of a file.
func readHead(f *os.File) []byte {
	head := make([]byte, scriptHead)
	n, _ := io.ReadFull(f, head)
	return head[:n]
}
