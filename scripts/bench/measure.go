package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// bwrap is bubblewrap with what the default policy of zsbx comes to.
func (b *bench) bwrap(argv ...string) []string {
	w := b.work()
	return append([]string{
		"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", w, w,
		"--unshare-pid", "--die-with-parent",
	}, argv...)
}

func (b *bench) run(argv ...string) []string {
	return append([]string{b.zsbx, "run", "--rw", "."}, argv...)
}

// start measures the start-up of true.
func (b *bench) start() error {
	w := b.work()
	bare := &program{name: "bare exec", argv: []string{"/bin/true"}, dir: w}
	wait := &program{name: "Go fork and wait", argv: []string{filepath.Join(b.dir, "forkwait"), "/bin/true"}, dir: w}
	wrap := &program{name: "bwrap", argv: b.bwrap("/bin/true"), dir: w}
	ps := []*program{
		bare, wait, wrap,
		{name: "zsbx run", argv: b.run("/bin/true"), dir: w},
		{name: "zsbx run, TMPDIR=/dev/shm", argv: b.run("/bin/true"), dir: w, env: []string{"TMPDIR=/dev/shm"}},
		{name: "zsbx run --exec", argv: append([]string{b.zsbx, "run", "--exec", "--rw", "."}, "/bin/true"), dir: w},
		{name: "zsbx run --explain", argv: append([]string{b.zsbx, "run", "--explain", "--rw", "."}, "/bin/true"), dir: w},
		{name: "zsbx run --track subtree", argv: append([]string{b.zsbx, "run", "--rw", ".", "--track", "subtree"}, "/bin/true"), dir: w},
		{name: "zsbx run --track-only", argv: []string{b.zsbx, "run", "--track-only", "/bin/true"}, dir: w},
		{name: "zsbx run --audit", argv: []string{b.zsbx, "run", "--rw", ".", "--audit", filepath.Join(b.dir, "home", "audit"), "/bin/true"}, dir: w},
		{name: "zsbx run --guard", argv: []string{b.zsbx, "run", "--rw", ".", "--guard", "catastrophic", "--", "sh", "-c", "/bin/true"}, dir: w},
		{name: "zsbx run, sh, no guard", argv: b.run("sh", "-c", "/bin/true"), dir: w},
		{name: "zsbx version", argv: []string{b.zsbx, "version"}, dir: w},
	}
	if _, err := exec.LookPath("bwrap"); err != nil {
		return fmt.Errorf("bubblewrap is needed to compare with: %w", err)
	}
	if err := b.race(b.rounds, ps...); err != nil {
		return err
	}
	table("Start of `true`", ps, wrap, wait)
	return nil
}

// policy measures what 300 paths cost.
func (b *bench) policy() error {
	w := b.work()
	var toml strings.Builder
	toml.WriteString("[fs]\nro = [\n")
	for i := range 300 {
		dir := filepath.Join(b.dir, "home", "p", strconv.Itoa(i%30), strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		fmt.Fprintf(&toml, "  %q,\n", dir)
	}
	toml.WriteString("]\n")
	file := filepath.Join(b.dir, "p300.toml")
	if err := os.WriteFile(file, []byte(toml.String()), 0o644); err != nil {
		return err
	}
	if err := b.own(); err != nil {
		return err
	}
	few := &program{name: "default policy", argv: b.run("/bin/true"), dir: w}
	many := &program{name: "and 300 paths more", argv: []string{b.zsbx, "run", "--rw", ".", "-p", file, "/bin/true"}, dir: w}
	if err := b.race(b.rounds/2, few, many); err != nil {
		return err
	}
	table("A policy of 300 paths", []*program{few, many}, few)
	fmt.Printf("\n300 paths cost %.2f ms.\n", ms(many.median())-ms(few.median()))
	return nil
}

// build measures real work inside.
func (b *bench) build() error {
	w := b.work()
	src, err := os.Getwd()
	if err != nil {
		return err
	}
	repo := filepath.Join(w, "repo")
	if out, err := exec.Command("git", "clone", "-q", src, repo).CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %s", err, out)
	}
	// The measured user may not reach this user's module cache.
	vendor := exec.Command("go", "mod", "vendor")
	vendor.Dir = repo
	if out, err := vendor.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %s", err, out)
	}
	tree := filepath.Join(w, "tree")
	for i := range 1000 {
		dir := filepath.Join(tree, strconv.Itoa(i/100), strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for k := range 100 {
			if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(k)), nil, 0o644); err != nil {
				return err
			}
		}
	}
	for _, argv := range [][]string{{"git", "init", "-q"}, {"git", "add", "."}} {
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir = tree
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %s", err, out)
		}
	}
	if err := b.own(); err != nil {
		return err
	}
	jobs := []struct {
		name   string
		rounds int
		dir    string
		argv   []string
	}{
		{"go build, warm cache", 12, repo, []string{"go", "build", "-o", "/dev/null", "."}},
		{"git status of 100,000 files", 20, tree, []string{"git", "status", "-s", "-uno"}},
		{"find over 100,000 files", 25, tree, []string{"find", ".", "-name", "99"}},
	}
	for _, j := range jobs {
		bare := &program{name: "bare", argv: j.argv, dir: j.dir}
		in := &program{name: "zsbx run", argv: append([]string{b.zsbx, "run", "--rw", "."}, j.argv...), dir: j.dir}
		rule := &program{name: "one Landlock rule", argv: append([]string{filepath.Join(b.dir, "onerule")}, j.argv...), dir: j.dir}
		if err := b.race(j.rounds, bare, rule, in); err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		table("Inside: "+j.name, []*program{bare, rule, in}, bare)
	}
	return nil
}

