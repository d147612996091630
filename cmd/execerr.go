package cmd

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

	"github.com/zsbx/zsbx/policy/shell"
)

// mayExec reports whether the policy allows executing a file.
type mayExec func(file string) bool

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
func explainExec(file string, errno syscall.Errno, allowed mayExec) *failure {
	parts := execParts(file)
	f := &failure{code: codeCannotRun, status: exitCannotRun, err: fmt.Errorf("%s: %w", file, errno)}
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR:
		for i, p := range parts {
			if _, err := os.Stat(p.file); err != nil {
				f.code, f.status = codeNotFound, exitNotFound
				if i > 0 {
					f.err = fmt.Errorf("%s: %s does not exist", file, p)
				}
				return f
			}
		}
		// All is there, outside: what the command gets of its own hides it.
		if !explainDenied(f, parts, allowed) {
			f.code, f.status = codeNotFound, exitNotFound
		}
	case syscall.EACCES, syscall.EPERM:
		explainDenied(f, parts, allowed)
	case syscall.ENOEXEC:
		f.err = fmt.Errorf("%s: not a program for this machine: %w", file, errno)
	}
	return f
}

// explainDenied finds the first part that may not be executed, and reports
// whether there is one.
func explainDenied(f *failure, parts []part, allowed mayExec) bool {
	cmd := parts[0].file
	for _, p := range parts {
		real, err := filepath.EvalSymlinks(p.file)
		if err != nil {
			continue
		}
		if err := executable(real); err != nil {
			f.err = fmt.Errorf("%s: %s: %w", cmd, p, plainErr(err))
			return true
		}
		if !allowed(real) {
			f.err = fmt.Errorf("%s: the policy does not allow executing %s", cmd, p)
			dir := filepath.Dir(real)
			if slices.Contains(sharedDirs(), dir) {
				dir = real
			}
			f.hint = "--rox " + shell.Quote(dir)
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
