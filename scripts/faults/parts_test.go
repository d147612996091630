//go:build linux && amd64

package faults

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/testkit"
)

// round is one round of signals.
type round struct {
	name   string
	after  time.Duration
	keeper bool // to the keeper, otherwise to zsbx
	both   bool
	sig    syscall.Signal
}

// signals sends signals to zsbx and to its keeper, at moments that depend on the seed.
func (h *harness) signals() error {
	random := rand.New(rand.NewPCG(h.seed, 0))
	kinds := []round{
		{name: "KILL zsbx", sig: syscall.SIGKILL}, {name: "TERM zsbx", sig: syscall.SIGTERM}, {name: "INT zsbx", sig: syscall.SIGINT},
		{name: "QUIT zsbx", sig: syscall.SIGQUIT}, {name: "STOP CONT zsbx", sig: syscall.SIGSTOP}, {name: "KILL keeper", sig: syscall.SIGKILL, keeper: true},
		{name: "TERM keeper", sig: syscall.SIGTERM, keeper: true}, {name: "STOP CONT keeper", sig: syscall.SIGSTOP, keeper: true},
		{name: "KILL both", sig: syscall.SIGKILL, both: true},
	}
	list := make([]round, h.rounds)
	for i := range list {
		list[i] = kinds[i%len(kinds)]
		list[i].after = time.Duration(random.Int64N(int64(60 * time.Millisecond)))
	}
	h.table.row("signals")
	return eachOf(h, list, h.round)
}

func (h *harness) round(s *scene, r round) error {
	got, err := h.plain(s, h.argv(s, scenarios()[0], "slow"), func(pid int) {
		time.Sleep(r.after)
		keeper := child(pid)
		if r.keeper && keeper > 0 || r.both && keeper > 0 {
			send(keeper, r.sig)
		}
		if !r.keeper {
			send(pid, r.sig)
		}
	})
	if err != nil {
		return err
	}
	// A signal may end everything, except a stop. Nothing limits what has lost zsbx and its
	// keeper, until it is reaped.
	got.signal = r.sig != syscall.SIGSTOP
	if r.both && !got.hung {
		s.reap(h.zsbx, "--all")
	}
	if err := h.after(s, &got); err != nil {
		return err
	}
	c, why := judge(got)
	h.say("signals", fmt.Sprintf("%s after %v", r.name, r.after.Round(10*time.Microsecond)), c, why, got)
	return nil
}

