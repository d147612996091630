package attack_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// outsider starts an unconfined process of the same user, in its own process group.
func outsider(t *testing.T) string {
	t.Helper()
	c := exec.Command("/bin/sleep", "600")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return fmt.Sprint(c.Process.Pid)
}

// TestForeignNamespace: the owner of a user namespace has all capabilities in it. The command
// can't enter one of the user's containers, however it got its descriptor: Linux 6.16 gives
// that by ioctl_nsfs(2), NS_MNT_GET_NEXT.
func TestForeignNamespace(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	c := exec.Command("/bin/sleep", "600")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		testkit.Lacks(t, testkit.UserNS, err.Error())
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", c.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	p := newPlace(t)
	enter := func(plan *enforce.Plan) int {
		return runFiles(t, plan, &fork.Command{Path: "/usr/bin/nsenter", Args: []string{"nsenter", "--preserve-credentials", "--user=/proc/self/fd/0", "true"},
			Dir: p.in, Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{ns, os.Stdout, nil}})
	}
	if enter(nil) != 0 {
		t.Error("control: it could not be entered without zsbx")
	}
	if enter(p.plan()) == 0 {
		t.Error("it was entered")
	}
}

func TestProcessAttacks(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	perm, acces := one(unix.EPERM), one(unix.EACCES)
	victim := outsider(t)
	for _, a := range []attack{
		{act: "ptrace", args: []string{"PID"}, want: perm},
		{act: "vm-read", args: []string{"PID"}, want: perm},
		{act: "mem", args: []string{"PID"}, want: acces},
		{act: "environ", args: []string{"PID"}, want: acces},
		{act: "root", args: []string{"PID", "etc/passwd"}, want: acces},
		{act: "oom", args: []string{"PID"}, want: acces},
		{act: "prlimit", args: []string{"PID"}, want: perm},
		{act: "affinity", args: []string{"PID"}, want: perm},
		{act: "scheduler", args: []string{"PID"}, want: perm},
		{act: "schedattr", args: []string{"PID"}, want: perm},
		{act: "nice", args: []string{"PID"}, want: perm},
		{act: "nice-group", args: []string{"PID"}, want: perm},
		{act: "ionice", args: []string{"PID"}, want: perm},
	} {
		t.Run(a.act, func(t *testing.T) {
			needLandlock(t, a.abi)
			p := newPlace(t)
			for i := range a.args {
				a.args[i] = strings.ReplaceAll(a.args[i], "PID", victim)
			}
			if got := p.try(t, p.plan(), a.act, a.args...); got != a.want[0] {
				t.Errorf("got %v, want %v", got, a.want)
			}
			if control := p.try(t, nil, a.act, a.args...); control != 0 {
				if yama, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); len(yama) > 0 && yama[0] != '0' && os.Getuid() != 0 {
					t.Skipf("control: Yama answers %v without zsbx", control)
				}
				t.Errorf("control: %v", control)
			}
		})
	}
}

