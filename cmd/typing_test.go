package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// typingVariable makes the test binary call typing.
const typingVariable = "ZSBX_TEST_TYPING"

// typingCommand is the command "typing" of scripts.
func typingCommand(ts *testscript.TestScript, neg bool, args []string) {
	self, err := os.Executable()
	ts.Check(err)
	ts.Setenv(typingVariable, "yes")
	err = ts.Exec(self, args...)
	ts.Setenv(typingVariable, "")
	switch {
	case neg && err == nil:
		ts.Fatalf("unexpected success")
	case !neg:
		ts.Check(err)
	}
}

// typing runs a command on its own terminal, except for its output, and types the next line of a
// file at each question; what is typed before would be lost. What the terminal shows goes to
// stderr.
func typing() {
	keys, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	lines := strings.SplitAfter(string(keys), "\n")
	master, tty, err := pty.Open()
	if err != nil {
		panic(err)
	}
	c := exec.Command(os.Args[2], os.Args[3:]...)
	c.Stdin, c.Stdout, c.Stderr = tty, os.Stdout, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		panic(err)
	}
	tty.Close()
	var shown []byte
	for b := make([]byte, 1); ; {
		if _, err := master.Read(b); err != nil {
			break // all processes with the terminal have ended
		}
		os.Stderr.Write(b)
		shown = append(shown, b...)
		if len(lines) > 0 && (asks(shown)) {
			fmt.Fprint(master, lines[0])
			lines = lines[1:]
		}
	}
	var exit *exec.ExitError
	if errors.As(c.Wait(), &exit) {
		os.Exit(max(exit.ExitCode(), 1))
	}
}

// asks reports whether what a terminal shows ends with a question.
func asks(shown []byte) bool {
	for _, end := range []string{"uit? ", "[y/N] ", "away [t]? ", "back [b]? "} {
		if bytes.HasSuffix(shown, []byte(end)) {
			return true
		}
	}
	return false
}
