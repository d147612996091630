package fork

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestOutResult: a step writes another one's result.
func TestOutResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "made")
	m := memory(t)
	got := Put(m, uintptr(0))
	steps := []Step{
		{Name: "getpid", Nr: unix.SYS_GETPID, Out: got},
		{Name: "openat", Nr: unix.SYS_OPENAT, Args: [6]uintptr{^uintptr(99), ptr(m.Text(file)), unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, 0o600}},
		{Name: "write", Nr: unix.SYS_WRITE, Args: [6]uintptr{0, uintptr(unsafe.Pointer(got)), 4}, Back: [6]uint32{1}},
	}
	p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Steps: steps, Keeper: &Keeper{}})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	b, err := os.ReadFile(file)
	if err != nil || len(b) != 4 || int(binary.NativeEndian.Uint32(b)) != p.Pid {
		t.Fatalf("the steps wrote %v, %v, and the pid is %d", b, err, p.Pid)
	}
}

// TestBackResult: steps that were copied use one descriptor twice.
func TestBackResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "made")
	m := memory(t)
	name, text := ptr(m.Text(file)), ptr(m.Text("hello"))
	steps := []Step{
		{Name: "openat", Nr: unix.SYS_OPENAT, Args: [6]uintptr{^uintptr(99), name, unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, 0o600}},
		{Name: "write", Nr: unix.SYS_WRITE, Args: [6]uintptr{0, text, 5}, Back: [6]uint32{1}},
		{Name: "write", Nr: unix.SYS_WRITE, Args: [6]uintptr{0, text, 5}, Back: [6]uint32{2}},
	}
	steps = append([]Step{{Name: "getpid", Nr: unix.SYS_GETPID}}, steps...)
	p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Steps: steps, Keeper: &Keeper{}})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	b, err := os.ReadFile(file)
	if err != nil || string(b) != "hellohello" {
		t.Fatalf("the steps wrote %q, %v", b, err)
	}
}

func ptr(p *byte) uintptr { return uintptr(unsafe.Pointer(p)) }

// memory returns memory for steps that lasts until the end of the test.
func memory(t *testing.T) *Memory {
	t.Helper()
	m := new(Memory)
	t.Cleanup(m.free)
	return m
}

func TestBefore(t *testing.T) {
	outer, inner := domainSteps(t)
	file := filepath.Join(t.TempDir(), "made")
	name := ptr(memory(t).Text(file))
	before := []Step{{Name: "mkdirat", Nr: unix.SYS_MKDIRAT, Args: [6]uintptr{^uintptr(99), name, 0o700}}}
	for _, k := range []*Keeper{nil, {}, {Domain: true, Steps: outer}} {
		p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Before: before, Steps: inner, Keeper: k})
		if err != nil {
			t.Fatal(err)
		}
		finish(t, p)
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
	bad := []Step{{Name: "bad", Nr: unix.SYS_PRCTL, Args: [6]uintptr{9999}}}
	for _, k := range []*Keeper{nil, {}} {
		var se *StepError
		if _, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Before: bad, Keeper: k}); !errors.As(err, &se) || se.Stage != "before" {
			t.Errorf("failing step: %v", err)
		}
	}
}

// TestHold: the keeper keeps a descriptor open as long as it lives, and closes the others once
// the command runs.
func TestHold(t *testing.T) {
	held, heldStep := fifoStep(t, true)
	other, otherStep := fifoStep(t, false)
	p, err := Start(&Command{Path: "/bin/sleep", Args: []string{"sleep", "600"}, Before: []Step{heldStep, otherStep}, Keeper: &Keeper{}})
	if err != nil {
		t.Fatal(err)
	}
	waitForEOF(t, other, "not held, while it runs")
	var b [1]byte
	if n, err := unix.Read(held, b[:]); err != unix.EAGAIN {
		t.Errorf("with Hold, while it runs: %d, %v", n, err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	waitForEOF(t, held, "held, at the end")
}

// fifoStep returns the reading end of a new FIFO, and a step that opens the other end.
func fifoStep(t *testing.T, hold bool) (int, Step) {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := unix.Open(fifo, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(r) })
	name := ptr(memory(t).Text(fifo))
	return r, Step{Name: "openat", Nr: unix.SYS_OPENAT, Args: [6]uintptr{^uintptr(99), name, unix.O_WRONLY | unix.O_CLOEXEC}, Hold: hold}
}

// waitForEOF fails the test if some process still has the FIFO's other end open in the end.
func waitForEOF(t *testing.T, fd int, when string) {
	t.Helper()
	var b [1]byte
	for deadline := time.Now().Add(testkit.Patience); ; time.Sleep(time.Millisecond) {
		n, err := unix.Read(fd, b[:])
		if n == 0 && err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d, %v", when, n, err)
		}
	}
}
