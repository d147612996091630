package fork

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestOutResult(t *testing.T) {
	name, _ := syscall.BytePtrFromString(filepath.Join(t.TempDir(), "made"))
	text := []byte("hello")
	steps := []Step{
		{Name: "openat", Nr: unix.SYS_OPENAT, Args: [6]uintptr{^uintptr(99), ptr(name), unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, 0o600}, Keep: name},
		{Name: "write", Nr: unix.SYS_WRITE, Args: [6]uintptr{0, ptr(&text[0]), uintptr(len(text))}, Keep: text},
	}
	steps[0].Out = &steps[1].Args[0]
	p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Steps: steps, Keeper: &Keeper{}})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	b, err := os.ReadFile(unix.BytePtrToString(name))
	if err != nil || string(b) != "hello" {
		t.Fatalf("the steps wrote %q, %v", b, err)
	}
}

// TestBackResult has one descriptor used twice, by steps that were copied
// after they were made.
func TestBackResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "made")
	name, _ := syscall.BytePtrFromString(file)
	text := []byte("hello")
	steps := []Step{
		{Name: "openat", Nr: unix.SYS_OPENAT, Args: [6]uintptr{^uintptr(99), ptr(name), unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, 0o600}, Keep: name},
		{Name: "write", Nr: unix.SYS_WRITE, Args: [6]uintptr{0, ptr(&text[0]), uintptr(len(text))}, Back: [6]uint16{1}, Keep: text},
		{Name: "write", Nr: unix.SYS_WRITE, Args: [6]uintptr{0, ptr(&text[0]), uintptr(len(text))}, Back: [6]uint16{2}, Keep: text},
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

func TestBefore(t *testing.T) {
	outer, inner := domainSteps(t)
	name, _ := syscall.BytePtrFromString(filepath.Join(t.TempDir(), "made"))
	before := []Step{{Name: "mkdirat", Nr: unix.SYS_MKDIRAT, Args: [6]uintptr{^uintptr(99), ptr(name), 0o700}, Keep: name}}
	for _, k := range []*Keeper{nil, {}, {Domain: true, Steps: outer}} {
		p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Before: before, Steps: inner, Keeper: k})
		if err != nil {
			t.Fatal(err)
		}
		finish(t, p)
		if err := os.Remove(unix.BytePtrToString(name)); err != nil {
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

// TestHold: the keeper leaves a descriptor open as long as it lives, and closes the others once the command runs.
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
		t.Errorf("held, while it runs: %d, %v", n, err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	waitForEOF(t, held, "held, at the end")
}

// fifoStep gives the reading end of a new FIFO, and a step that opens the other.
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
	name, _ := syscall.BytePtrFromString(fifo)
	return r, Step{Name: "openat", Nr: unix.SYS_OPENAT, Args: [6]uintptr{^uintptr(99), ptr(name), unix.O_WRONLY | unix.O_CLOEXEC}, Keep: name, Hold: hold}
}

// waitForEOF fails the test if some process still has the FIFO's other end open after ten seconds.
func waitForEOF(t *testing.T, fd int, when string) {
	t.Helper()
	var b [1]byte
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		n, err := unix.Read(fd, b[:])
		if n == 0 && err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d, %v", when, n, err)
		}
	}
}
