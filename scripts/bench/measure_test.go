package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// start measures the start-up of true. bubblewrap gets the equivalent of zsbx's default policy.
func (b *bench) start() {
	w := b.work()
	wait := &program{name: "Go fork and wait", argv: []string{b.probe, "forkwait", "/bin/true"}}
	wrap := &program{name: "bwrap", argv: []string{
		"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", w, w, "--unshare-pid", "--die-with-parent", "/bin/true",
	}}
	ps := []*program{
		{name: "bare exec", argv: []string{"/bin/true"}}, wait, wrap,
		{name: "zsbx run", argv: b.run("/bin/true")},
		{name: "zsbx run, TMPDIR=/dev/shm", argv: b.run("/bin/true"), env: []string{"TMPDIR=/dev/shm"}},
		{name: "zsbx run --exec", argv: b.run("--exec", "/bin/true")},
		{name: "zsbx run --explain", argv: b.run("--explain", "/bin/true")},
		{name: "zsbx run --allow-host", argv: b.run("--allow-host", "localhost:1", "/bin/true")},
		{name: "zsbx run --track subtree", argv: b.run("--track", "subtree", "/bin/true")},
		{name: "zsbx run --track-only", argv: []string{b.zsbx, "run", "--track-only", "/bin/true"}},
		{name: "zsbx run --audit", argv: b.run("--audit", filepath.Join(b.dir, "home", "audit"), "/bin/true")},
		{name: "zsbx run --guard", argv: b.run("--guard", "catastrophic", "--", "sh", "-c", "/bin/true")},
		{name: "zsbx run, sh, no guard", argv: b.run("sh", "-c", "/bin/true")},
		{name: "zsbx version", argv: []string{b.zsbx, "version"}},
	}
	for _, other := range b.others {
		name := filepath.Base(other)
		ps = append(ps,
			&program{name: name + " run", argv: []string{other, "run", "--rw", ".", "/bin/true"}},
			&program{name: name + " run --exec", argv: []string{other, "run", "--rw", ".", "--exec", "/bin/true"}},
			&program{name: name + " version", argv: []string{other, "version"}})
	}
	b.count(ps...)
	b.race(b.rounds, ps...)
	table("Start of `true`", ps, wrap, wait)
}

// trees measures starts in a git tree of 100,000 files, and work in it.
func (b *bench) trees() {
	files := b.gitTree()
	empty := filepath.Join(b.work(), "empty")
	must(os.Mkdir(empty, 0o755))
	b.own()
	for _, binary := range append([]string{b.zsbx}, b.others...) {
		run := []string{binary, "run", "--rw", "."}
		nothing := &program{name: "in an empty directory", argv: append(run, "/bin/true"), dir: empty}
		ps := []*program{
			nothing,
			{name: "in a git tree of 100,000 files", argv: append(run, "/bin/true"), dir: files},
			{name: "the same, --deny '**/.env'", argv: append(run, "--deny", "**/.env", "/bin/true"), dir: files},
		}
		b.count(ps...)
		b.race(max(b.rounds/10, 1), ps...)
		table("Start of `true`: "+filepath.Base(binary), ps, nothing)
	}
}

// gitTree returns a git repository of 100,000 files, which it makes once.
func (b *bench) gitTree() string {
	files := filepath.Join(b.work(), "tree")
	if _, err := os.Stat(files); err == nil {
		return files
	}
	tree(files, 1000)
	output(exec.Command("git", "-C", files, "init", "-q"))
	output(exec.Command("git", "-C", files, "add", "."))
	return files
}

// policy measures what 300 paths cost.
func (b *bench) policy() {
	toml := "[fs]\nro = [\n"
	for i := range 300 {
		dir := filepath.Join(b.dir, "home", "p", strconv.Itoa(i%30), strconv.Itoa(i))
		must(os.MkdirAll(dir, 0o755))
		toml += fmt.Sprintf("  %q,\n", dir)
	}
	file := filepath.Join(b.dir, "p300.toml")
	must(os.WriteFile(file, []byte(toml+"]\n"), 0o644))
	b.own()
	few := &program{name: "default policy", argv: b.run("/bin/true")}
	many := &program{name: "and 300 paths more", argv: b.run("-p", file, "/bin/true")}
	b.race(b.rounds/2, few, many)
	table("A policy of 300 paths", []*program{few, many}, few)
	fmt.Printf("\n300 paths cost %.2f ms.\n", ms(many.median())-ms(few.median()))
}

