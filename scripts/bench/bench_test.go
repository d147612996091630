package bench

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

type bench struct {
	zsbx, probe string   // the binaries, where the measured user can reach them
	others      []string // more binaries of zsbx, to compare
	dir         string   // for all files, with "home" and "work" in it
	uid         int
	rounds      int
	env         []string
}

// program is one thing to time.
type program struct {
	name  string
	argv  []string
	dir   string   // "" is the bench's "work"
	env   []string // added to the environment
	took  []time.Duration
	cpu   time.Duration // of all rounds, including the processes that it waited for
	flt   int64         // page faults, likewise
	calls string        // how many system calls, of all its processes
}

var (
	zsbx   = flag.String("zsbx", "", "the `binary` to measure")
	others []string // set by -vs
	probe  = flag.String("probe", "", "the `binary` of scripts/bench/probe")
	uid    = flag.Int("uid", 65534, "run as this `user` when root")
	rounds = flag.Int("rounds", 400, "`rounds` of the start-up measurement")
	only   = flag.String("only", "", "measure only `what`: start, trees, policy, build, explain, network, reap, ps, memory")
)

func init() {
	flag.Func("vs", "another `binary` of zsbx to measure beside it; can be repeated", func(path string) error {
		others = append(others, path)
		return nil
	})
}

// TestMeasure takes some minutes. An error panics, which ends the measurement in which it occurs.
func TestMeasure(t *testing.T) {
	if *zsbx == "" {
		t.Skip("make bench runs it")
	}
	b := &bench{zsbx: *zsbx, probe: *probe, others: others, uid: *uid, rounds: *rounds}
	fmt.Println(busy())
	b.setup()
	defer func() {
		_ = b.command(b.zsbx, "reap", "--all").Run() // removes the temporary directories that --exec left
		_ = os.RemoveAll(b.dir)
	}()
	for _, m := range []struct {
		name string
		run  func()
	}{{"start", b.start}, {"trees", b.trees}, {"policy", b.policy}, {"build", b.build}, {"explain", b.explain}, {"network", b.network}, {"reap", b.reap}, {"ps", b.ps}, {"memory", b.memory}} {
		if *only == "" || *only == m.name {
			t.Run(m.name, func(t *testing.T) {
				defer func() {
					if err, ok := recover().(error); ok {
						t.Error(err)
					}
				}()
				m.run()
			})
		}
	}
	fmt.Println("\n" + busy())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func get[T any](v T, err error) T {
	must(err)
	return v
}

// output runs a command, and returns what it prints to stdout.
func output(c *exec.Cmd) string {
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		panic(fmt.Errorf("%s: %w: %s%s", c, err, out, errs.String()))
	}
	return string(out)
}

// busy returns how busy the machine is. scripts/bench.sh sets the class in which everything runs.
func busy() string {
	load, _ := os.ReadFile("/proc/loadavg")
	minute, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("Load average %s, %d processors, %s.", minute, runtime.NumCPU(), cmp.Or(os.Getenv("ZSBX_BENCH"), "fair scheduling"))
}

// setup makes the directory in which everything happens. The binaries are copied there, because
// the ordinary user may not reach them where they are.
func (b *bench) setup() {
	b.dir = get(os.MkdirTemp("", "zsbx-bench-"))
	home := filepath.Join(b.dir, "home")
	must(os.Mkdir(home, 0o755))
	must(os.Mkdir(b.work(), 0o755))
	b.zsbx = b.install(b.zsbx, "zsbx")
	b.probe = b.install(b.probe, "probe")
	for i, other := range b.others {
		b.others[i] = b.install(other, filepath.Base(other))
	}
	b.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "TERM=dumb", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false"}
	b.own()
}

// install copies a binary and reads it back from the disk, as after an installation and a
// restart. The page cache keeps a file in larger pieces if it was just written, or was written by
// few calls, and then a program starts faster.
func (b *bench) install(binary, name string) string {
	path := filepath.Join(b.dir, name)
	in := get(os.Open(binary))
	defer in.Close()
	out := get(os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o755))
	defer out.Close()
	get(io.Copy(out, in))
	must(out.Sync())
	evict(out)
	get(out.Seek(0, io.SeekStart))
	get(io.Copy(io.Discard, out))
	return path
}

