package fork

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Step is one system call that a new process makes before it executes the command. Steps are
// data, so packages that plan them (a Landlock domain, a filter, a new session) have no code
// that runs in the child.
type Step struct {
	Tag  Tag        // identifies its failure, or ""
	Name string     // for the error message: "landlock_restrict_self(2)"
	Nr   uintptr    // the system call's number
	Args [6]uintptr // its arguments; they may point into Command.Memory

	// Out, if set, receives the result. It points into Command.Memory.
	Out *uintptr

	// Back makes results of earlier Steps arguments of this one. If Back[i] is n and not 0,
	// Args[i] is the result of the step n places before this one in the same list. So lists of
	// Steps can be copied.
	Back [6]uint32

	// MayFail says that the next step is made even if this one fails. Out then receives the
	// negative errno.
	MayFail bool

	// Hold says that the result is a descriptor that the keeper, if there is one, keeps open as
	// long as it lives. Only one step can have Hold.
	Hold bool

	// Same, if set, is compared after the call. If it differs, the step fails with ESTALE. It
	// points into Command.Memory.
	Same *Same

	result uintptr // the call's result, for Back
}

// Tag says what a Step is for, in a word or two. Each package that makes steps has its own
// tags, and recognizes failures by them.
type Tag string

// Same makes a Step fail with ESTALE unless *Got, in Command.Memory, equals Want but for the bits in
// Ignore. The first two words of struct stat (stat(3type)) say which file it is.
type Same struct {
	Got    *[2]uint64
	Want   [2]uint64
	Ignore [2]uint64
}

// TagNamespaces marks a failure to make Command.Namespaces.
const TagNamespaces Tag = "PID namespace"

// Command says what to start.
type Command struct {
	Path string   // the file to execute; it is not searched in PATH
	Args []string // argv, the name first
	Env  []string // NAME=VALUE; nothing is inherited
	Dir  string   // working directory; "" for the caller's

	// Files become the command's descriptors 0, 1 and 2. For a nil or missing File it gets the
	// caller's own descriptor. No other descriptor stays open.
	Files []*os.File

	// Before are the steps that the keeper makes first, so that it shares their effect with the
	// command: namespaces and mounts, which a Landlock domain would refuse. With Exec a thread
	// of a larger process makes them; the kernel does not let such a thread into a user
	// namespace.
	Before []Step

	// Steps are made by the command's own process, in order, right before exec. Its working
	// directory and descriptors are then in place.
	Steps []Step

	// Commit runs in the caller after the fork, on Linux while the keeper gets ready. On Linux
	// the command is executed only after all of them succeed, so what they store is there
	// before the command runs. If one fails, nothing is left running, and Start returns its
	// error. In the Process only KeeperPid (on macOS, Pid) is set.
	Commit []func(*Process) error

	// Cleanup runs in the caller when Start returns, with or without an error. It closes what
	// the Steps needed.
	Cleanup []func()

	// Namespaces are flags of clone(2) for making the keeper: CLONE_NEWPID, and CLONE_NEWUSER
	// without CAP_SYS_ADMIN. The keeper is then the init of its PID namespace
	// (pid_namespaces(7)): nothing below it can leave the namespace, and all of it ends with
	// the keeper. Linux only, and not with Exec.
	Namespaces uintptr

	Keeper *Keeper // Linux only, and not with Exec; nil means &Keeper{}

	// Limit is how long the command may run. The keeper enforces it even if the caller is
	// stopped or blocked. On macOS a goroutine of the caller does. Exec ignores it.
	Limit Limit

	// Terminal gives the command its own terminal session, with Files[0] as controlling
	// terminal.
	Terminal bool

	// Restore, if set, makes the keeper restore a terminal if the caller is gone. Linux only.
	Restore *Restore

	// Sockets, if set, is an end of a pair of Unix sockets that keep messages apart. By the other
	// end the caller asks the keeper for internet sockets: see SocketRequest. With AllLocal every
	// address is local in their network, which also has one that is not a loopback address. Linux
	// only.
	Sockets  *os.File
	AllLocal bool

	// Sandbox is the Seatbelt profile to run under, on macOS. Linux uses Steps.
	Sandbox *Sandbox

	memory *Memory // see Memory

	// All steps on Linux, in order. before has those that set up the keeper, then Before, then
	// Keeper.Steps. steps has those for the working directory and the files, then Steps.
	before, steps []Step
}

// Restore has what the caller will change a terminal's settings to, and what they are before. If
// a keeper finds the changed ones after the caller's end, it gives back the others.
type Restore struct {
	Terminal     *os.File
	Before, Then unix.Termios
}

// Limit is a time limit in real time. Time in which the command or the caller is stopped
// counts, as with timeout(1).
type Limit struct {
	// Time is how long the command may run before it gets SIGTERM, and SIGCONT in case it is
	// stopped. The event is TimedOut. When the command has ended, what is left is killed at
	// once, unless it is to be kept. 0 means no limit.
	Time time.Duration

	// Kill is how much later the whole session is killed. 0 means never.
	Kill time.Duration
}

func (c *Command) commit(p *Process) error {
	for _, f := range c.Commit {
		if err := f(p); err != nil {
			return err
		}
	}
	return nil
}

// StepError says which system call of the child failed. Unwrap returns the errno.
type StepError struct {
	Stage Stage
	Tag   Tag    // Step.Tag
	Name  string // Step.Name; the path for StageExec
	Errno syscall.Errno
}

// Stage says at which stage a start failed.
type Stage string

const (
	StageBefore  Stage = "before"  // Command.Before
	StageKeeper  Stage = "keeper"  // Keeper.Steps
	StageCommand Stage = "command" // Command.Steps
	StageExec    Stage = "exec"    // execution of the command
	StageHelper  Stage = "helper"  // on macOS, execution of the helper
)

func (e *StepError) Error() string {
	if e.Tag == "" {
		return fmt.Sprintf("%s: %s: %v", e.Stage, e.Name, e.Errno)
	}
	return fmt.Sprintf("%s: %s: %s: %v", e.Stage, e.Tag, e.Name, e.Errno)
}

func (e *StepError) Unwrap() error { return e.Errno }

// Start starts c and returns once the command was executed. If a Step or the execution fails,
// the error is a *StepError, and nothing was executed. On macOS Steps and a Keeper cause
// errors.ErrUnsupported.
func Start(c *Command) (*Process, error) {
	defer func() {
		for _, f := range c.Cleanup {
			f()
		}
	}()
	return start(c)
}

// Exec replaces the calling process by the command, which keeps its pid. It returns only if
// that fails. Before and Steps are made in a separate thread, which ends with Exec. So the
// caller is unchanged after a failure, except for its working directory, its descriptors 0 to 2
// and what the Steps did to the whole process. Keeper and Limit have no effect.
//
// On macOS c needs a Sandbox, without Steps. It confines the caller from then on, even after a
// failure.
func Exec(c *Command) error {
	if c.Keeper != nil {
		return errors.New("replacing the process: it can't have a keeper")
	}
	if err := c.commit(nil); err != nil {
		return err
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with this function
		failed <- execSelf(c)
	}()
	return <-failed
}

// StandardFile returns the caller's descriptor that a command with these files will have as
// number i.
func StandardFile(files []*os.File, i int) int {
	if i < len(files) && files[i] != nil {
		return int(files[i].Fd())
	}
	return i
}