// TestPidsLimits: in a PID namespace of its own a command changes limits and priorities of its own
// processes, but of no process outside and not the keeper's.
func TestPidsLimits(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	p.policy.Private.Pids.Value = "private"
	plan := p.mountPlan()
	if plan.Mounts == nil || !plan.Mounts.Pids {
		testkit.Lacks(t, testkit.UserNS, "no PID namespace is planned")
	}
	victim := outsider(t)
	state := func() string {
		out, err := exec.Command("/bin/sh", "-c", "cat /proc/$1/limits; cut -d' ' -f18,19,41 /proc/$1/stat; grep allowed /proc/$1/status", "sh", victim).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	before := state()
	for _, act := range []string{"prlimit", "affinity", "scheduler", "schedattr", "nice"} {
		for _, tt := range []struct {
			whose string
			plan  *enforce.Plan
			want  unixErrno
		}{
			{"child", plan, 0}, {"child", nil, 0}, {"child", p.plan(), unix.EPERM},
			{"1", plan, unix.EPERM}, {victim, plan, unix.ESRCH}, {"0", plan, 0},
		} {
			if got := p.try(t, tt.plan, "limit-all", act, tt.whose); got != tt.want {
				t.Errorf("%s of %s, confined %v: %v, want %v", act, tt.whose, tt.plan != nil, got, tt.want)
			}
		}
		// Every number that a process in the namespace may have, and some more.
		if got := p.try(t, plan, "limit-all", act, "everybody"); got != 0 {
			t.Errorf("%s of everybody: %v", act, got)
		}
	}
	for _, act := range []string{"nice-group", "ionice"} {
		if got := p.try(t, plan, act, victim); got != unix.EPERM {
			t.Errorf("%s: %v", act, got)
		}
	}
	if after := state(); after != before {
		t.Errorf("a process outside changed:\n%s\nbefore:\n%s", after, before)
	}
	p.try(t, nil, "nice", victim)
	if after := state(); after == before {
		t.Error("control: a change would not be seen")
	}
}

// TestOwnProcesses: a command can still control its own processes.
func TestOwnProcesses(t *testing.T) {
	needLandlock(t, 1)
	for _, a := range []attack{
		{act: "own"}, {act: "own-ptrace"}, {act: "threads"},
		{act: "prlimit", args: []string{"0"}},
		{act: "affinity", args: []string{"0"}},
		{act: "scheduler", args: []string{"0"}},
		{act: "schedattr", args: []string{"0"}},
		{act: "nice", args: []string{"0"}},
		{act: "ionice", args: []string{"0"}},
		{act: "prlimit-ro", args: []string{fmt.Sprint(os.Getpid())}},
		{act: "pair"},
	} {
		t.Run(a.act, func(t *testing.T) {
			p := newPlace(t)
			if control := p.try(t, nil, a.act, a.args...); control != 0 {
				t.Errorf("control: %v", control)
			}
			if got := p.try(t, p.plan(), a.act, a.args...); got != 0 {
				t.Errorf("got %v", got)
			}
		})
	}
	p := newPlace(t)
	for _, script := range []string{
		"nice -n 5 true", "taskset -c 0 true", "ionice -c 3 true", "ulimit -n 64 && true",
		"setsid true", "sleep 60 & kill $! && wait", "timeout 5 true", "true & wait",
		"prlimit --nofile=64 true",
		// glibc's calls for threads name the calling thread, or a sibling, by number.
		`python3 -c 'import os; os.sched_setaffinity(os.getpid(), {0}); os.setpriority(os.PRIO_PROCESS, os.getpid(), min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5))'`,
		`python3 -c '
import os, threading
stay = threading.Event()
t = threading.Thread(target=stay.wait)
t.start()
try: os.sched_setscheduler(t.native_id, os.SCHED_BATCH, os.sched_param(0))
finally: stay.set()'`,
	} {
		name, _, _ := strings.Cut(script, " ")
		t.Run(name, func(t *testing.T) {
			c, out := p.sh(t, nil, script)
			testkit.NeedShell(t, c, out)
			if c != 0 && c != 143 {
				t.Errorf("control: %s: exit status %d: %s", script, c, out)
			}
			if status, out := p.sh(t, p.plan(), script); status != 0 && status != 143 {
				t.Errorf("%s: exit status %d: %s", script, status, out)
			}
		})
	}
}

func TestKernelAttacks(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	for _, a := range []attack{
		{act: "bpf", want: one(unix.EPERM), control: unix.EINVAL},
		{act: "perf", want: one(unix.EPERM), control: unix.EFAULT, call: "perf_event_open"},
		{act: "userfaultfd", want: one(unix.EPERM)},
		{act: "keyctl", want: one(unix.EPERM)},
		{act: "add_key", want: one(unix.EPERM)},
		{act: "clone3", want: one(unix.ENOSYS), control: unix.EINVAL},
		{act: "x32", want: one(unix.ENOSYS)},
		{act: "int80", want: one(errnoSignal+syscall.Errno(unix.SIGSYS), unix.ENOSYS)},
		{act: "fanotify", want: one(unix.EPERM), call: "fanotify_init"},
		{act: "dmesg", want: one(unix.EPERM), call: "syslog"},
		{act: "capset", want: one(unix.EPERM), root: true},
		{act: "raw-socket", want: one(unix.EPERM), root: true},
		{act: "mknod-root", args: []string{"IN/null"}, want: one(unix.EPERM, unix.EACCES), root: true},
	} {
		t.Run(a.act, func(t *testing.T) {
			if a.root && os.Getuid() != 0 {
				t.Skip("only root can do it at all")
			}
			p := newPlace(t)
			got := p.try(t, p.plan(), a.act, p.fill(a.args)...)
			control := p.try(t, nil, a.act, p.fill(a.args)...)
			if a.act == "int80" && control == noCode32 && got == noCode32 {
				t.Skip("this kernel has no 32-bit system calls")
			}
			if !slices.Contains(a.want, got) {
				t.Errorf("got %v (%d), want %v", got, got, a.want)
			}
			switch {
			case control == a.control:
			case !slices.Contains(a.want, control):
				t.Errorf("control: %v, want %v", control, a.control)
			case a.act == "x32" || a.act == "int80":
				t.Skip("this kernel has no such calls: only seccomp's TestFilterArchitectures asks the filter")
			default: // this kernel refuses it to this user, so the filter's own answer counts
				filterAnswers(t, p.plan(), cmp.Or(a.call, a.act), nil, a.want[0])
			}
		})
	}
}

// TestRootKeepsFileOwnership: what builds and package managers do as root works.
func TestRootKeepsFileOwnership(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("for root")
	}
	needLandlock(t, 1)
	p := newPlace(t)
	if got := p.try(t, p.plan(), "chown", p.in+"/file"); got != 0 {
		t.Errorf("chown: %v", got)
	}
	for _, script := range []string{
		"touch a && chown 12:34 a && chmod 6755 a && test -u a && rm a",
		"install -o 5 -g 5 -m 600 /etc/passwd copy && cat copy >/dev/null && echo x >>copy",
		"tar cf t.tar sub && tar xf t.tar --same-owner",
	} {
		if status, out := p.sh(t, p.plan(), script); status != 0 {
			t.Errorf("%s: exit status %d: %s", script, status, out)
		}
	}
	// CAP_KILL stays only if signals are kept inside.
	const drop = "setpriv --reuid 65534 --regid 65534 --clear-groups sleep 600 >/dev/null 2>&1 & until grep -q ^Uid:.65534 /proc/$!/status; do :; done; kill $!; s=$?; kill -9 $! 2>/dev/null; exit $s"
	scoped := holds(p.plan())
	if status, out := p.sh(t, p.plan(), drop); (status == 0) != scoped {
		t.Errorf("killing a child that gave up root: exit status %d, signals are kept inside: %v: %s", status, scoped, out)
	}
	status, out := p.sh(t, p.plan(), "grep -E 'Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|^Seccomp:' /proc/self/status")
	want := fmt.Sprintf("%016x", enforce.Probe().Capabilities&^p.plan().DropCapabilities)
	if status != 0 || strings.Count(out, want) != 3 {
		t.Errorf("want %s three times:\n%s", want, out)
	}
}

