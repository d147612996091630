package fork

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fingerprint"
)

// Sandbox is a Seatbelt profile for a command to run under; macOS only. A
// process can put one on only by itself, and Go has no place for that between
// fork and exec. So the new process executes a helper first: this very program
// with SandboxArg as its first argument and the command after it, which has to call
// SandboxMain before anything else. The helper gets its orders through a pipe, closes all other
// descriptors, puts the profile on, makes sure that it holds, and executes the
// command.
type Sandbox struct {
	Profile string // in Seatbelt's language

	// Session is the session whose fingerprint the profile carries. The
	// helper checks it on itself.
	Session string

	// Hold is a descriptor of the caller's that the helper has open, too, until
	// it has become the command: as long as it is open elsewhere, the profile
	// may not be on yet. nil for none; with External it is not passed on.
	Hold *os.File

	// External has /usr/bin/sandbox-exec put the profile on. Nothing then
	// checks the profile before the command runs, and descriptors above 2
	// that are not marked close-on-exec stay open.
	External bool
}

// SandboxArg is the argument by which a program is told to be the helper. The file to
// execute and its arguments, argv[0] first, come after it.
const SandboxArg = "__sandbox-exec"

// orders are what the helper reads on its descriptor 3, each ended by a NUL: the profile,
// the session, and the command's environment. The command itself is in its arguments.
func (c *Command) orders() (string, error) {
	o := slices.Concat([]string{c.Sandbox.Profile, c.Sandbox.Session}, c.Env, []string{ordersEnd})
	text := strings.Join(o, "\x00")
	if strings.Count(text, "\x00") >= len(o) {
		return "", errors.New("the environment contains a NUL byte")
	}
	return text, nil
}

// ordersEnd tells that the orders are whole. No variable begins so.
const ordersEnd = "="

// parseOrders reads orders and makes sure that they are whole.
func parseOrders(text string) (b Sandbox, env []string, err error) {
	o := strings.Split(text, "\x00")
	if last := len(o) - 1; last < 2 || o[last] != ordersEnd || o[1] != "" && !fingerprint.Valid(o[1]) {
		return b, nil, errors.New("the orders are incomplete")
	}
	return Sandbox{Profile: o[0], Session: o[1]}, o[2 : len(o)-1], nil
}

// report is what the helper says on its descriptor 4: an empty one when all is ready,
// right before it executes the command, and another only if something failed.
type report struct {
	Message string        `json:"message,omitempty"` // why the command was not executed
	Errno   syscall.Errno `json:"errno,omitempty"`   // or what execve(2) of it gave
}

// outcome turns the helper's reports into the error of Start.
func outcome(path string, reports []report) error {
	if len(reports) == 0 {
		return errors.New("preparing the sandbox: the helper ended without reporting")
	}
	switch last := reports[len(reports)-1]; {
	case last.Errno != 0:
		return &StepError{Stage: StageExec, Name: path, Errno: last.Errno}
	case last.Message != "":
		return errors.New(last.Message)
	}
	return nil
}

// checkFingerprint judges what sandbox_check answered about the process
// itself. Anything but the fingerprint means that the profile or the call is not
// what it should be.
func checkFingerprint(sandboxed int, names [2]int) error {
	if sandboxed != 1 {
		return fmt.Errorf("sandbox_check answers %d, not 1, to whether there is a sandbox", sandboxed)
	}
	if names != [2]int{0, 1} {
		return fmt.Errorf("sandbox_check answers %d and %d, not 0 and 1, about the session's names", names[0], names[1])
	}
	return nil
}

// SandboxMain is the helper of Sandbox. A program that starts commands with a
// Sandbox calls it when its first argument is SandboxArg, before anything else,
// and exits with what it returns:
//
//	if len(os.Args) > 1 && os.Args[1] == fork.SandboxArg {
//		os.Exit(fork.SandboxMain())
//	}
//
// It returns only on failure, and always 125: the reason went to whoever
// started it. Outside of macOS it does nothing else.
func SandboxMain() int { return sandboxMain() }
