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

// TestHold: the keeper leaves a descriptor open as long as it lives.
func TestHold(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := unix.Open(fifo, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(r)
	name, _ := syscall.BytePtrFromString(fifo)
	for _, hold := range []bool{false, true} {
		before := []Step{{Name: "openat", Nr: unix.SYS_OPENAT, Args: [6]uintptr{^uintptr(99), ptr(name), unix.O_WRONLY | unix.O_CLOEXEC}, Keep: name, Hold: hold}}
		p, err := Start(&Command{Path: "/bin/sleep", Args: []string{"sleep", "600"}, Before: before, Keeper: &Keeper{}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // the keeper closes what it does not need once the command runs
		var b [1]byte
		if n, err := unix.Read(r, b[:]); hold != (err == unix.EAGAIN) {
			t.Errorf("hold %v, while it runs: %d, %v", hold, n, err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		finish(t, p)
		deadline := time.Now().Add(10 * time.Second)
		for {
			n, err := unix.Read(r, b[:])
			if n == 0 && err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("hold %v, at the end: %d, %v", hold, n, err)
			}
			time.Sleep(time.Millisecond)
		}
	}
}
