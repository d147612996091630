// Command bench measures what zsbx costs, against a bare exec, a Go program
// that only forks and waits, and bubblewrap, all in one run.
//
// Programs take turns in a new random order each round, so that a machine
// whose speed drifts is the same to all of them; what counts is the ratio of
// the medians. Run as root it measures as an ordinary user (-uid).
//
// What fails panics with its error, which ends the measurement that it is in.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type bench struct {
	zsbx, self string // the binaries, where the measured user can reach them
	dir        string // of all files; "home" and "work" are in it
	uid        int
	rounds     int
	env        []string
}

// program is one thing to time.
type program struct {
	name string
	argv []string
	dir  string   // "" is the bench's "work"
	env  []string // added to the environment
	took []time.Duration
	cpu  time.Duration // of all rounds, with what it waited for
	flt  int64         // page faults, likewise
}

func main() {
	if len(os.Args) > 2 && probes[os.Args[1]] != nil {
		probes[os.Args[1]](os.Args[2:])
		return
	}
	b := &bench{}
	var only string
	flag.StringVar(&b.zsbx, "zsbx", "./zsbx", "the `binary` to measure")
	flag.IntVar(&b.uid, "uid", 65534, "run as this `user` when root")
	flag.IntVar(&b.rounds, "rounds", 400, "`rounds` of the start-up measurement")
	flag.StringVar(&only, "only", "", "measure only `what`: start, policy, build, explain, reap, ps, memory")
	flag.Parse()
	fmt.Println(busy())
	b.setup()
	defer os.RemoveAll(b.dir)
	for _, m := range []struct {
		name string
		run  func()
	}{{"start", b.start}, {"policy", b.policy}, {"build", b.build}, {"explain", b.explain}, {"reap", b.reap}, {"ps", b.ps}, {"memory", b.memory}} {
		if only == "" || only == m.name {
			b.measure(m.name, m.run)
		}
	}
	fmt.Println("\n" + busy())
}

// measure runs one measurement, and says why it failed.
func (b *bench) measure(name string, run func()) {
	defer func() {
		if err, ok := recover().(error); ok {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", name, err)
		}
	}()
	run()
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

// busy says how busy the machine is. scripts/bench.sh sets the class that all runs in.
func busy() string {
	load, _ := os.ReadFile("/proc/loadavg")
	minute, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("Load average %s, %d processors, %s.", minute, runtime.NumCPU(), cmp.Or(os.Getenv("ZSBX_BENCH"), "fair scheduling"))
}

// setup makes the directory that everything happens in. The binaries are copied to
// it: they may lie where the ordinary user can't reach them.
func (b *bench) setup() {
	b.dir = get(os.MkdirTemp("", "zsbx-bench-"))
	home := filepath.Join(b.dir, "home")
	must(os.Mkdir(home, 0o755))
	must(os.Mkdir(b.work(), 0o755))
	b.self = filepath.Join(b.dir, "bench")
	must(os.WriteFile(b.self, get(os.ReadFile(get(os.Executable()))), 0o755))
	data := get(os.ReadFile(b.zsbx))
	b.zsbx = filepath.Join(b.dir, "zsbx")
	must(os.WriteFile(b.zsbx, data, 0o755))
	b.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "TERM=dumb", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false"}
	b.own()
}

// own hands the directory to the user who is measured.
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

// run is a command line of zsbx run; rest begins with more flags.
func (b *bench) run(rest ...string) []string {
	return append([]string{b.zsbx, "run", "--rw", "."}, rest...)
}

// command makes a command of the measured user.
func (b *bench) command(argv ...string) *exec.Cmd {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = b.work(), slices.Clone(b.env)
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(b.uid), Gid: uint32(b.uid)}}
	}
	return c
}

// race times the programs in turn.
func (b *bench) race(rounds int, ps ...*program) {
	for round := range rounds + 3 {
		for _, i := range rand.Perm(len(ps)) {
			p := ps[i]
			once := func() *exec.Cmd {
				c := b.command(p.argv...)
				c.Dir, c.Env = cmp.Or(p.dir, c.Dir), append(c.Env, p.env...)
				return c
			}
			c, start := once(), time.Now()
			if c.Run() != nil {
				output(once()) // says why
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
