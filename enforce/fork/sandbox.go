package fork

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/zsbx/zsbx/enforce/fingerprint"
)

// Sandbox is a Seatbelt profile for a command to run under; macOS only. A
// process can put one on only by itself, and Go has no place for that between
// fork and exec. So the new process executes a helper first: this very program
// with SandboxArg as its only argument, which has to call SandboxMain before
// anything else. The helper gets its orders through a pipe, closes all other
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

// SandboxArg is the argument by which a program is told to be the helper.
const SandboxArg = "__sandbox-exec"

// order is what the helper is to do, as JSON on its descriptor 3. What the
// command gets is bytes: names of files and values of variables need not be
// UTF-8, and JSON's strings are.
type order struct {
	Profile string   `json:"profile"` // "" for none
	Session string   `json:"session,omitempty"`
	Path    []byte   `json:"path"`
	Args    [][]byte `json:"args"`
	Env     [][]byte `json:"env"`
}

// newOrder is the order for a command.
func newOrder(c *Command) *order {
	o := &order{Path: []byte(c.Path), Args: bytesOf(c.Args), Env: bytesOf(c.Env)}
	if b := c.Sandbox; b != nil {
		o.Profile, o.Session = b.Profile, b.Session
	}
	return o
}

// parseOrder reads an order and makes sure that it is whole.
func parseOrder(b []byte) (*order, error) {
	o := new(order)
	if err := json.Unmarshal(b, o); err != nil {
		return nil, fmt.Errorf("reading the orders: %w", err)
	}
	if len(o.Path) == 0 || len(o.Args) == 0 || o.Session != "" && !fingerprint.Valid(o.Session) {
		return nil, errors.New("the orders are incomplete")
	}
	return o, nil
}

func bytesOf(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func stringsOf(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
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
// Sandbox calls it when its only argument is SandboxArg, before anything else,
// and exits with what it returns:
//
//	if len(os.Args) == 2 && os.Args[1] == fork.SandboxArg {
//		os.Exit(fork.SandboxMain())
//	}
//
// It returns only on failure, and always 125: the reason went to whoever
// started it. Outside of macOS it does nothing else.
func SandboxMain() int { return sandboxMain() }