// own gives the directory to the user who is measured.
func (b *bench) own() {
	if os.Getuid() != 0 {
		return
	}
	must(os.Chmod(b.dir, 0o755))
	must(filepath.WalkDir(b.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, b.uid, b.uid)
	}))
}

func (b *bench) work() string { return filepath.Join(b.dir, "work") }

// tree makes directories of 100 empty files.
func tree(top string, dirs int) string {
	for i := range dirs {
		dir := filepath.Join(top, strconv.Itoa(i/100), strconv.Itoa(i))
		must(os.MkdirAll(dir, 0o755))
		for k := range 100 {
			must(os.WriteFile(filepath.Join(dir, strconv.Itoa(k)), nil, 0o644))
		}
	}
	return top
}

// run returns a command line of zsbx run. rest begins with more flags.
func (b *bench) run(rest ...string) []string {
	return append([]string{b.zsbx, "run", "--rw", "."}, rest...)
}

// command makes a command that runs as the measured user.
func (b *bench) command(argv ...string) *exec.Cmd {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = b.work(), slices.Clone(b.env)
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(b.uid), Gid: uint32(b.uid)}}
	}
	return c
}

// once makes a command that runs p.
func (b *bench) once(p *program, before ...string) *exec.Cmd {
	c := b.command(append(before, p.argv...)...)
	c.Dir = cmp.Or(p.dir, c.Dir)
	c.Env = append(c.Env, p.env...)
	return c
}

// count counts the system calls of each program.
func (b *bench) count(ps ...*program) {
	for _, p := range ps {
		p.calls = b.calls(p)
	}
}

// calls returns how many system calls p makes, counted by strace(1) in a run that is not timed,
// or "" without strace. Those of Go's scheduler are left out, since their number differs from run
// to run.
func (b *bench) calls(p *program) string {
	if _, err := exec.LookPath("strace"); err != nil {
		return ""
	}
	file := filepath.Join(b.dir, "home", "calls")
	if err := b.once(p, "strace", "-f", "-c", "-U", "calls", "-o", file, "-e", "trace=!futex,nanosleep,tgkill,rt_sigreturn").Run(); err != nil {
		return "?"
	}
	fields := strings.Fields(string(get(os.ReadFile(file))))
	return fields[len(fields)-2]
}

// race times the programs in turn.
func (b *bench) race(rounds int, ps ...*program) {
	for round := range rounds + 3 {
		for _, i := range rand.Perm(len(ps)) {
			p := ps[i]
			c := b.once(p)
			start := time.Now()
			if c.Run() != nil {
				output(b.once(p)) // prints why
				panic(fmt.Errorf("%s fails at times", p.name))
			}
			if round >= 3 { // the first ones warm up
				p.took = append(p.took, time.Since(start))
				p.cpu += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
				p.flt += c.ProcessState.SysUsage().(*syscall.Rusage).Minflt
			}
		}
	}
}

func (p *program) median() time.Duration {
	t := slices.Sorted(slices.Values(p.took))
	return t[len(t)/2]
}

// table prints the medians, page faults, system calls, and the ratios of the medians to those of
// the programs in against.
func table(title string, ps []*program, against ...*program) {
	fmt.Printf("\n%s\n\n| program | median | page faults | system calls |", title)
	for _, a := range against {
		fmt.Printf(" to %s |", a.name)
	}
	fmt.Print("\n|---|--:|--:|--:|", strings.Repeat("--:|", len(against)), "\n")
	for _, p := range ps {
		fmt.Printf("| %s | %.2f ms | %d | %s |", p.name, ms(p.median()), p.flt/int64(max(len(p.took), 1)), p.calls)
		for _, a := range against {
			fmt.Printf(" %.2f |", ms(p.median())/ms(a.median()))
		}
		fmt.Println()
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
