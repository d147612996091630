package attack_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// attack is something that a confined command tries. The same act is also tried without zsbx,
// on the same files, where it must succeed.
type attack struct {
	act  string
	args []string // "IN" and "OUT" stand for the place's directories
	want []syscall.Errno
	abi  int // Landlock ABI that is needed; 0 for any
	root bool

	control syscall.Errno // the answer without zsbx, if the act is incomplete
	call    string        // the system call, if the act has another name
}

func (a attack) name() string { return strings.Join(append([]string{a.act}, a.args...), " ") }

func (p *place) fill(args []string) []string {
	names := strings.NewReplacer("IN", p.in, "OUT", p.out)
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = names.Replace(a)
	}
	return out
}

// attackAll makes each attack in a separate place, which prepare has changed.
func attackAll(t *testing.T, attacks []attack, prepare func(*testing.T, *place)) {
	for _, a := range attacks {
		t.Run(a.name(), func(t *testing.T) {
			t.Parallel()
			needLandlock(t, a.abi)
			if a.root && os.Getuid() != 0 {
				t.Skip("only root can do it at all")
			}
			p := newPlace(t)
			if prepare != nil {
				prepare(t, p)
			}
			plan := p.plan()
			// The attack comes before its control, which may use the
			// files up.
			got := p.try(t, plan, a.act, p.fill(a.args)...)
			control := p.try(t, nil, a.act, p.fill(a.args)...)
			if control != 0 {
				t.Fatalf("control: without zsbx: %v", control)
			}
			for _, want := range a.want {
				if got == want {
					return
				}
			}
			t.Errorf("got %v (%d), want %v", got, got, a.want)
		})
	}
}

// one, acces and so on return answers.
func one(e ...syscall.Errno) []syscall.Errno { return e }

func TestFileAttacks(t *testing.T) {
	needLandlock(t, 1)
	acces, xdev := one(unix.EACCES), one(unix.EXDEV, unix.EACCES)
	attackAll(t, []attack{
		{act: "read", args: []string{"OUT/file"}, want: acces},
		{act: "write", args: []string{"OUT/file"}, want: acces},
		{act: "append", args: []string{"OUT/file"}, want: acces},
		{act: "readwrite", args: []string{"OUT/file"}, want: acces},
		{act: "create", args: []string{"OUT/new"}, want: acces},
		{act: "list", args: []string{"OUT"}, want: acces},
		{act: "list", args: []string{"/"}, want: acces},
		{act: "exec", args: []string{"OUT/prog"}, want: acces},
		{act: "mkdir", args: []string{"OUT/new"}, want: acces},
		{act: "rmdir", args: []string{"OUT/empty"}, want: acces},
		{act: "unlink", args: []string{"OUT/file"}, want: acces},
		{act: "symlink", args: []string{"OUT/new"}, want: acces},
		{act: "mkfifo", args: []string{"OUT/new"}, want: acces},
		{act: "mkreg", args: []string{"OUT/new"}, want: acces},
		{act: "mksock", args: []string{"OUT/new"}, want: acces},
		{act: "bind-unix", args: []string{"OUT/new"}, want: acces},
		{act: "mkchar", args: []string{"IN/new"}, want: one(unix.EPERM, unix.EACCES), root: true},
		{act: "mkblock", args: []string{"IN/new"}, want: one(unix.EPERM, unix.EACCES), root: true},

		// Emptying needs a separate right, or the filter instead.
		{act: "truncate", args: []string{"OUT/file"}, want: acces},
		{act: "trunc-ro", args: []string{"OUT/file"}, want: acces},
		{act: "trunc-3", args: []string{"OUT/file"}, want: acces},
		{act: "trunc-wo", args: []string{"OUT/file"}, want: acces},
		{act: "ftruncate", args: []string{"OUT/file"}, want: acces},

		// By other names and from one side to the other.
		{act: "link", args: []string{"OUT/file", "IN/new"}, want: xdev},
		{act: "rename", args: []string{"OUT/file", "IN/new"}, want: xdev},
		{act: "rename", args: []string{"IN/file", "OUT/new"}, want: xdev},
		{act: "exchange", args: []string{"IN/file", "OUT/file"}, want: xdev},
		{act: "read", args: []string{"IN/link"}, want: acces},
		{act: "write", args: []string{"IN/link"}, want: acces},
		{act: "trunc-wo", args: []string{"IN/link"}, want: acces},
		{act: "read", args: []string{"/proc/self/root/OUT/file"}, want: acces},
		{act: "read", args: []string{"/proc/self/cwd/../out/file"}, want: acces},
		{act: "read", args: []string{"/proc/thread-self/root/OUT/file"}, want: acces},
		{act: "read", args: []string{"IN/../out/file"}, want: acces},
		{act: "dirfd", args: []string{"OUT", "file"}, want: acces},
		{act: "dirfd", args: []string{"IN", "../out/file"}, want: acces},
		{act: "handle", args: []string{"OUT/file", "IN"}, want: one(unix.EPERM), root: true},
		{act: "chroot", args: []string{"OUT"}, want: one(unix.EPERM, unix.EACCES), root: true},

		// A readable file can't be written through its descriptor.
		{act: "write", args: []string{"OUT/ro/file"}, want: acces},
		{act: "reopen", args: []string{"OUT/ro/file"}, want: acces},
		{act: "trunc-ro", args: []string{"OUT/ro/file"}, want: acces},
		{act: "link", args: []string{"OUT/ro/file", "IN/new"}, want: xdev},
		{act: "create", args: []string{"OUT/ro/new"}, want: acces},
		{act: "unlink", args: []string{"OUT/ro/file"}, want: acces},
		{act: "exec", args: []string{"OUT/ro/prog"}, want: acces},
		{act: "exec", args: []string{"OUT/rw/prog"}, want: acces},
		{act: "rename", args: []string{"OUT/rw/prog", "IN/prog"}, want: xdev}, // it would gain the right to be executed
	}, filePlace)
}

