package attack_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/policy"
)

// baseline adds a rule of the baseline.
func (p *place) baseline(t testing.TB, path string) {
	t.Helper()
	p.allow(t, policy.Read|policy.Write, path)
	p.policy.Paths[len(p.policy.Paths)-1].Rule.Origin = policy.Origin{Source: "baseline"}
}

// mountsPlan returns a plan with a mount namespace, although nothing is denied or protected.
func (p *place) mountsPlan(t *testing.T, opts enforce.Options) *enforce.Plan {
	t.Helper()
	plan := enforce.NewPlan(p.policy, enforce.Probe(), thisHost(), opts)
	if plan.Mounts == nil {
		t.Fatal("no mounts are planned")
	}
	return plan
}

// outside returns the IPC objects of a program outside, by the acts' names for them.
func outside(t *testing.T) map[string]string {
	t.Helper()
	const create = unix.IPC_CREAT | unix.IPC_EXCL | 0o600
	key := 0x7b000000 | os.Getpid()
	shm, err := unix.SysvShmGet(key, 4096, create)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(shm, unix.IPC_RMID, nil) })
	mem, err := unix.SysvShmAttach(shm, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	mem[0] = 'x'
	sem, _, errno := unix.Syscall(unix.SYS_SEMGET, uintptr(key), 1, create)
	if errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() { _ = raw(unix.SYS_SEMCTL, sem, 0, unix.IPC_RMID) })
	msg, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(key), create, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() { _ = raw(unix.SYS_MSGCTL, msg, unix.IPC_RMID) })
	for range 2 {
		text := struct {
			kind int
			text [8]byte
		}{kind: 1}
		if err := raw(unix.SYS_MSGSND, msg, uintptr(unsafe.Pointer(&text)), 8, unix.IPC_NOWAIT); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{"SHM": fmt.Sprint(shm), "SEM": fmt.Sprint(sem), "MSG": fmt.Sprint(msg), "KEY": fmt.Sprint(key)}
}

// TestIPCAttacks: System V IPC of programs outside does not exist inside. It has no paths, and
// a filter sees only numbers.
func TestIPCAttacks(t *testing.T) {
	needMounts(t)
	ids := outside(t)
	inval, noent := one(unix.EINVAL), one(unix.ENOENT)
	for _, a := range []attack{
		{act: "shm", args: []string{"SHM"}, want: inval},
		{act: "shm-key", args: []string{"KEY"}, want: noent},
		{act: "sem", args: []string{"SEM"}, want: inval},
		{act: "sem-key", args: []string{"KEY"}, want: noent},
		{act: "sem-op", args: []string{"SEM"}, want: inval},
		{act: "msg", args: []string{"MSG"}, want: inval},
		{act: "msg-key", args: []string{"KEY"}, want: noent},
		{act: "shm-rm", args: []string{"SHM"}, want: inval},
	} {
		t.Run(a.act, func(t *testing.T) {
			p := newPlace(t)
			arg := ids[a.args[0]]
			if got := p.try(t, p.mountsPlan(t, enforce.Options{}), a.act, arg); got != a.want[0] {
				t.Errorf("got %v, want %v", got, a.want)
			}
			if a.act == "shm-key" { // --allow-gap ipc
				if got := p.try(t, p.mountsPlan(t, enforce.Options{Accepted: []string{enforce.GapIPC}}), a.act, arg); got != 0 {
					t.Errorf("shared: got %v", got)
				}
			}
			if control := p.try(t, nil, a.act, arg); control != 0 {
				t.Errorf("control: %v", control)
			}
		})
	}
}

// TestPOSIXQueues: Landlock refuses to open POSIX message queues, with or without namespaces.
func TestPOSIXQueues(t *testing.T) {
	needLandlock(t, 1)
	name := fmt.Sprintf("zsbx-test-%d", os.Getpid())
	switch err := openQueue(name, unix.O_RDWR|unix.O_CREAT); {
	case errors.Is(err, unix.ENOSYS):
		t.Skip("the kernel was built without message queues")
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p, _ := unix.BytePtrFromString(name)
		_ = raw(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(p)))
	})
	p := newPlace(t)
	for _, act := range []string{"mq", "mq-new"} {
		if got := p.try(t, p.plan(), act, name); got != unix.EACCES {
			t.Errorf("%s: got %v, want %v", act, got, unix.EACCES)
		}
		if control := p.try(t, nil, act, name); control != 0 {
			t.Errorf("%s: control: %v", act, control)
		}
	}
}