// ps measures 500 kept sessions: listing them, and starting one more beside
// them or in a store of its own.
func (b *bench) ps() error {
	w := b.work()
	defer func() { b.command(w, b.zsbx, "reap", "--all").Run() }()
	for i := range 500 {
		c := b.command(w, b.zsbx, "run", "--rw", ".", "--keep", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 &")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("session %d: %v: %s", i, err, out)
		}
	}
	alone := &program{
		name: "zsbx run, no other session", argv: b.run("/bin/true"), dir: w,
		env: []string{"XDG_STATE_HOME=" + filepath.Join(b.dir, "home", "state")},
	}
	beside := &program{name: "zsbx run, beside 500 kept ones", argv: b.run("/bin/true"), dir: w}
	list := &program{name: "zsbx ps of 500 sessions", argv: []string{b.zsbx, "ps"}, dir: w}
	if err := b.race(b.rounds/4, alone, beside, list); err != nil {
		return err
	}
	table("500 kept sessions", []*program{alone, beside, list}, alone)
	return nil
}

// reap measures how long 1000 idle processes take to be gone.
func (b *bench) reap() error {
	w := b.work()
	script := "i=0; while [ $i -lt 1000 ]; do sleep 1000 >/dev/null 2>&1 & i=$((i+1)); done"
	var took []time.Duration
	for range 5 {
		c := b.command(w, b.zsbx, "run", "--rw", ".", "--keep", "--name", "bench", "--", "sh", "-c", script)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %s", err, out)
		}
		start := time.Now()
		if out, err := b.command(w, b.zsbx, "reap", "bench").CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %s", err, out)
		}
		took = append(took, time.Since(start))
	}
	mine := &program{name: "zsbx reap", took: took}
	ps := []*program{mine}
	if group, err := ownCgroup(); err == nil {
		defer os.Remove(group)
		theirs := &program{name: "cgroup.kill and waiting"}
		for range 5 {
			d, err := killByCgroup(group, script)
			if err != nil {
				return err
			}
			theirs.took = append(theirs.took, d)
		}
		ps = append(ps, theirs)
		table("1,000 idle processes", ps, theirs)
		return nil
	}
	table("1,000 idle processes (no writable cgroup to compare with)", ps)
	return nil
}

// ownCgroup makes a cgroup below this process's own.
func ownCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		if _, fs, ok := strings.Cut(line, " - cgroup2 "); ok && fs != "" {
			dir := filepath.Join(strings.Fields(line)[4], fmt.Sprintf("zsbx-bench-%d", os.Getpid()))
			return dir, os.Mkdir(dir, 0o755)
		}
	}
	return "", errors.New("no cgroup2")
}

func killByCgroup(group, script string) (time.Duration, error) {
	join := fmt.Sprintf("echo $$ > %s/cgroup.procs; %s", group, script)
	if out, err := exec.Command("sh", "-c", join).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%v: %s", err, out)
	}
	start := time.Now()
	if err := os.WriteFile(group+"/cgroup.kill", []byte("1"), 0o644); err != nil {
		return 0, err
	}
	for time.Since(start) < 10*time.Second {
		events, err := os.ReadFile(group + "/cgroup.events")
		if err != nil {
			return 0, err
		}
		if strings.Contains(string(events), "populated 0") {
			return time.Since(start), nil
		}
		time.Sleep(200 * time.Microsecond)
	}
	return 0, errors.New("the cgroup did not become empty")
}