// filePlace adds a tree that may be read, one that may be written but not
// executed, and links.
func filePlace(t *testing.T, p *place) {
	t.Helper()
	for _, d := range []string{p.out + "/ro", p.out + "/rw", p.out + "/empty"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{p.out + "/prog", p.out + "/ro/prog", p.out + "/rw/prog"} {
		if err := os.WriteFile(f, []byte("#!/bin/true\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.out+"/ro/file", []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.out+"/file", p.in+"/link"); err != nil {
		t.Fatal(err)
	}
	p.allow(t, policy.Read, p.out+"/ro")
	p.allow(t, policy.Read|policy.Write, p.out+"/rw")
}

// TestLease: a readable file can't be leased, which would delay everybody who opens it.
func TestLease(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	attackAll(t, []attack{{act: "lease", args: []string{"OUT/ro/file"}, want: one(unix.EACCES)}}, filePlace)
}

// TestDelegation: the same for directories, in which nobody could make or remove anything
// meanwhile.
func TestDelegation(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	p := newPlace(t)
	filePlace(t, p)
	filterAnswers(t, p.plan(), "fcntl", []string{"3", "1040", "0"}, unix.EACCES) // F_SETDELEG
	if got := p.try(t, nil, "delegation", p.out+"/ro"); got == unix.EINVAL {
		t.Skip("Linux 6.19 is needed: F_SETDELEG says EINVAL")
	}
	attackAll(t, []attack{
		{act: "delegation", args: []string{"OUT/ro"}, want: one(unix.EACCES)},
		{act: "delegation", args: []string{"OUT/ro/file"}, want: one(unix.EACCES)},
	}, filePlace)
}

// TestDevices: a device without a rule can't be used by ioctl(2) either, on a kernel whose
// Landlock does not check that. Opening with access mode 3 needs no right of Landlock.
func TestDevices(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	p := newPlace(t)
	for _, act := range []string{"ioctl-rw", "ioctl-3", "ioctl-3-2"} {
		if got := p.try(t, nil, act, "/dev/random"); got != 0 {
			t.Fatalf("control: %s: %v", act, got)
		}
		for _, abi := range []int{2, 4, 5} {
			caps := enforce.Probe()
			caps.Landlock, caps.MountNS = min(abi, caps.Landlock), false
			plan := enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{})
			if got := p.try(t, plan, act, "/dev/random"); got != unix.EACCES && got != unix.ENOSYS {
				t.Errorf("ABI %d: %s: got %v", abi, act, got)
			}
		}
	}
}

// TestFilesInside: what an ordinary program does in a writable tree works.
func TestFilesInside(t *testing.T) {
	needLandlock(t, 1)
	const refer = 2
	for _, a := range []attack{
		{act: "read", args: []string{"IN/file"}},
		{act: "readwrite", args: []string{"IN/file"}},
		{act: "create", args: []string{"IN/new"}},
		{act: "tmpfile", args: []string{"IN"}},
		{act: "trunc-wo", args: []string{"IN/file"}},
		{act: "ftruncate", args: []string{"IN/file"}},
		{act: "truncate", args: []string{"IN/file"}, abi: 3},
		{act: "trunc-ro", args: []string{"IN/file"}, abi: 3},
		{act: "openat2", args: []string{"IN/file"}, abi: 3},
		{act: "mkdir", args: []string{"IN/new"}},
		{act: "symlink", args: []string{"IN/new"}},
		{act: "mkfifo", args: []string{"IN/new"}},
		{act: "bind-unix", args: []string{"IN/new"}},
		{act: "link", args: []string{"IN/file", "IN/new"}},
		{act: "rename", args: []string{"IN/file", "IN/new"}},
		{act: "link", args: []string{"IN/file", "IN/sub/new"}, abi: refer},
		{act: "rename", args: []string{"IN/file", "IN/sub/new"}, abi: refer},
		{act: "exchange", args: []string{"IN/file", "IN/sub"}, abi: refer},
		{act: "unlink", args: []string{"IN/file"}},
		{act: "rmdir", args: []string{"IN/sub"}},
		{act: "exec", args: []string{"/bin/true"}},
		{act: "read", args: []string{"OUT/ro/file"}},
		{act: "list", args: []string{"OUT/ro"}},
		{act: "readwrite", args: []string{"/dev/null"}},
		{act: "read", args: []string{"/proc/self/status"}},
	} {
		t.Run(a.name(), func(t *testing.T) {
			t.Parallel()
			needLandlock(t, a.abi)
			p := newPlace(t)
			filePlace(t, p)
			if got := p.try(t, p.plan(), a.act, p.fill(a.args)...); got != 0 {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestNoInheritedDescriptors: the command does not get a descriptor that was left open in the
// caller.
func TestNoInheritedDescriptors(t *testing.T) {
	p := newPlace(t)
	fd, err := unix.Open(p.out+"/file", unix.O_RDWR, 0) // no O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(high)
	if got := p.try(t, p.plan(), "inherited", fmt.Sprint(high)); got != unix.EBADF {
		t.Errorf("got %v, want %v", got, unix.EBADF)
	}
	control := exec.Command(self(t), fmt.Sprint(high)) // which closes no descriptors
	control.Env = []string{"ZSBX_TEST_ACT=inherited"}
	if err := control.Run(); err != nil {
		t.Errorf("control: %v", err)
	}
}

// TestSwapRace replaces a directory of the policy by a link to files that are not allowed,
// again and again, while commands start. None of them ever reads these files.
func TestSwapRace(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	target, spare := p.in+"/target", p.in+"/spare"
	if err := os.Mkdir(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.out, spare); err != nil {
		t.Fatal(err)
	}
	p.policy.Paths = p.policy.Paths[:len(p.policy.Paths)-1] // not p.in
	p.allow(t, policy.Read|policy.Write, target)
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, target, unix.AT_FDCWD, spare, unix.RENAME_EXCHANGE)
			}
		}
	}()
	rounds, started := 300, 0
	if testing.Short() {
		rounds = 50
	}
	for end := time.Now().Add(testkit.Patience); rounds > 0 || started == 0 && time.Now().Before(end); rounds-- {
		plan := p.plan()
		c, err := startAct(plan, p, "read", p.out+"/file")
		if err != nil {
			continue // noticed
		}
		started++
		if status := c(t); status == 0 {
			t.Fatal("the file behind the link was read")
		}
	}
	close(stop)
	<-done
	t.Logf("%d rounds started", started)
	if started == 0 {
		t.Error("no round started: nothing was tested")
	}
}
