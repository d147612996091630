package fork

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// Step is one system call that a new process makes before it executes the
// command. Steps are data: whoever plans them (a Landlock domain, a filter, a
// new session) needs no code that runs in the child.
type Step struct {
	Tag  Tag        // what tells its failure from others', or ""
	Name string     // for the error message: "landlock_restrict_self(2)"
	Nr   uintptr    // the system call's number
	Args [6]uintptr // its arguments; what they point to is in Command.Memory

	// Out, when set, receives the result. It points into Command.Memory.
	Out *uintptr

	// Back makes results of earlier Steps the arguments of this one,
	// wherever the Steps are copied to: where Back[i] is n and not 0, Args[i]
	// is replaced by the result of the step n places before this one in the
	// same list.
	Back [6]uint16

	// MayFail says that the next step is made in any case. Out then
	// receives the negative errno of a call that failed.
	MayFail bool

	// Hold says that the result is a descriptor which the keeper, where there
	// is one, leaves open as long as it lives. Only one can be held.
	Hold bool

	// Same, when set, is compared after the call: where it differs, the step
	// has failed with ESTALE. It points into Command.Memory.
	Same *Same

	result uintptr // of the call, for Back
}

// Tag is what a Step is for, in a word or two. Each room that makes steps has its
// own, and knows by them what failed.
type Tag string

// Same makes a Step fail with ESTALE unless *Got, in Command.Memory, equals Want.
// The first two words of struct stat (stat(3type)) say which file it is.
type Same struct {
	Got  *[2]uint64
	Want [2]uint64
}

// TagNamespaces is that of the failure to make Command.Namespaces.
const TagNamespaces Tag = "PID namespace"

// Command is what to start.
type Command struct {
	Path string   // the file to execute; it is not searched in PATH
	Args []string // argv, the name first
	Env  []string // NAME=VALUE; nothing is inherited
	Dir  string   // working directory; "" for the caller's

	// Files become the descriptors 0, 1 and 2 of the command; no other
	// descriptor stays open in it. A nil or missing File passes the
	// caller's own descriptor on.
	Files []*os.File

	// Before are made first of all, by the keeper, so that it shares their
	// effect with the command: namespaces and mounts, which a Landlock domain
	// would refuse. With Exec that is a thread among others, which the kernel
	// lets into no user namespace.
	Before []Step

	// Steps are made in order by the command's own process, after its
	// working directory and descriptors are in place, right before exec.
	Steps []Step

	// Commit runs in the caller after the fork, on Linux while the keeper gets
	// ready. There the command is executed only if all succeed: what they store
	// is there before the command runs.
	// Where one fails nothing is left running, and its error is Start's. Of the
	// Process only KeeperPid (on macOS, Pid) is known then.
	Commit []func(*Process) error

	// Begun, when set, is given a word that is 0 until execve(2) of the command is
	// called, for a caller that may die while it waits for the answer. At the end of
	// Start it is given another, or nil when the command was not started. Linux only.
	Begun func(*uint32)

	// Cleanup runs in the caller once Start returns, whatever it returns:
	// it closes what the Steps needed.
	Cleanup []func()

	// Namespaces are flags of clone(2) by which the keeper is made: CLONE_NEWPID,
	// with CLONE_NEWUSER for who lacks CAP_SYS_ADMIN. It then is the init of its
	// PID namespace (pid_namespaces(7)): nothing below it can leave that, and all
	// of it ends when the keeper does. Linux only, and not with Exec.
	Namespaces uintptr

	Keeper *Keeper // Linux only, and not with Exec; nil is &Keeper{}

	// Share has the keeper use this process's memory rather than a copy, where that
	// can be: a faster start. It is for a process that runs this one command and
	// ends with it. Some memory is never given back, and when the kernel kills this
	// process because memory has run out, it kills the keeper as well.
	Share bool

	// Limit is how long the command may run. The keeper sees to it by its own
	// clock, whatever the caller does meanwhile, stopped or blocked; on macOS a
	// goroutine of the caller's does. Exec leaves it alone.
	Limit Limit

	// Forward are signals that this process, once the command starts and until
	// Process.Close, passes on to the command rather than handle them itself;
	// those that it ignores stay ignored. SIGINT and SIGQUIT from the keyboard
	// are not passed on: the terminal has sent them to the command already,
	// unless that has one of its own (Terminal). Only one command at a time can
	// have them, it needs CanForward; see Process.Forwarding.
	Forward []syscall.Signal

	// Terminal gives the command a session of its own, with Files[0] as its controlling
	// terminal.
	Terminal bool

	// Sandbox is the Seatbelt profile to run under, on macOS; Linux says it by Steps.
	Sandbox *Sandbox

	memory *Memory // see Memory

	// All steps on Linux, in their order. before has what makes the keeper, then Before,
	// then Keeper.Steps. steps has what places files and directory, then Steps.
	before, steps []Step
}

// Limit is a time limit, by the clock on the wall: time in which the command or
// the caller is stopped counts, as with timeout(1).
type Limit struct {
	// Time is after what the command is sent SIGTERM, and SIGCONT in case it
	// is stopped; TimedOut is the event. What is left when it has ended is
	// killed at once, unless it is to be kept. 0 is no limit.
	Time time.Duration

	// Kill is how much later the whole session is killed; 0 is never.
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

// StepError says which system call of the child failed. It unwraps to the
// errno.
type StepError struct {
	Stage Stage
	Tag   Tag    // Step.Tag
	Name  string // Step.Name; the path for StageExec
	Errno syscall.Errno
}

// Stage says where on the way to the command a start failed.
type Stage string

const (
	StageBefore  Stage = "before"  // Command.Before
	StageKeeper  Stage = "keeper"  // Keeper.Steps
	StageCommand Stage = "command" // Command.Steps
	StageExec    Stage = "exec"    // the execution of the command
	StageHelper  Stage = "helper"  // on macOS, that of the helper
)

func (e *StepError) Error() string {
	if e.Tag == "" {
		return fmt.Sprintf("%s: %s: %v", e.Stage, e.Name, e.Errno)
	}
	return fmt.Sprintf("%s: %s: %s: %v", e.Stage, e.Tag, e.Name, e.Errno)
}

func (e *StepError) Unwrap() error { return e.Errno }

// Start starts c and returns once the command was executed. When a Step or
// the execution failed, the error is a *StepError and nothing was executed.
// On macOS Steps and a Keeper are errors.ErrUnsupported; on other systems all is.
func Start(c *Command) (*Process, error) {
	defer func() {
		for _, f := range c.Cleanup {
			f()
		}
	}()
	return start(c)
}

// Exec replaces the calling process by the command, which keeps its pid. It
// returns only when that failed; Before and Steps are made in a thread of their
// own, which ends with it, so that the caller is as it was, but for its working
// directory, its Files and what the Steps did to the whole process. There is no
// Keeper, no Limit and nobody to Forward signals.
//
// On macOS a Sandbox is needed, which holds the caller from then on; on other
// systems it returns errors.ErrUnsupported.
func Exec(c *Command) error {
	if c.Keeper != nil {
		return errors.New("replacing the process: it can't have a keeper")
	}
	if err := c.commit(nil); err != nil {
		return err
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		failed <- execSelf(c)
	}()
	return <-failed
}

// StandardFile is the caller's descriptor that a command with these files will
// have as number i.
func StandardFile(files []*os.File, i int) int {
	if i < len(files) && files[i] != nil {
		return int(files[i].Fd())
	}
	return i
}
