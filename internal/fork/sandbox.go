package fork

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/internal/fingerprint"
)

// Sandbox is a Seatbelt profile for a command to run under; macOS only. A process can only
// apply one to itself, and Go can't run code between fork and exec. So the new process first
// executes a helper: this program, with SandboxArg as its first argument and the command after
// it. The program must call SandboxMain before anything else. The helper gets its orders
// through a pipe, closes all other descriptors, applies the profile, checks that it works, and
// executes the command.
type Sandbox struct {
	Profile string // in Seatbelt's language

	// Session is the session whose fingerprint the profile has. The helper checks the
	// fingerprint on itself.
	Session string

	// Hold is a descriptor that the helper keeps open until it becomes the command, or nil.
	// While another process than the caller has it open, the profile may not be in effect yet.
	// It is not passed on with External.
	Hold *os.File

	// External makes /usr/bin/sandbox-exec apply the profile. Then nothing checks the profile
	// before the command runs, and descriptors above 2 without close-on-exec stay open.
	External bool
}

// SandboxArg is the argument that makes a program the helper. The file to execute and its
// arguments, argv[0] first, come after it.
const SandboxArg = "__sandbox-exec"

// orders returns what the helper reads on its descriptor 3: the profile, the session, and the
// command's environment, separated by NULs. The command itself is in the helper's arguments.
func (c *Command) orders() (string, error) {
	o := slices.Concat([]string{c.Sandbox.Profile, c.Sandbox.Session}, c.Env, []string{ordersEnd})
	text := strings.Join(o, "\x00")
	if strings.Count(text, "\x00") >= len(o) {
		return "", errors.New("the environment contains a NUL byte")
	}
	return text, nil
}

// ordersEnd marks the end of complete orders. No variable begins with it.
const ordersEnd = "="

// parseOrders parses orders and checks that they are complete.
func parseOrders(text string) (b Sandbox, env []string, err error) {
	o := strings.Split(text, "\x00")
	if last := len(o) - 1; last < 2 || o[last] != ordersEnd || o[1] != "" && !fingerprint.Valid(o[1]) {
		return b, nil, errors.New("the orders are incomplete")
	}
	return Sandbox{Profile: o[0], Session: o[1]}, o[2 : len(o)-1], nil
}

// report is what the helper writes to its descriptor 4: an empty one right before it executes
// the command, and another one only if something failed.
type report struct {
	Message string        `json:"message,omitempty"` // why the command was not executed
	Errno   syscall.Errno `json:"errno,omitempty"`   // or the error of execve(2)
}

// outcome returns Start's error from the helper's reports.
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

// checkFingerprint checks what sandbox_check answered about the process itself. Other answers
// than the fingerprint's mean that the profile or the call is wrong.
func checkFingerprint(sandboxed, allow, deny int) error {
	if sandboxed != 1 {
		return fmt.Errorf("sandbox_check answers %d, not 1, to whether there is a sandbox", sandboxed)
	}
	if allow != 0 || deny != 1 {
		return fmt.Errorf("sandbox_check answers %d and %d, not 0 and 1, about the session's names", allow, deny)
	}
	return nil
}

// SandboxMain is the helper of Sandbox. A program that starts commands with a Sandbox must call
// it before anything else if its first argument is SandboxArg, and exit with its result:
//
//	if len(os.Args) > 1 && os.Args[1] == fork.SandboxArg {
//		os.Exit(fork.SandboxMain())
//	}
//
// It returns only on failure, and always 125. The process that started it gets the reason. On
// other systems than macOS it does nothing else.
func SandboxMain() int { return sandboxMain() }
