package fork

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"syscall"
	"unsafe"
)

// ReapSignal asks a keeper to kill its session and to end once nothing is left. Any process
// outside the session may send it.
const ReapSignal = syscall.SIGTERM

// Keeper configures the keeper, the process between the caller and the command. It is a fork of
// the caller that executes nothing, has few descriptors open, ignores the terminal, and lives
// until the session is empty.
type Keeper struct {
	// Steps are made by the keeper before it starts the command. They set up its own, outer
	// Landlock domain.
	Steps []Step

	// Domain says that Steps put the keeper into a Landlock domain with LANDLOCK_SCOPE_SIGNAL,
	// and that Command.Steps put the command into a nested one with the same scope. The keeper
	// first proves that its domain works: a signal to the caller must be refused. Only then may
	// it call kill(-1, SIGKILL). If the proof fails, Start fails with ErrNoDomain.
	Domain bool

	// CgroupKill is the open cgroup.kill file of the session's cgroup, or nil. The keeper
	// writes "1" to it before it kills by other means.
	CgroupKill *os.File

	// Keep lets what is left run on after the command has ended or the caller is gone. The
	// keeper stays until all of it has ended or a ReapSignal comes. Without Keep the rest is
	// killed: at once if the caller is gone, or 0.3 s after the command's end, so that
	// processes can write out what they were given.
	Keep bool

	// State is a regular file, or nil. The keeper writes a KeeperState at offset 0 whenever
	// that changes, for later processes to read.
	State *os.File
}

// Phase is the phase that a keeper is in.
type Phase uint32

// The phases. Only PhaseEmpty is a proof: wait4(2) returned ECHILD to the subreaper of the
// whole session.
const (
	PhaseFailed  Phase = iota + 1 // this keeper started nothing; its caller may try again
	PhaseRunning                  // the command runs
	PhaseKept                     // the command ended, other processes run on
	PhaseKilling                  // SIGKILL was sent; waiting for the end
	PhaseEmpty                    // nothing is left; the keeper is about to exit
)

// KeeperState is what a keeper writes into Keeper.State. It has 32 bytes, in the machine's byte
// order.
type KeeperState struct {
	Magic      uint32 // KeeperMagic
	Phase      Phase
	CommandPid int32  // 0 after the command ended, and always with a PID namespace
	WaitStatus uint32 // the command's, as from wait4(2); set from PhaseKept on
	Killed     uint32 // processes that ended by SIGKILL after the killing began
	Method     uint32 // how it killed: MethodDomain, MethodCgroup, MethodSubtree
	TimedOut   uint32 // 1 if the command was asked to end, by Command.Limit
	_          uint32
}

// SocketRequest asks a keeper for a socket, with the arguments of socket(2). An internet socket
// with a Port is bound to that port of all addresses of its family. The keeper answers with an
// error number of four bytes, and with the socket if that is 0 (SCM_RIGHTS, unix(7)).
type SocketRequest struct{ Family, Kind, Protocol, Port int32 }

// HostAddress4 and HostAddress6 are the ordinary addresses of a network with Command.AllLocal (RFC 5737, RFC 3849).
var (
	HostAddress4 = netip.AddrFrom4([4]byte{192, 0, 2, 1})
	HostAddress6 = netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1})
)

// NoNetwork is added to the error number if it says why there is no network for sockets.
const NoNetwork = 1 << 16

// KeeperMagic marks a KeeperState.
const KeeperMagic = 0x7a736278

// KeeperStateSize is the size of a KeeperState, in bytes.
const KeeperStateSize = 32

// The bits of KeeperState.Method.
const (
	MethodDomain  = 1 << iota // kill(-1, SIGKILL) from inside the session's Landlock domain
	MethodCgroup              // cgroup.kill
	MethodSubtree             // SIGKILL to each of the keeper's descendants, until none is left
)

// ErrNoDomain means that a keeper's Landlock domain has no effect. The command was not started.
var ErrNoDomain = errors.New("the keeper's Landlock domain has no effect")

// ErrKeeperLost means that a keeper ended without saying that its session is empty. Somebody
// outside the session killed it.
var ErrKeeperLost = errors.New("the keeper is gone")

// ReadKeeperState reads what a keeper last wrote into its state file. It returns an error if
// the file is too short or lacks KeeperMagic.
func ReadKeeperState(f io.ReaderAt) (KeeperState, error) {
	var st KeeperState
	if _, err := f.ReadAt(unsafe.Slice((*byte)(unsafe.Pointer(&st)), KeeperStateSize), 0); err != nil {
		return KeeperState{}, fmt.Errorf("reading the keeper's state: %w", err)
	}
	if st.Magic != KeeperMagic {
		return KeeperState{}, errors.New("reading the keeper's state: the file has none")
	}
	return st, nil
}