// TestTerminal: the terminal that the command was started on works, and can't
// be typed into.
func TestTerminal(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	for _, tt := range []struct {
		act  string
		want syscall.Errno
	}{{"tiocgwinsz", 0}, {"tiocsti", unix.EPERM}, {"tiocsti64", unix.EPERM}, {"tiocsetd", unix.EPERM}} {
		p := newPlace(t)
		master, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		exe := self(t)
		for _, plan := range []*enforce.Plan{nil, p.plan()} {
			got := onTerminal(t, plan, exe, tt.act, tty)
			switch {
			case plan == nil && got == unix.EIO && tt.want != 0 && !legacyTIOCSTI():
				filterAnswers(t, p.plan(), "ioctl", []string{"0", fmt.Sprint(unix.TIOCSTI)}, tt.want)
			case plan == nil && got != 0:
				t.Errorf("control: %s without zsbx: %v", tt.act, got)
			case plan != nil && got != tt.want:
				t.Errorf("%s: got %v, want %v", tt.act, got, tt.want)
			}
		}
		tty.Close()
		master.Close()
	}
}

// legacyTIOCSTI reports whether this kernel lets anybody type into a terminal
// (dev.tty.legacy_tiocsti, Linux 6.2).
func legacyTIOCSTI() bool {
	b, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti")
	return err != nil || strings.TrimSpace(string(b)) == "1"
}

// onTerminal does an act in a new session whose terminal is tty.
func onTerminal(t *testing.T, plan *enforce.Plan, exe, act string, tty *os.File) syscall.Errno {
	t.Helper()
	c := &fork.Command{
		Path: exe, Args: []string{exe}, Files: []*os.File{tty},
		Env: []string{"ZSBX_TEST_ACT=" + act},
		Steps: []fork.Step{
			{Name: "setsid(2)", Nr: unix.SYS_SETSID},
			{Name: "ioctl(TIOCSCTTY)", Nr: unix.SYS_IOCTL, Args: [6]uintptr{0, unix.TIOCSCTTY, 1}},
		},
	}
	proc, err := startUnder(plan, c)
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	return syscall.Errno(await(t, proc).ExitStatus())
}

// TestNewTerminals: programs that make terminals (tmux, script) can, when the
// devices are allowed.
func TestNewTerminals(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	for _, dev := range []string{"/dev/ptmx", "/dev/pts"} {
		p.allow(t, policy.Read|policy.Write, dev)
	}
	if control := p.try(t, nil, "openpty"); control != 0 {
		t.Errorf("control: %v", control)
	}
	if got := p.try(t, p.plan(), "openpty"); got != 0 {
		t.Errorf("got %v", got)
	}
}

// TestUserNamespaces: none can be made. In one the command could use parts of the kernel as
// root.
func TestUserNamespaces(t *testing.T) {
	needSeccomp(t)
	p := newPlace(t)
	if control := p.try(t, nil, "userns"); control != 0 {
		testkit.Lacks(t, testkit.UserNS, control)
	}
	if got := p.try(t, p.plan(), "userns"); got != unix.EPERM {
		t.Errorf("clone(2): got %v, want %v", got, unix.EPERM)
	}
	const script = "unshare --user true"
	if status, out := p.sh(t, nil, script); status != 0 {
		t.Fatalf("control: exit status %d: %s", status, out)
	}
	if status, out := p.sh(t, p.plan(), script); status == 0 {
		t.Errorf("unshare(2) worked: %s", out)
	}
}

// TestMounts: not even root can mount in the namespaces that it already has.
func TestMounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can do it at all")
	}
	needLandlock(t, 1)
	p := newPlace(t)
	const script = "unshare --mount mount -t tmpfs none sub"
	if status, out := p.sh(t, nil, script); status != 0 {
		testkit.Lacks(t, testkit.UserNS, "mounting as root: ", out)
	}
	if status, out := p.sh(t, p.plan(), script); status == 0 {
		t.Errorf("mounted: %s", out)
	}
}
