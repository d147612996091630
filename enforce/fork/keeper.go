package fork

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"
)

// ReapSignal asks a keeper, from any process outside its session, to kill the
// session and to end once nothing is left of it.
const ReapSignal = syscall.SIGTERM

// Keeper says what the keeper does, the process between the caller and the
// command: a fork of the caller that never executes anything, holds no descriptor
// but its own few, ignores the terminal, and lives until the session is empty.
type Keeper struct {
	// Steps are made by the keeper before it starts the command: its own,
	// outer, Landlock domain.
	Steps []Step

	// Domain says that Steps put the keeper into a Landlock domain with
	// LANDLOCK_SCOPE_SIGNAL and that Command.Steps put the command into a
	// nested one with the same scope. The keeper proves that its domain
	// holds, by being refused a signal to the caller, and only then ever
	// calls kill(-1, SIGKILL). Start fails with ErrNoDomain if the proof
	// fails.
	Domain bool

	// CgroupKill is an open cgroup.kill file of a cgroup that holds the
	// session, or nil. The keeper writes "1" to it before it kills by its
	// other means.
	CgroupKill *os.File

	// Keep leaves alone what is still running when the command has ended
	// or the caller is gone; the keeper then stays until all of it ended
	// or a ReapSignal comes. Without Keep the rest is killed: at once when
	// the caller is gone, 0.3 s after the command's end else, so that what
	// only had to write what it was given can do so.
	Keep bool

	// State is a regular file into which the keeper writes a KeeperState at
	// offset 0 whenever that changes, or nil. It is the keeper's word to
	// later processes.
	State *os.File
}

// Phase is how far a keeper is.
type Phase uint32

// The phases. Only PhaseEmpty is a proof: wait4(2) said ECHILD to the
// subreaper of the whole session.
const (
	PhaseFailed  Phase = iota + 1 // this keeper started nothing; its caller may try again
	PhaseRunning                  // the command runs
	PhaseKept                     // the command ended, others go on
	PhaseKilling                  // SIGKILL was sent, the end is awaited
	PhaseEmpty                    // nothing is left; the keeper is about to exit
)

// KeeperState is what a keeper writes into Keeper.State: 32 bytes, in the
// machine's byte order.
type KeeperState struct {
	Magic      uint32 // KeeperMagic
	Phase      Phase
	CommandPid int32  // 0 once the command ended, and always in a PID namespace of its own
	WaitStatus uint32 // the command's, as wait4(2) gives it, from PhaseKept on
	Killed     uint32 // processes that ended by SIGKILL after the killing began
	Method     uint32 // how: MethodDomain, MethodCgroup, MethodSubtree
	TimedOut   uint32 // 1 if the command was asked to end, by Command.Limit
	_          uint32
}

// KeeperMagic marks a KeeperState.
const KeeperMagic = 0x7a736278

// KeeperStateSize is the size of a KeeperState, in bytes.
const KeeperStateSize = 32

// The bits of KeeperState.Method.
const (
	MethodDomain  = 1 << iota // kill(-1, SIGKILL) from inside the session's Landlock domain
	MethodCgroup              // cgroup.kill
	MethodSubtree             // the keeper's children, until none is left
)

// ErrNoDomain means that a keeper was not in the Landlock domain that it was
// said to be in. The command was not started.
var ErrNoDomain = errors.New("the keeper's Landlock domain has no effect")

// ErrKeeperLost means that a keeper ended without saying that its session is
// empty: somebody outside of the session killed it.
var ErrKeeperLost = errors.New("the keeper is gone")

// ReadKeeperState reads what a keeper last wrote into its state file. A file
// that is too short or has no KeeperMagic is an error.
func ReadKeeperState(f io.ReaderAt) (KeeperState, error) {
	var st KeeperState
	if _, err := f.ReadAt(unsafe.Slice((*byte)(unsafe.Pointer(&st)), KeeperStateSize), 0); err != nil {
		return KeeperState{}, fmt.Errorf("reading the keeper's state: %w", err)
	}
	if st.Magic != KeeperMagic {
		return KeeperState{}, errors.New("reading the keeper's state: it is not one")
	}
	return st, nil
}
