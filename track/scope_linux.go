package track

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// A login session's control group is root's. Only the user's service manager
// can put a process into a group that the user owns, and only it can move one
// there: see StartTransientUnit in org.freedesktop.systemd1(5).

const (
	managerName = "org.freedesktop.systemd1"
	scopeWait   = 5 * time.Second // for the manager to answer and to move the process
)

// userBus connects to the user's message bus. Addresses that would start a
// program or use the network are not followed.
func userBus(ctx context.Context) (*dbus.Conn, error) {
	addr := os.Getenv("DBUS_SESSION_BUS_ADDRESS")
	if addr == "" {
		dir := os.Getenv("XDG_RUNTIME_DIR")
		if dir == "" {
			dir = "/run/user/" + strconv.Itoa(os.Geteuid())
		}
		addr = "unix:path=" + filepath.Join(dir, "bus")
	}
	if !strings.HasPrefix(addr, "unix:") {
		return nil, fmt.Errorf("the bus address %q is no local socket", cut(addr, 100))
	}
	if path, ok := strings.CutPrefix(addr, "unix:path="); ok {
		path, _, _ = strings.Cut(path, ",")
		if _, err := os.Stat(path); err != nil { // the usual case: a short answer
			return nil, fmt.Errorf("no message bus of the user: %w", err)
		}
	}
	c, err := dbus.Dial(addr, dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("connecting to the user's message bus: %w", err)
	}
	if err = c.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err == nil {
		err = c.Hello()
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("the user's message bus: %w", err)
	}
	return c, nil
}

// pingUserManager asks whether the user's service manager is on the bus.
func pingUserManager() error {
	ctx, cancel := context.WithTimeout(context.Background(), scopeWait)
	defer cancel()
	c, err := userBus(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var there bool
	if err := c.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, managerName).Store(&there); err != nil {
		return fmt.Errorf("the user's message bus: %w", err)
	}
	if !there {
		return errors.New("the user's service manager is not on the message bus")
	}
	return nil
}

// startScope has the manager put pid into a new scope of its own, delegated to
// the user, and waits until it is there: the manager answers before it has
// moved the process.
func startScope(ctx context.Context, id string, pid int, limits Limits) (*cgroup, error) {
	c, err := userBus(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	type property struct {
		Name  string
		Value dbus.Variant
	}
	props := []property{
		{"Description", dbus.MakeVariant("zsbx session " + id)},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(pid)})},
		{"Delegate", dbus.MakeVariant(true)},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}
	for _, l := range limits.settings() {
		props = append(props, property{l.property, dbus.MakeVariant(l.value)})
	}
	type aux struct {
		Name  string
		Props []property
	}
	o := c.Object(managerName, "/org/freedesktop/systemd1")
	call := o.CallWithContext(ctx, managerName+".Manager.StartTransientUnit", 0, scopeName(id), "fail", props, []aux{})
	if call.Err != nil {
		return nil, fmt.Errorf("asking the user's service manager for a scope: %w", call.Err)
	}
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		if g := scopeOf(pid, id); g != nil {
			return g, nil
		}
		if ctx.Err() != nil {
			return nil, errors.New("the user's service manager did not move the command into its scope in time")
		}
		time.Sleep(wait)
	}
}

