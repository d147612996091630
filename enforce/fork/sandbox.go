package fork

import (
	"errors"
	"fmt"
	"syscall"
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
	// Markers says that the session's marker files exist, so that the path
	// pair can be checked, too.
	Markers bool

	// External has /usr/bin/sandbox-exec put the profile on. Nothing then
	// checks the profile before the command runs, and descriptors above 2
	// that are not marked close-on-exec stay open.
	External bool
}

// SandboxArg is the argument by which a program is told to be the helper.
const SandboxArg = "__sandbox-exec"

// ErrSandboxed says that the process that was to put a sandbox on is in one
// already: Seatbelt's can't be nested.
var ErrSandboxed = errors.New("already running in a sandbox: macOS can't nest them")

// SandboxError says that the helper could not put the profile on; the command
// was not run. It unwraps to ErrSandboxed where that is the reason.
type SandboxError struct {
	Stage   string // "setup", "sandboxed", "profile", "check"
	Message string
}

func (e *SandboxError) Error() string {
	switch e.Stage {
	case helperSandboxed:
		return ErrSandboxed.Error()
	case helperProfile:
		return "macOS refused the profile: " + e.Message
	case helperCheck:
		return "the profile does not hold what it says: " + e.Message
	}
	return "preparing the sandbox: " + e.Message
}

// Is ties the stage to its error.
func (e *SandboxError) Is(target error) bool {
	return target == ErrSandboxed && e.Stage == helperSandboxed
}

// What the helper was about to do.
const (
	helperSetup     = "setup"
	helperSandboxed = "sandboxed"
	helperProfile   = "profile"
	helperCheck     = "check"
	helperExec      = "exec"
)

// order is what the helper is to do, as JSON on its descriptor 3.
type order struct {
	Profile string   `json:"profile"` // "" for none
	Session string   `json:"session,omitempty"`
	Markers bool     `json:"markers,omitempty"`
	Path    string   `json:"path"`
	Args    []string `json:"args"`
	Env     []string `json:"env"`
}

// report is what the helper says on its descriptor 4: one when all is ready,
// right before it executes the command, with Stage "", and one more only if
// something failed.
type report struct {
	Stage   string        `json:"stage,omitempty"`
	Message string        `json:"message,omitempty"`
	Errno   syscall.Errno `json:"errno,omitempty"`
}

// outcome turns the helper's reports into the error of Start.
func outcome(path string, reports []report) error {
	if len(reports) == 0 {
		return &SandboxError{Stage: helperSetup, Message: "the helper ended without a word"}
	}
	switch last := reports[len(reports)-1]; last.Stage {
	case "":
		return nil
	case helperExec:
		return &StepError{Stage: "exec", Name: path, Errno: last.Errno}
	default:
		return &SandboxError{Stage: last.Stage, Message: last.Message}
	}
}

// checkFingerprint judges what sandbox_check answered about the process
// itself. Anything but the fingerprint means that the profile, the call or the
// paths are not what they should be.
func checkFingerprint(sandboxed int, pairs map[string][2]int) error {
	if sandboxed != 1 {
		return fmt.Errorf("sandbox_check answers %d, not 1, to whether there is a sandbox", sandboxed)
	}
	for _, name := range []string{"names", "paths"} {
		if p, ok := pairs[name]; ok && p != [2]int{0, 1} {
			return fmt.Errorf("sandbox_check answers %d and %d, not 0 and 1, about the session's %s", p[0], p[1], name)
		}
	}
	return nil
}