// build measures real work inside.
func (b *bench) build() {
	repo := filepath.Join(b.work(), "repo")
	output(exec.Command("git", "clone", "-q", ".", repo))
	output(exec.Command("go", "-C", repo, "mod", "vendor")) // the measured user may not have access to this user's module cache
	files := b.gitTree()
	b.own()
	for _, j := range []struct {
		name   string
		rounds int
		dir    string
		argv   []string
	}{
		{"go build, warm cache", 12, repo, []string{"go", "build", "-o", "/dev/null", "."}},
		{"git status of 100,000 files", 20, files, []string{"git", "status", "-s", "-uno"}},
		{"find over 100,000 files", 25, files, []string{"find", ".", "-name", "99"}},
	} {
		bare := &program{name: "bare", argv: j.argv, dir: j.dir}
		in := &program{name: "zsbx run", argv: b.run(j.argv...), dir: j.dir}
		rule := &program{name: "one Landlock rule", argv: append([]string{b.probe, "onerule"}, j.argv...), dir: j.dir}
		ps := []*program{bare, rule, in}
		for _, other := range b.others {
			argv := append([]string{other, "run", "--rw", "."}, j.argv...)
			ps = append(ps, &program{name: filepath.Base(other) + " run", argv: argv, dir: j.dir})
		}
		b.race(j.rounds, ps...)
		table("Inside: "+j.name, ps, bare)
	}
}

// explain measures what --explain costs while a command runs: for an open, allowed and refused, and
// in processor time of programs that open many files.
func (b *bench) explain() {
	secret := filepath.Join(b.dir, "home", "secret")
	must(os.WriteFile(secret, nil, 0o600))
	files := tree(filepath.Join(b.work(), "small"), 200)
	makefile := "all:\n\tfor i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sh -c 'cat Makefile >/dev/null'; done\n"
	must(os.WriteFile(filepath.Join(b.work(), "Makefile"), []byte(makefile), 0o644))
	b.own()
	opening := func(path string, flags ...string) float64 {
		flags = append(flags, "--rox", b.probe, "--deny", secret, b.probe, "opens", path)
		return get(strconv.ParseFloat(output(b.command(b.run(flags...)...)), 64)) / 1000
	}
	fmt.Print("\nAn open, and a close if it succeeds\n\n| file | zsbx run | zsbx run --explain |\n|---|--:|--:|\n")
	fmt.Printf("| allowed | %.1f µs | %.1f µs |\n", opening("/etc/passwd"), opening("/etc/passwd", "--explain"))
	fmt.Printf("| refused | %.1f µs | %.1f µs |\n", opening(secret), opening(secret, "--explain"))
	fmt.Print("\nProcessor time with --explain\n\n| work | zsbx run | to that, with --explain |\n|---|--:|--:|\n")
	for _, argv := range [][]string{{"find", files, "-name", "99"}, {"make", "-s"}} {
		plain := &program{name: argv[0], argv: b.run(argv...)}
		with := &program{name: argv[0] + " --explain", argv: b.run(append([]string{"--explain"}, argv...)...)}
		b.race(10, plain, with)
		fmt.Printf("| %s | %.1f ms | %.2f |\n", argv[0], ms(plain.cpu)/10, ms(with.cpu)/ms(plain.cpu))
	}
}

