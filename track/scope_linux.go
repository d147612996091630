package track

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track/internal/cgroup"
)

// goAhead are the words that the waiting command has to read. It reads none of a
// supervisor that is gone, or has given up.
var goAhead = [2]uint64{1, 1}

// launchInScope starts c so that it waits, before anything of it runs, until
// it is in the scope: it tells its pid through a socket, and waits for an answer.
func (s *Session) launchInScope(c fork.Command) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socketpair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer ours.Close()
	defer theirs.Close()
	pid, answer := fork.Put(c.Memory(), uintptr(0)), fork.Put(c.Memory(), [2]uint64{})
	step := func(nr uintptr, to unsafe.Pointer, size uintptr) fork.Step {
		return fork.Step{Tag: tagGroup, Name: "waiting for the session's scope", Nr: nr, Args: [6]uintptr{uintptr(pair[1]), uintptr(to), size}}
	}
	tell := step(unix.SYS_WRITE, unsafe.Pointer(pid), unsafe.Sizeof(*pid))
	wait := step(unix.SYS_READ, unsafe.Pointer(answer), unsafe.Sizeof(*answer))
	wait.Same = fork.Put(c.Memory(), fork.Same{Got: answer, Want: goAhead})
	// The keeper sleeps while the command waits. Neither has our end, or the command
	// would not see this process die.
	c.Keeper.Steps = append(c.Keeper.Steps, fork.Step{Name: "close(2)", Nr: unix.SYS_CLOSE, Args: [6]uintptr{uintptr(pair[0])}})
	c.Steps = append([]fork.Step{{Name: "getpid(2)", Nr: unix.SYS_GETPID, Out: pid}, tell, wait}, c.Steps...)
	var moved chan error
	c.Commit = append(c.Commit, func(p *fork.Process) error {
		theirs.Close()
		moved = make(chan error, 1)
		go func() { // beside fork.Start, which waits for the command
			moved <- s.moveToScope(ours, p.KeeperPid, c.Namespaces != 0)
			ours.Close()
		}()
		return nil
	})
	p, err := fork.Start(&c)
	if moved != nil {
		if failed := <-moved; err != nil && failed != nil {
			return s.refused(Cgroup, failed)
		}
	}
	return s.launched(p, err)
}

// moveToScope learns the command's pid, has it moved, stores where to, and has it go on.
// Where no pid comes the start has failed, whose own error says why.
func (s *Session) moveToScope(socket *os.File, keeper int, inner bool) error {
	var b [8]byte
	if n, err := socket.Read(b[:]); err != nil || n != len(b) {
		return nil
	}
	pid := int(binary.NativeEndian.Uint64(b[:]))
	if inner {
		if pid = fork.OuterPid(keeper, pid); pid == 0 { // which would be this process
			return errors.New("the command is gone")
		}
	}
	g, err := cgroup.StartScope(s.record.ID, pid, s.opts.Limits)
	if err != nil {
		return err
	}
	s.record.Cgroup = g
	if err := s.store(); err != nil {
		return err
	}
	return binary.Write(socket, binary.NativeEndian, goAhead)
}
