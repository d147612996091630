package attack_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
)

// planned makes an act under a plan for a mode of network and a writable directory.
func planned(a []string) error {
	exe, plan, err := planWith(resolve.NetMode(a[0]), a[1], enforce.Options{})
	if err != nil {
		return err
	}
	return actUnder(plan, exe, a[1], a[2:])
}

// listenApart starts a daemon in a network namespace of its own, as a container's is.
func listenApart(t *testing.T, path string) *daemon {
	t.Helper()
	d := &daemon{network: "unix", path: path}
	listening := make(chan net.Listener)
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with this function
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			failed <- err
			return
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			failed <- err
			return
		}
		listening <- l
	}()
	select {
	case err := <-failed:
		testkit.Lacks(t, testkit.UserNS, "a network namespace: ", err)
	case l := <-listening:
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				d.reached.Add(1)
				c.Close()
			}
		}()
	}
	return d
}

// TestSocketTwinSubvolume: subvolumes of btrfs(5) share a device, and each counts its inodes from
// the same number. A socket of a daemon on another subvolume is not mistaken for one of the
// session that has its number, also where the kernel does not list the daemon's sockets.
func TestSocketTwinSubvolume(t *testing.T) {
	needGuard(t)
	p := newPlace(t)
	dir, err := os.MkdirTemp("", "zsbx-btrfs-") // that another user can search
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	mountImage(t, p, dir, "mkfs.btrfs", "-q")
	const nobody = 65534
	user := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	exe := dir + "/act"
	for _, script := range []string{
		"chmod 755 $DIR", "cp $EXE $DIR/act && chmod 755 $DIR/act",
		"btrfs -q subvolume create $DIR/theirs && chmod 755 $DIR/theirs",
	} {
		c := exec.Command("/bin/sh", "-c", script)
		c.Env = append(os.Environ(), "DIR="+dir, "EXE="+self(t))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
	}
	for i := range 20 { // so that the number is not reached yet
		if err := os.WriteFile(fmt.Sprintf("%s/theirs/%d", dir, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	target := dir + "/theirs/sock"
	d := listenApart(t, target)
	if err := os.Chmod(target, 0o777); err != nil {
		t.Fatal(err)
	}
	// attack makes an act in a new subvolume, as root or as an ordinary user, confined unless mode
	// is "".
	attack := func(who *syscall.SysProcAttr, mode resolve.NetMode, act string) unixErrno {
		own, err := os.MkdirTemp(dir, act)
		if err != nil {
			t.Fatal(err)
		}
		own += "/own"
		for _, step := range []func() error{
			func() error { return exec.Command("btrfs", "-q", "subvolume", "create", own).Run() },
			func() error { return os.Chmod(filepath.Dir(own), 0o755) },
			func() error { return os.Chmod(own, 0o777) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		args := []string{act, target, map[string]string{"twin-inode": own, "twin-number": own + "/sock"}[act]}
		if mode != "" {
			args = append([]string{"planned", string(mode), own}, args...)
		}
		c := exec.Command(exe, args[1:]...)
		c.Env = []string{"ZSBX_TEST_ACT=" + args[0], "GORACE=atexit_sleep_ms=0"}
		c.Dir, c.SysProcAttr = own, who
		out, _ := c.CombinedOutput()
		status := c.ProcessState.ExitCode()
		if status < 0 || status >= exitNoAct {
			t.Fatalf("%v: exit status %d: %s", args, status, out)
		}
		return unixErrno(status)
	}
	for who, attr := range map[string]*syscall.SysProcAttr{"root": nil, "user": user} {
		for _, act := range []string{"twin-number", "twin-inode"} {
			for _, mode := range []resolve.NetMode{resolve.NetOpen, resolve.NetNone} {
				if got := attack(attr, mode, act); got != unix.EACCES || d.reached.Load() != 0 {
					t.Errorf("%s, %s, %s: got %v, want %v; %d connections", who, act, mode, got, unix.EACCES, d.reached.Load())
				}
			}
			if got := attack(attr, "", act); got != 0 {
				t.Errorf("control: %s, %s: %v", who, act, got)
			}
			testkit.Eventually(t, "the control arrives", func() bool { return d.reached.Load() > 0 })
			d.reached.Store(0)
		}
	}
}
