package fork

// The descriptors of a running keeper.
const (
	keeperConn    = 0 // to the caller; -1 in keeperMem.conn once the caller is gone
	keeperState   = 1 // Keeper.State, or a second connection where there is none
	keeperCgroup  = 2 // Keeper.CgroupKill, or a second connection where there is none
	keeperSignals = 3 // by which it hears signals
	keeperHeld    = 4 // that of the step with Hold, or a second connection where there is none
	keeperOutside = 5 // the caller's mount namespace, or a second connection where there is none
	keeperFiles   = 6 // how many these are
)

// keeperMem is the memory that the new processes write to: shared by all of
// them and the caller, until the caller lets go of it, and outside of the Go
// heap, so that the keeper can give its copy of that back.
type keeperMem struct {
	size    uintptr
	report  stepReport
	conn    int32
	signals int32
	command int32 // the command's pid; 0 once it was reaped
	left    int64 // when the command ended, by CLOCK_MONOTONIC in nanoseconds
	held    int32 // the descriptor that a step with Hold gave; -1 for none

	limit     int64 // Command.Limit, in nanoseconds
	killAfter int64
	deadline  int64 // when something is due by that, by CLOCK_MONOTONIC in nanoseconds; 0 for never

	domain, hasState, hasCgroup, hasOutside, keep, killing bool

	uneasy bool // wait4(2) failed: to be asked again soon

	strikes uint
	again   int64  // when to strike again, by CLOCK_MONOTONIC in nanoseconds
	began   int64  // when the killing did, by CLOCK_MONOTONIC
	early   uint64 // a bit for each signal to the command that came before it was there

	state KeeperState
	msg   message
	fetch fetchMem
	mask  uint64
	ts    [2]int64
	polls [2]pollFd
	info  [128]byte // signalfd_siginfo
	text  [4096]byte
	path  [32]byte
	stat  [512]byte

	entries, pid int // of /proc: bytes in text, and the process that is looked at

	remove [RemoveSize + 1]byte // Keeper.Remove, each path ended by a NUL, and one more
}

type pollFd struct {
	fd              int32
	events, revents int16
}

// message travels between caller and keeper, one packet each. Those that
// Fetcher sends say more.
type message struct {
	kind, arg uint32
	n, flags  uint32
	at        uint64
}

const (
	msgStarted   = iota + 1 // arg: the command's pid
	msgStopped              // arg: the signal
	msgContinued            //
	msgExited               // arg: the wait status
	msgEmpty                // arg: processes reaped after the killing began
	msgSignal               // to the keeper: arg is the signal for the command
	msgKill                 // to the keeper
	msgDetach               // to the keeper
	msgGo                   // to the keeper: the caller is ready for the command to start
	msgMemory               // to the keeper: arg is a thread, n how much of its memory, at where
	msgSocket               // to the keeper: arg is a process, flags those of pidfd_open(2), n its descriptor
	msgFetched              // arg: the bytes of memory that follow, or the negative errno
	msgTimedOut             // the command was asked to end
)
