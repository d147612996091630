// Command bench measures what zsbx costs, against a bare exec, a Go program
// that only forks and waits, and bubblewrap, all in one run.
//
// Programs take turns in a new random order each round, so that a machine
// whose speed drifts is the same to all of them; what counts is the ratio of
// the medians. Run as root it measures as an ordinary user (-uid).
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

type bench struct {
	zsbx, dir string
	uid       int
	rounds    int
	env       []string
}

// program is one thing to time.
type program struct {
	name string
	argv []string
	dir  string
	env  []string // added to the environment
	took []time.Duration
	cpu  time.Duration // of all rounds, with what it waited for
	flt  int64         // page faults, likewise
}

func main() {
	b := &bench{}
	var only string
	var fifo bool
	flag.StringVar(&b.zsbx, "zsbx", "./zsbx", "the `binary` to measure")
	flag.IntVar(&b.uid, "uid", 65534, "run as this `user` when root")
	flag.IntVar(&b.rounds, "rounds", 400, "`rounds` of the start-up measurement")
	flag.StringVar(&only, "only", "", "measure only `what`: start, policy, build, explain, reap, ps, memory")
	flag.BoolVar(&fifo, "fifo", false, "run all with SCHED_FIFO, by chrt(1): other programs hardly disturb it")
	flag.Parse()
	if fifo {
		fmt.Fprintln(os.Stderr, "bench:", withFIFO(os.Args[1:]))
		os.Exit(1)
	}
	fmt.Println(busy())
	if err := b.setup(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	defer os.RemoveAll(b.dir)
	for _, m := range []struct {
		name string
		run  func() error
	}{{"start", b.start}, {"policy", b.policy}, {"build", b.build}, {"explain", b.explain}, {"reap", b.reap}, {"ps", b.ps}, {"memory", b.memory}} {
		if only != "" && only != m.name {
			continue
		}
		if err := m.run(); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", m.name, err)
		}
	}
	fmt.Println("\n" + busy())
}

// withFIFO starts this program again without its flag, in the real-time class. It
// returns only when that fails.
func withFIFO(args []string) error {
	chrt, err := exec.LookPath("chrt")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.TrimLeft(a, "-") == "fifo" })
	return syscall.Exec(chrt, append([]string{"chrt", "-f", "5", self}, args...), append(os.Environ(), "ZSBX_BENCH=fifo"))
}

// busy says how busy the machine is.
func busy() string {
	load, _ := os.ReadFile("/proc/loadavg")
	policy := "fair scheduling"
	if os.Getenv("ZSBX_BENCH") != "" {
		policy = "SCHED_FIFO"
	}
	minute, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("Load average %s, %d processors, %s.", minute, runtime.NumCPU(), policy)
}

// setup makes the directory that everything happens in and the programs that
// are compared.
func (b *bench) setup() error {
	var err error
	if b.dir, err = os.MkdirTemp("", "zsbx-bench-"); err != nil {
		return err
	}
	abs, err := filepath.Abs(b.zsbx)
	if err != nil {
		return err
	}
	// The binary may lie where the ordinary user can't reach it.
	data, err := os.ReadFile(abs)
	if err != nil {
		return err
	}
	b.zsbx = filepath.Join(b.dir, "zsbx")
	if err := os.WriteFile(b.zsbx, data, 0o755); err != nil {
		return err
	}
	for _, d := range []string{"home", "work"} {
		if err := os.Mkdir(filepath.Join(b.dir, d), 0o755); err != nil {
			return err
		}
	}
	home := filepath.Join(b.dir, "home")
	b.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "TERM=dumb", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false"}
	for name, source := range map[string]string{"forkwait": forkWait, "onerule": oneRule} {
		if err := compile(filepath.Join(b.dir, name), source); err != nil {
			return err
		}
	}
	return b.own()
}

const forkWait = `package main

import (
	"os"
	"os/exec"
)

func main() {
	c := exec.Command(os.Args[1], os.Args[2:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if c.Run() != nil {
		os.Exit(1)
	}
}
`

// oneRule executes a program below one Landlock rule that allows everything: what is
// left of its time, but for the start of a Go program, is the kernel's walk.
const oneRule = `package main

import (
	"log"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	runtime.LockOSThread()
	rights := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1)
	ruleset, _, e1 := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rights)), 8, 0)
	root, err := unix.Open("/", unix.O_PATH, 0)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(root)}
	_, _, e2 := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	e3 := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	_, _, e4 := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0)
	path, e5 := exec.LookPath(os.Args[1])
	log.Fatal(e1, err, e2, e3, e4, e5, syscall.Exec(path, os.Args[1:], os.Environ()))
}
`

// own hands the directory to the user who is measured.
func (b *bench) own() error {
	if os.Getuid() != 0 {
		return nil
	}
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return err
	}
	return filepath.WalkDir(b.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, b.uid, b.uid)
	})
}

func (b *bench) work() string { return filepath.Join(b.dir, "work") }

// command makes a command of the measured user.
func (b *bench) command(dir string, argv ...string) *exec.Cmd {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = dir, slices.Clone(b.env)
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(b.uid), Gid: uint32(b.uid)}}
	}
	return c
}

// race times the programs in turn.
func (b *bench) race(rounds int, ps ...*program) error {
	for round := range rounds + 3 {
		for _, i := range rand.Perm(len(ps)) {
			p := ps[i]
			c := b.command(p.dir, p.argv...)
			c.Env = append(c.Env, p.env...)
			var errs strings.Builder
			c.Stderr = nil
			start := time.Now()
			if err := c.Run(); err != nil {
				c := b.command(p.dir, p.argv...)
				c.Stderr = &errs
				c.Run()
				return fmt.Errorf("%s: %w: %s", p.name, err, errs.String())
			}
			if round >= 3 { // the first ones warm up
				p.took = append(p.took, time.Since(start))
				p.cpu += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
				p.flt += c.ProcessState.SysUsage().(*syscall.Rusage).Minflt
			}
		}
	}
	return nil
}

func (p *program) median() time.Duration {
	t := slices.Clone(p.took)
	slices.Sort(t)
	return t[len(t)/2]
}

// table prints the medians, page faults, and the medians' ratios to the programs
// named.
func table(title string, ps []*program, against ...*program) {
	fmt.Printf("\n%s\n\n| program | median | page faults |", title)
	for _, a := range against {
		fmt.Printf(" to %s |", a.name)
	}
	fmt.Print("\n|---|--:|--:|", strings.Repeat("--:|", len(against)), "\n")
	for _, p := range ps {
		fmt.Printf("| %s | %.2f ms | %d |", p.name, ms(p.median()), p.flt/int64(max(len(p.took), 1)))
		for _, a := range against {
			fmt.Printf(" %.2f |", ms(p.median())/ms(a.median()))
		}
		fmt.Println()
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