// scopeOf gives the scope's group once pid is in it.
func scopeOf(pid int, id string) *cgroup {
	f, err := os.Open(procPath(pid, "cgroup"))
	if err != nil {
		return nil
	}
	defer f.Close()
	path, err := parseSelfCgroup(f)
	if err != nil || filepath.Base(path) != scopeName(id) {
		return nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for _, d := range cgroupDirs(path, cgroupMounts(mounts)) {
		if filepath.Base(d) != scopeName(id) {
			continue
		}
		if g, err := openCgroup(d); err == nil {
			g.ref.Unit = scopeName(id)
			return g
		}
	}
	return nil
}

// goAhead and giveUp are numbers of bytes: what the waiting command reads is
// the first argument of its next call, prctl(2). goAhead is PR_GET_DUMPABLE,
// which never fails; there is no option giveUp, nor 0 for a supervisor that is
// gone.
const (
	goAhead = unix.PR_GET_DUMPABLE
	giveUp  = 100
)

// launchInScope starts c so that it waits, before anything of it runs, until
// it is in the scope: it tells its pid through one pipe and reads from another.
func (s *Session) launchInScope(c fork.Command) error {
	var fds [4]int // told: read, write; go: read, write
	if err := errors.Join(unix.Pipe2(fds[:2], unix.O_CLOEXEC), unix.Pipe2(fds[2:], unix.O_CLOEXEC)); err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	told := os.NewFile(uintptr(fds[0]), "pid pipe")
	release := os.NewFile(uintptr(fds[3]), "go-ahead pipe")
	defer told.Close()
	defer release.Close()
	pid := new([1]uintptr)
	buf := make([]byte, giveUp)
	size := unsafe.Sizeof(pid[0])
	c.Steps = append([]fork.Step{
		{Name: "close(2)", Nr: unix.SYS_CLOSE, Args: [6]uintptr{uintptr(fds[3])}}, // or it would not see the supervisor die
		{Name: "getpid(2)", Nr: unix.SYS_GETPID, Out: &pid[0], Keep: pid},
		{Tag: tagGroup, Name: "waiting for the session's scope", Nr: unix.SYS_WRITE, Args: [6]uintptr{uintptr(fds[1]), uintptr(unsafe.Pointer(pid)), size}, Keep: pid},
		{Tag: tagGroup, Name: "waiting for the session's scope", Nr: unix.SYS_READ, Args: [6]uintptr{uintptr(fds[2]), addr(buf), giveUp}, Keep: buf},
		{Tag: tagGroup, Name: "waiting for the session's scope", Nr: unix.SYS_PRCTL, Back: [6]uint16{1}},
	}, c.Steps...)
	c.OwnMemory = true // while the command waits, the keeper must not
	started := make(chan *fork.Process, 1)
	after := c.Meanwhile
	c.Meanwhile = func(p *fork.Process) {
		if after != nil {
			after(p)
		}
		unix.Close(fds[1])
		unix.Close(fds[2])
		fds[1], fds[2] = -1, -1
		started <- p
	}
	moved := make(chan error, 1)
	go func() { // beside fork.Start, which waits for the command
		p, ok := <-started
		if !ok {
			moved <- nil
			return
		}
		n, err := goAhead, s.moveToScope(told, p, c.Namespaces != 0)
		if err != nil {
			n = giveUp
		}
		_, _ = release.Write(make([]byte, n))
		moved <- err
	}()
	p, err := fork.Start(&c)
	close(started)
	for _, fd := range []int{fds[1], fds[2]} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if failed := <-moved; err != nil && failed != nil {
		if s.limits.scope {
			return &LimitError{Why: failed.Error(), Err: failed}
		}
		return &TrackerError{Kind: Cgroup, Why: failed.Error(), Err: failed}
	}
	return s.launched(p, err)
}

// moveToScope learns the command's pid, has it moved, and stores where to.
func (s *Session) moveToScope(told *os.File, p *fork.Process, inner bool) error {
	var b [8]byte
	if n, err := told.Read(b[:]); err != nil || n != len(b) {
		return fmt.Errorf("the command did not tell its pid: %w", err)
	}
	pid := int(binary.NativeEndian.Uint64(b[:]))
	if inner {
		if pid = fork.OuterPid(p.KeeperPid, pid); pid == 0 { // which would be this process
			return errors.New("the command is gone")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), scopeWait)
	defer cancel()
	g, err := startScope(ctx, s.record.ID, pid, s.opts.Limits)
	if err != nil {
		return err
	}
	if err := g.limited(s.opts.Limits); err != nil {
		g.close()
		return err
	}
	s.held.group = g
	s.holder.Cgroup = &g.ref
	return s.recordHolder(p)
}
