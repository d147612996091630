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

// goAhead and giveUp are numbers of bytes: what the waiting command reads is
// the first argument of its next call, prctl(2). goAhead is PR_GET_DUMPABLE,
// which never fails; there is no option giveUp, nor 0 for a supervisor that is
// gone.
const (
	goAhead = unix.PR_GET_DUMPABLE
	giveUp  = 100
)

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
	pid := fork.Put(c.Memory(), uintptr(0))
	buf := fork.Put(c.Memory(), [giveUp]byte{})
	step := func(nr, a, b, c uintptr) fork.Step {
		return fork.Step{Tag: tagGroup, Name: "waiting for the session's scope", Nr: nr, Args: [6]uintptr{a, b, c}}
	}
	tell := step(unix.SYS_WRITE, uintptr(pair[1]), uintptr(unsafe.Pointer(pid)), unsafe.Sizeof(*pid))
	wait := step(unix.SYS_READ, uintptr(pair[1]), uintptr(unsafe.Pointer(buf)), giveUp)
	obey := step(unix.SYS_PRCTL, 0, 0, 0)
	obey.Back = [6]uint16{1}
	// The keeper sleeps while the command waits. Neither has our end, or the command
	// would not see this process die.
	c.Keeper.Steps = append(c.Keeper.Steps, fork.Step{Name: "close(2)", Nr: unix.SYS_CLOSE, Args: [6]uintptr{uintptr(pair[0])}})
	c.Steps = append([]fork.Step{{Name: "getpid(2)", Nr: unix.SYS_GETPID, Out: pid}, tell, wait, obey}, c.Steps...)
	started := make(chan *fork.Process, 1)
	c.Commit = append(c.Commit, func(p *fork.Process) error {
		theirs.Close()
		started <- p
		return nil
	})
	moved := make(chan error, 1)
	go func() { // beside fork.Start, which waits for the command
		p, ok := <-started
		if !ok {
			moved <- nil
			return
		}
		n, err := goAhead, s.moveToScope(ours, p, c.Namespaces != 0)
		if err != nil {
			n = giveUp
		}
		_, _ = ours.Write(make([]byte, n))
		moved <- err
	}()
	p, err := fork.Start(&c)
	close(started)
	theirs.Close()
	if failed := <-moved; err != nil && failed != nil {
		return s.refused(Cgroup, failed)
	}
	return s.launched(p, err)
}

// moveToScope learns the command's pid, has it moved, and stores where to.
func (s *Session) moveToScope(socket *os.File, p *fork.Process, inner bool) error {
	var b [8]byte
	if n, err := socket.Read(b[:]); err != nil || n != len(b) {
		return fmt.Errorf("the command did not tell its pid: %w", err)
	}
	pid := int(binary.NativeEndian.Uint64(b[:]))
	if inner {
		if pid = fork.OuterPid(p.KeeperPid, pid); pid == 0 { // which would be this process
			return errors.New("the command is gone")
		}
	}
	g, err := cgroup.StartScope(s.record.ID, pid, s.opts.Limits)
	if err != nil {
		return err
	}
	s.record.Cgroup = g
	return s.store()
}