// shmFile makes a file in /dev/shm, like shm_open(3) in a program outside.
func shmFile(t *testing.T) string {
	t.Helper()
	f, err := os.CreateTemp("/dev/shm", "zsbx-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(f.Name()) })
	_, err = f.WriteString("secret\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func TestPrivateShm(t *testing.T) {
	needMounts(t)
	file := shmFile(t)
	p := newPlace(t)
	p.baseline(t, "/dev/shm")
	plan := p.mountsPlan(t, enforce.Options{})
	for _, script := range []string{
		"cat " + file,
		"echo x >>" + file,
		"test -n \"$(ls /dev/shm)\"",
		"cat /proc/self/root" + file,
		"cat /dev/shm/../shm/" + filepath.Base(file),
	} {
		if status, out := p.sh(t, nil, script); status != 0 {
			t.Errorf("control: %s: exit status %d: %s", script, status, out)
		}
		// Appending makes a new, private file.
		if status, out := p.sh(t, plan, script+" && grep -q secret "+file); status == 0 {
			t.Errorf("%s: it worked: %s", script, out)
		}
	}
	const works = `echo mine >/dev/shm/a && cat /dev/shm/a && mkdir /dev/shm/d && mv /dev/shm/a /dev/shm/d && chmod 600 /dev/shm/d/a && rm -r /dev/shm/d`
	if status, out := p.sh(t, plan, works); status != 0 {
		t.Errorf("exit status %d: %s", status, out)
	}
	if _, err := os.Stat("/dev/shm/a"); err == nil {
		t.Error("it was made outside")
	}
	if status, out := p.sh(t, p.mountsPlan(t, enforce.Options{Accepted: []string{enforce.GapIPC}}), "cat "+file); status != 0 {
		t.Errorf("shared: exit status %d: %s", status, out)
	}
	// A rule for it means the real one.
	p.allow(t, policy.Read|policy.Write, "/dev/shm")
	if status, out := p.sh(t, p.mountsPlan(t, enforce.Options{}), "cat "+file); status != 0 {
		t.Errorf("named: exit status %d: %s", status, out)
	}
}

// TestOwnIPC: the command's own objects work as usual.
func TestOwnIPC(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	p.baseline(t, "/dev/shm")
	plan := p.mountsPlan(t, enforce.Options{})
	if control := p.try(t, nil, "own-ipc"); control != 0 {
		t.Errorf("control: %v", control)
	}
	if got := p.try(t, plan, "own-ipc"); got != 0 {
		t.Errorf("got %v", got)
	}
	for _, script := range []string{
		`test "$(fakeroot id -u)" = 0`,
		`fakeroot sh -c ': >own && chown 0:0 own && chgrp 7 own && test "$(stat -c %u:%g own)" = 0:7'`,
		`python3 -c 'from multiprocessing import Lock, Pool, shared_memory as s; Lock(); m = s.SharedMemory(create=True, size=9); s.SharedMemory(m.name).close(); m.close(); m.unlink()'`,
	} {
		if control, out := p.sh(t, nil, script); control != 0 {
			t.Logf("control: %s: exit status %d: %s", script, control, out)
		} else if status, out := p.sh(t, plan, script); status != 0 {
			t.Errorf("%s: exit status %d: %s", script, status, out)
		}
	}
}

// TestIdentity: to become another user or group fails as without zsbx, also in a user namespace,
// which has only one of each.
func TestIdentity(t *testing.T) {
	needMounts(t)
	if os.Getuid() == 0 {
		t.Skip("root can become any user")
	}
	p := newPlace(t)
	answers := func(plan *enforce.Plan) string {
		ws, out := run(t, plan, actCommand(self(t), p.in, "become", nil))
		if ws != 0 {
			t.Fatalf("exit status %d: %s", ws.ExitStatus(), out)
		}
		return out
	}
	control := answers(nil)
	if !strings.Contains(control, "setuid [0 18446744073709551615 18446744073709551615] EPERM") {
		t.Fatalf("control: %s", control)
	}
	if got := answers(p.mountsPlan(t, enforce.Options{})); got != control {
		t.Errorf("got\n%s, want\n%s", got, control)
	}
}

func TestRefused(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	plan := p.mountsPlan(t, enforce.Options{})
	for _, c := range []struct {
		err       error
		mount, ip string
	}{
		{&fork.StepError{Stage: "before", Tag: mounts.TagUnshare, Name: "unshare(2)", Errno: syscall.EPERM}, "unshare(2): ", ""},
		{&fork.StepError{Stage: "before", Tag: mounts.TagIPC, Name: "unshare(2)", Errno: syscall.EINVAL}, "", "unshare(2): invalid argument; such namespaces are not built into this kernel"},
		{&fork.StepError{Stage: "before", Tag: mounts.TagIPC, Name: "unshare(2)", Errno: syscall.EPERM}, "", "unshare(2): operation not permitted; a security module refuses it"},
		{&fork.StepError{Stage: "exec", Name: "/bin/true", Errno: syscall.EACCES}, "", ""},
		{nil, "", ""},
	} {
		caps, refused := plan.Refused(c.err)
		if refused != (c.mount+c.ip != "") || caps.MountNS != (c.mount == "") ||
			!strings.HasPrefix(caps.MountReason, c.mount) || !strings.HasPrefix(caps.IPCReason, c.ip) {
			t.Errorf("%v: %v, %q, %q", c.err, refused, caps.MountReason, caps.IPCReason)
		}
	}
	var none *enforce.Plan
	if _, refused := none.Refused(nil); refused {
		t.Error("no plan was refused something")
	}
	caps := plan.Caps
	caps.IPCReason = "tried"
	plan = enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{})
	if plan.Mounts == nil || plan.Mounts.IPC || plan.Err(nil, true) == nil || plan.Err([]string{enforce.GapIPC, enforce.GapUnixSockets, enforce.GapSignals, enforce.GapAbstractSockets}, true) != nil {
		t.Errorf("%+v, gaps %v", plan.Mounts, plan.Gaps)
	}
}
