package track

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track/cgroup"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// This file starts a session on Linux. launch starts the command below a keeper with what the
// tracker needs. recordHolder writes the record before the command runs.

// randomID calls getrandom(2) itself, to save time at the start. crypto/rand uses a timer for
// its first read, which takes two descriptors and a thread. x/sys first sets up the vDSO's
// generator.
func randomID() (uuid.UUID, error) {
	var b [16]byte
	_, _, errno := unix.RawSyscall(unix.SYS_GETRANDOM, uintptr(unsafe.Pointer(&b)), unsafe.Sizeof(b), 0)
	if errno != 0 {
		return uuid.Nil, errno
	}
	return uuid.NewRandomFromReader(bytes.NewReader(b[:]))
}

// tagGroup marks the steps by which the command enters its group, or waits until systemd has
// put it into its scope.
const tagGroup fork.Tag = "control group"

func (s *Session) launch(c fork.Command) error {
	// The keeper of an earlier attempt has written that it failed.
	if s.record.Tracker != "" {
		if _, err := s.file.WriteAt(make([]byte, fork.KeeperStateSize), 0); err != nil {
			return err
		}
	}
	if g := s.record.Cgroup; g != nil { // from an earlier attempt that started nothing
		_ = g.Remove()
	}
	s.record.Holder = Holder{Tracker: s.choice.Kind}
	c.Keeper = &fork.Keeper{Keep: s.opts.Keep, State: s.file}
	if s.choice.Kind == Domain {
		steps, done, err := domainSteps(s.caps.landlock)
		if err != nil {
			return s.refused(Domain, err)
		}
		defer done()
		c.Keeper.Steps = steps
		c.Keeper.Domain = true
	}
	c.Commit = append(c.Commit, s.recordHolder)
	if s.parent == scope {
		return s.launchInScope(c)
	}
	if s.parent != "" {
		if err := s.enterGroup(&c); err != nil {
			return s.refused(Cgroup, err)
		}
	}
	return s.launched(fork.Start(&c))
}

// replace implements Start with Options.Exec.
func (s *Session) replace(c fork.Command) error {
	if err := s.locate(); err != nil {
		return err
	}
	s.record.Tracker = s.choice.Kind
	s.record.Command = s.record.Supervisor
	c.Commit = append(c.Commit, func(*fork.Process) error { return s.store() })
	return fork.Exec(&c)
}

// refused returns the error for a tracker, or a group for limits, that the kernel refused
// although the probe had found it available.
func (s *Session) refused(k Kind, err error) error {
	if k == Cgroup && s.opts.Limits != (Limits{}) {
		return fmt.Errorf("%w: %w", ErrLimits, err)
	}
	return &TrackerError{Kind: k, Why: err.Error(), Hint: "--track subtree", Err: err}
}

// launched takes over the started process, or finds out what an error is about.
func (s *Session) launched(p *fork.Process, err error) error {
	if err == nil {
		s.process = p
		s.record.Command, _ = proc.Identify(p.Pid)
		return nil
	}
	if errors.Is(err, fork.ErrNoDomain) {
		return s.refused(Domain, err)
	}
	var step *fork.StepError
	if !errors.As(err, &step) || fork.ShortageOf(err) != nil {
		return err
	}
	if step.Stage == fork.StageKeeper && s.choice.Kind == Domain {
		return s.refused(Domain, err)
	}
	if step.Tag == tagGroup {
		return s.refused(Cgroup, err)
	}
	return err
}

// recordHolder stores the session while its keeper gets ready. A scope's group is not known
// yet: see moveToScope.
func (s *Session) recordHolder(p *fork.Process) (err error) {
	s.record.Keeper, err = proc.Identify(p.KeeperPid)
	if proc.Gone(err) {
		return nil // it has ended already, which the caller will notice
	}
	if err != nil {
		return fmt.Errorf("recording the session: looking at its keeper: %w", err)
	}
	return s.store()
}

// enterGroup makes and limits the session's group, and adds the step that enters it. Before the
// command runs, its process writes "0", for itself, into cgroup.procs.
func (s *Session) enterGroup(c *fork.Command) error {
	g, err := cgroup.Make(s.parent, cgroup.Name(s.record.ID))
	if err != nil {
		return err
	}
	s.record.Cgroup = g
	if err := g.Limit(s.opts.Limits); err != nil {
		return err
	}
	procs, err := g.OpenFile("cgroup.procs", unix.O_WRONLY)
	if err != nil {
		return err
	}
	kill, _ := g.OpenFile("cgroup.kill", unix.O_WRONLY) // nil before Linux 5.14
	c.Keeper.CgroupKill = kill
	c.Cleanup = append(c.Cleanup, func() {
		_ = procs.Close()
		_ = kill.Close()
	})
	c.Steps = append([]fork.Step{enterStep(c.Memory(), procs)}, c.Steps...)
	return nil
}

// enterStep returns the step that writes "0" into a group's cgroup.procs.
func enterStep(m *fork.Memory, procs *os.File) fork.Step {
	return fork.Step{
		Tag: tagGroup, Name: "entering the session's", Nr: unix.SYS_WRITE,
		Args: [6]uintptr{procs.Fd(), uintptr(unsafe.Pointer(m.Text("0"))), 1},
	}
}

// goAhead is what the waiting command must read. It reads nothing if the supervisor is gone or
// has given up.
var goAhead = [2]uint64{1, 1}

// launchInScope starts c so that it waits until it is in the scope before anything of it runs.
// Its process sends its pid through a socket, and waits for an answer.
func (s *Session) launchInScope(c fork.Command) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socketpair: %w", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "socket")
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	defer ours.Close()
	defer theirs.Close()
	pid := fork.Put(c.Memory(), uintptr(0))
	answer := fork.Put(c.Memory(), [2]uint64{})
	step := func(nr uintptr, to unsafe.Pointer, size uintptr) fork.Step {
		args := [6]uintptr{uintptr(pair[1]), uintptr(to), size}
		return fork.Step{Tag: tagGroup, Name: "waiting for the session's scope", Nr: nr, Args: args}
	}
	tell := step(unix.SYS_WRITE, unsafe.Pointer(pid), unsafe.Sizeof(*pid))
	wait := step(unix.SYS_READ, unsafe.Pointer(answer), unsafe.Sizeof(*answer))
	wait.Same = fork.Put(c.Memory(), fork.Same{Got: answer, Want: goAhead})
	// The keeper sleeps while the command waits. Both lack this process's end of the socket, so
	// that the command notices if this process dies.
	closeOurs := fork.Step{Name: "close(2)", Nr: unix.SYS_CLOSE, Args: [6]uintptr{uintptr(pair[0])}}
	c.Keeper.Steps = append(c.Keeper.Steps, closeOurs)
	c.Steps = append([]fork.Step{{Name: "getpid(2)", Nr: unix.SYS_GETPID, Out: pid}, tell, wait}, c.Steps...)
	var moved chan error
	c.Commit = append(c.Commit, func(p *fork.Process) error {
		theirs.Close()
		moved = make(chan error, 1)
		go func() { // while fork.Start waits for the command
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

// moveToScope reads the command's pid, has systemd move it, records the scope, and lets the
// command continue. If no pid comes, the start has failed with its own error.
func (s *Session) moveToScope(socket *os.File, keeper int, inner bool) error {
	var b [8]byte
	if n, err := socket.Read(b[:]); err != nil || n != len(b) {
		return nil
	}
	pid := int(binary.NativeEndian.Uint64(b[:]))
	if inner {
		pid = fork.OuterPid(keeper, pid)
		if pid == 0 { // 0 would be this process
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
