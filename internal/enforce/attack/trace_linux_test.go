package attack_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/testkit"
)

// watched runs a command and records what it is refused.
func watched(t testing.TB, p *place, env []string, argv ...string) (int, string, enforce.Refusals) {
	t.Helper()
	caps := enforce.Probe()
	plan := enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{Explain: true})
	if why := plan.Explains(); why != "" {
		testkit.Lacks(t, testkit.Seccomp, why)
	}
	ws, out := run(t, plan, &fork.Command{Path: argv[0], Args: argv, Dir: p.in, Keeper: &fork.Keeper{}, Env: env})
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end) && plan.Refusals().Seen == 0; {
		time.Sleep(time.Millisecond)
	}
	r := plan.Refusals()
	for _, x := range r.List { // why says what check says
		if d := plan.Decide(x.Act); d.Verdict == enforce.Refused && d.Answer == x.Answer.Answer && (d.Reason != x.Answer.Reason || d.Origin != x.Answer.Origin) {
			t.Errorf("%s %s: why says %q (%s), check says %q (%s)", x.Call, x.Act.Path, x.Answer.Reason, x.Answer.Origin, d.Reason, d.Origin)
		}
	}
	if ws.Signaled() {
		return 128 + int(ws.Signal()), out, r
	}
	return ws.ExitStatus(), out, r
}

func shellEnv(p *place) []string {
	return []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + p.dir, "TMPDIR=" + p.in, "OUT=" + p.out, "LC_ALL=C.UTF-8"}
}

// said returns refusals as text, for comparison.
func said(r enforce.Refusals) []string {
	var out []string
	for _, x := range r.List {
		kind := x.Answer.By
		if x.Ordinary {
			kind = "ordinary"
		} else if x.Unknown() {
			kind = "UNKNOWN"
		}
		out = append(out, fmt.Sprintf("%s %s %s>%s %s %s proved=%v %s x%d", x.Call, x.Act.Verb(), x.Act.Path, x.Act.To, x.Errno, kind, x.Proved, x.Program, x.Count))
	}
	sort.Strings(out)
	return out
}

var stormRounds = flag.Int("watch.storm", 100, "processes of TestWatchStorm")

// TestWatchStorm kills threads while they are watched. An attached thread must be reaped, or
// its process never ends.
func TestWatchStorm(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	began := time.Now()
	env := append(shellEnv(p), "ZSBX_TEST_ACT=storm")
	over := make(chan struct{})
	go func() {
		defer close(over)
		status, out, r := watched(t, p, env, self(t), p.out+"/file", strconv.Itoa(*stormRounds))
		if status != 0 || len(r.List) == 0 {
			t.Errorf("status %d: %s, %d refusals", status, out, len(r.List))
		}
		for _, x := range r.List {
			t.Logf("%d processes in %v: %s %s %s x%d of %d", *stormRounds, time.Since(began), x.Call, x.Errno, x.Answer.By, x.Count, r.Seen)
		}
	}()
	select {
	case <-over:
	case <-time.After(testkit.Patience + time.Duration(*stormRounds)*200*time.Millisecond):
		t.Fatal("it hangs")
	}
}

// stormActs returns the processes of TestWatchStorm. Their threads are refused a file until the
// process ends.
func stormActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"storm": func(a []string) error {
			for range num(a[1]) {
				c := exec.Command(os.Args[0], a[0])
				c.Env = append(os.Environ(), "ZSBX_TEST_ACT=storm-process")
				if out, err := c.CombinedOutput(); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
			}
			return nil
		},
		"storm-process": func(a []string) error {
			for range 4 {
				go func() {
					for {
						_ = open(a[0], unix.O_RDONLY)
					}
				}()
			}
			time.Sleep(time.Duration(os.Getpid()%7) * 300 * time.Microsecond)
			os.Exit(0)
			return nil
		},
	}
}

// TestWatchGains: a program whose file would give rights runs without them, and that is
// reported.
func TestWatchGains(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	prog := "/usr/bin/su"
	if os.Geteuid() == 0 {
		// struct vfs_cap_data: CAP_NET_RAW is permitted.
		capability := []byte{3: 2, 5: 1 << 5, 19: 0}
		b, err := os.ReadFile("/bin/true")
		if err != nil {
			t.Fatal(err)
		}
		prog = p.in + "/prog"
		if os.WriteFile(prog, b, 0o755) != nil || unix.Setxattr(prog, "security.capability", capability, 0) != nil {
			t.Skip("no file capabilities here")
		}
		dumb := p.in + "/dumb" // with the effective bit the kernel does not start it without the capability
		capability[0] = 1
		if os.WriteFile(dumb, b, 0o755) != nil || unix.Setxattr(dumb, "security.capability", capability, 0) != nil {
			t.Fatal("no effective bit")
		}
		if _, out, r := watched(t, p, shellEnv(p), "/bin/sh", "-c", dumb); len(r.List) != 1 || r.List[0].Errno != "EPERM" || r.List[0].Answer.By != "no_new_privs" || r.List[0].Ordinary {
			t.Errorf("%s: %q", out, said(r))
		}
	} else if st, err := os.Stat(prog); err != nil || st.Mode()&os.ModeSetuid == 0 {
		t.Skip("no set-user-ID program here")
	}
	for program, want := range map[string]int{"/bin/true": 0, prog: 1} {
		status, out, r := watched(t, p, shellEnv(p), program, "--version")
		if status != 0 || len(r.List) != want || want == 1 && (r.List[0].Answer.By != "no_new_privs" || r.List[0].Act.Path != prog) {
			t.Errorf("%s: status %d: %s: %q", program, status, out, said(r))
		}
	}
}

// TestWatchFilter: without Explain the filter is unchanged.
func TestWatchFilter(t *testing.T) {
	p := newPlace(t)
	caps := enforce.Probe()
	plain, asked := enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{}), enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{Explain: true})
	if !slices.Equal(plain.Seccomp.Program, asked.Seccomp.Program) {
		t.Error("asking for refusals changes what is refused")
	}
	if plain.Explains() == "" || caps.SeccompNotify && asked.Explains() != "" {
		t.Errorf("explains: %q, %q", plain.Explains(), asked.Explains())
	}
}

// startVictim starts a process outside and returns its number.
func startVictim(t *testing.T) string {
	t.Helper()
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return strconv.Itoa(c.Process.Pid)
}