// send sends a signal; after SIGSTOP comes SIGCONT.
func send(pid int, sig syscall.Signal) {
	_ = syscall.Kill(pid, sig)
	if sig == syscall.SIGSTOP {
		time.Sleep(20 * time.Millisecond)
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// child is a process's first child, 0 if it has none (proc_tid_children(5)).
func child(pid int) int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, t := range tasks {
		b, _ := os.ReadFile(t)
		if first, _, ok := strings.Cut(string(b), " "); ok {
			n, _ := strconv.Atoi(first)
			return n
		}
	}
	return 0
}

// shell is a probe that uses only builtins: what is short is short for the command too.
const shell = `: >ran; echo BEGIN
{ read x <../out/secret; } 2>/dev/null && printf 'open\tfiles\tread a file outside\n'
{ read x <.env; } 2>/dev/null && printf 'open\tdeny\tread a denied file\n'
{ echo x >>../out/file; } 2>/dev/null && printf 'open\tfiles\twrite a file outside\n'
{ echo x >>.git/config; } 2>/dev/null && printf 'open\tprotect\tchange git'"'"'s configuration\n'
{ kill -28 $0; } 2>/dev/null && printf 'open\tsignals\tsignal a process outside\n'
i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done; echo END; exit 42`

// alone runs one case at a time, because what other cases use or leave matters.
func (h *harness) alone() *harness {
	a := *h
	a.workers = 1
	return &a
}

// resources runs zsbx with less and less of each (prlimit(1)).
func (h *harness) resources() error {
	var list []string
	for n := 3; n <= 24; n++ {
		list = append(list, fmt.Sprintf("--nofile=%d:%d", n, n))
	}
	have := tasks(os.Getuid())
	for n := have - 2; n <= have+20; n++ {
		list = append(list, fmt.Sprintf("--nproc=%d:%d", n, n))
	}
	for _, n := range []int{0, 1, 64, 512, 4096, 1 << 16} {
		list = append(list, fmt.Sprintf("--fsize=%d:%d", n, n))
	}
	for mib := 128; mib <= 2048; mib += 128 {
		list = append(list, fmt.Sprintf("--as=%d:%d", mib<<20, mib<<20))
	}
	for _, kib := range []int{64, 256, 1024} {
		list = append(list, fmt.Sprintf("--stack=%d:%d", kib<<10, kib<<10), fmt.Sprintf("--memlock=%d:%d", kib<<10, kib<<10))
	}
	h.table.row("resources")
	return eachOf(h.alone(), list, func(s *scene, limit string) error {
		argv := append([]string{"/usr/bin/prlimit", limit}, h.argv(s, scenarios()[0], "")...)
		argv = append(argv[:len(argv)-4], "/bin/sh", "-c", shell, strconv.Itoa(s.Pid))
		r, err := h.plain(s, argv, nil)
		if err != nil {
			return err
		}
		if err := h.after(s, &r); err != nil {
			return err
		}
		c, why := judge(r)
		h.say("resources", limit, c, why, r)
		return nil
	})
}

// tasks counts a user's threads, as RLIMIT_NPROC does (getrlimit(2)).
func tasks(uid int) (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*/task/*")
	for _, t := range all {
		if st, err := os.Stat(t); err == nil && int(st.Sys().(*syscall.Stat_t).Uid) == uid {
			n++
		}
	}
	return n
}

// damage is what happens to a file.
type damage struct {
	name string
	do   func(file string) error
}

func damages() []damage {
	return []damage{
		{"empty", func(f string) error { return os.Truncate(f, 0) }},
		{"half", func(f string) error {
			st, err := os.Stat(f)
			if err != nil {
				return err
			}
			return os.Truncate(f, st.Size()/2)
		}},
		{"garbage", func(f string) error { return os.WriteFile(f, []byte("\x00\xff{[garbage\n"), 0o600) }},
		{"future", func(f string) error { return os.WriteFile(f, []byte("{\"version\":999}\n"), 0o600) }},
		{"mode 0", func(f string) error { return os.Chmod(f, 0) }},
		{"gone", os.Remove},
		{"FIFO", func(f string) error { os.Remove(f); return syscall.Mkfifo(f, 0o600) }},
		{"link", func(f string) error { os.Remove(f); return os.Symlink("/etc/passwd", f) }},
		{"directory", func(f string) error { os.Remove(f); return os.Mkdir(f, 0o700) }},
	}
}

// spoil damages the files of living and dead sessions, and has them listed and reaped.
func (h *harness) spoil() error {
	type one struct {
		damage
		kind string // of the file
		dead bool
	}
	var list []one
	for _, d := range damages() {
		for _, kind := range []string{".session", ".untold"} {
			list = append(list, one{d, kind, false}, one{d, kind, true})
		}
	}
	h.table.row("records")
	return eachOf(h.alone(), list, func(s *scene, o one) error {
		defer s.clean(h.self)
		r, err := h.plain(s, h.argv(s, scenario{flags: []string{"--keep"}}, "probe"), nil)
		files := s.records()
		at := slices.IndexFunc(files, func(f string) bool { return filepath.Ext(f) == o.kind })
		if err == nil && (len(files) != 2 || at < 0) {
			err = fmt.Errorf("records of one session: %q", files)
		}
		if err != nil {
			return err
		}
		if o.dead {
			s.kill()
		}
		if err := o.do(files[at]); err != nil {
			return err
		}
		ps := exec.Command(h.zsbx, "ps")
		ps.Env, ps.Stdout, ps.Stderr = s.env(), io.Discard, io.Discard
		psErr := ps.Run()
		what := "--all"
		if o.kind == ".session" && o.name == "gone" && !o.dead { // ps names its keeper and its id, and only by that it can be reaped
			what = strings.TrimSuffix(filepath.Base(files[at]), o.kind)
		}
		r.reap = s.reap(h.zsbx, what)
		if psErr != nil {
			r.reap += "; ps: " + psErr.Error()
		}
		r.left, r.ran = s.left(testkit.Patience), true
		c, why := judge(r)
		h.say("records", fmt.Sprintf("%s, %s, dead %v", o.kind, o.name, o.dead), c, why, r)
		return nil
	})
}
