package fork

// keeperMem is the memory that the new processes write to: shared by all of
// them and the caller, until the caller lets go of it, and outside of the Go
// heap, so that the keeper can give its copy of that back.
type keeperMem struct {
	size    uintptr
	report  stepReport
	keeper  int   // the keeper's own pid
	command int32 // the command's pid; 0 once it was reaped
	left    int64 // when the command ended, by CLOCK_MONOTONIC in nanoseconds

	// The descriptors of a running keeper, and no others; -1 for none.
	conn       int32 // to the caller; -1 once that is gone
	signals    int32 // by which it hears signals
	held       int32 // that of the step with Hold
	stateFile  int32 // Keeper.State
	cgroupKill int32 // Keeper.CgroupKill

	limit     int64 // Command.Limit, in nanoseconds
	killAfter int64
	deadline  int64 // when something is due by that, by CLOCK_MONOTONIC in nanoseconds; 0 for never

	domain, keep, killing bool

	inner bool // in a PID namespace of its own: numbers here are other ones there

	uneasy bool // wait4(2) failed: to be asked again soon
	more   bool // there may be more to collect

	strikes uint
	again   int64  // when to strike again, by CLOCK_MONOTONIC in nanoseconds
	began   int64  // when the killing did, by CLOCK_MONOTONIC
	early   uint64 // a bit for each signal to the command that came before it was there

	state KeeperState
	msg   message
	mask  uint64
	ts    [2]int64
	polls [2]pollFd
	info  [128]byte // signalfd_siginfo
	text  [4096]byte
	path  [32]byte
	stat  [512]byte

	entries, pid int // of /proc: bytes in text, and the process that is looked at
}

type pollFd struct {
	fd              int32
	events, revents int16
}