// ps measures 500 kept sessions: listing them, and starting one more beside
// them or in a store of its own.
func (b *bench) ps() {
	defer func() { b.command(b.zsbx, "reap", "--all").Run() }()
	for range 500 {
		output(b.command(b.run("--keep", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 &")...))
	}
	alone := &program{name: "zsbx run, no other session", argv: b.run("/bin/true"), env: []string{"XDG_STATE_HOME=" + filepath.Join(b.dir, "home", "state")}}
	beside := &program{name: "zsbx run, beside 500 kept ones", argv: b.run("/bin/true")}
	list := &program{name: "zsbx ps of 500 sessions", argv: []string{b.zsbx, "ps"}}
	b.race(b.rounds/4, alone, beside, list)
	table("500 kept sessions", []*program{alone, beside, list}, alone)
}

// reap measures how long 1000 idle processes take to be gone, compared with killing a bare control
// group, if this user can make one.
func (b *bench) reap() {
	script := "i=0; while [ $i -lt 1000 ]; do sleep 1000 >/dev/null 2>&1 & i=$((i+1)); done"
	group, noGroup := ownCgroup()
	defer os.Remove(group)
	mine, theirs := &program{name: "zsbx reap"}, &program{name: "cgroup.kill and waiting"}
	for range 5 {
		output(b.command(b.run("--keep", "--name", "bench", "--", "sh", "-c", script)...))
		start := time.Now()
		output(b.command(b.zsbx, "reap", "bench"))
		mine.took = append(mine.took, time.Since(start))
		if noGroup == nil {
			output(exec.Command("sh", "-c", "echo $$ > "+group+"/cgroup.procs; "+script))
			theirs.took = append(theirs.took, killGroup(group))
		}
	}
	if noGroup != nil {
		table("1,000 idle processes (no cgroup to compare with: "+noGroup.Error()+")", []*program{mine})
		return
	}
	table("1,000 idle processes", []*program{mine, theirs}, theirs)
}

// ownCgroup makes a cgroup below the root of the hierarchy.
func ownCgroup() (string, error) {
	for line := range strings.Lines(string(get(os.ReadFile("/proc/self/mountinfo")))) {
		if strings.Contains(line, " - cgroup2 ") {
			dir := filepath.Join(strings.Fields(line)[4], fmt.Sprintf("zsbx-bench-%d", os.Getpid()))
			return dir, os.Mkdir(dir, 0o755)
		}
	}
	return "", errors.New("no cgroup2")
}

// killGroup kills what is in a group, and returns the time until it is empty.
func killGroup(group string) time.Duration {
	start := time.Now()
	must(os.WriteFile(group+"/cgroup.kill", []byte("1"), 0o644))
	for time.Since(start) < 10*time.Second {
		if strings.Contains(string(get(os.ReadFile(group+"/cgroup.events"))), "populated 0") {
			return time.Since(start)
		}
		time.Sleep(200 * time.Microsecond)
	}
	panic(errors.New("the cgroup did not become empty"))
}

// memory looks at the supervisor and the keeper of a running session.
func (b *bench) memory() {
	fmt.Print("\nMemory of a running session\n\n| process | kB |\n|---|--:|\n")
	c := b.command(b.run("sleep", "100")...)
	defer started(c)()
	fmt.Printf("| supervisor, resident | %d |\n", kB(c.Process.Pid, "status", "VmRSS:"))
	k := b.command(b.run("--keep", "sleep", "100")...)
	defer started(k)()
	for _, pid := range below(k.Process.Pid) {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.TrimSpace(string(name)) == "zsbx-keeper" {
			fmt.Printf("| keeper with --keep, private | %d |\n", kB(pid, "smaps_rollup", "Private_Clean:")+kB(pid, "smaps_rollup", "Private_Dirty:"))
			return
		}
	}
	panic(errors.New("no keeper is there"))
}

// started starts a command, gives it time, and returns a function that ends it.
func started(c *exec.Cmd) func() {
	must(c.Start())
	time.Sleep(300 * time.Millisecond)
	return func() { c.Process.Signal(syscall.SIGTERM); c.Wait() }
}

// below returns the processes below one.
func below(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		kids, _ := os.ReadFile(f)
		for _, kid := range strings.Fields(string(kids)) {
			n, _ := strconv.Atoi(kid)
			all = append(append(all, n), below(n)...)
		}
	}
	return all
}

// kB reads a size from a file of a process. Only root can read a keeper's.
func kB(pid int, file, name string) int {
	for line := range strings.Lines(string(get(os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))))) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			return get(strconv.Atoi(f[1]))
		}
	}
	panic(fmt.Errorf("no %s in %s", name, file))
}
