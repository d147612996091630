//go:build linux && amd64

package faults

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// scenario is a way to use zsbx.
type scenario struct {
	name  string
	flags []string
}

func scenarios() []scenario {
	return []scenario{
		{"plain", nil},
		{"max-output", []string{"--max-output", "10MiB"}},
		{"tty", []string{"--tty"}},
		{"subtree", []string{"--track", "subtree", "--timeout", "10m"}},
	}
}

func (h *harness) argv(s *scene, sc scenario, mode string) []string {
	a := append([]string{h.zsbx, "run", "--rw", s.work(), "--no-net", "--deny", s.work() + "/**/.env"}, sc.flags...)
	return append(append(a, "--"), s.command(mode)...)
}

// calls runs the part about system calls.
func (h *harness) calls() error {
	for _, sc := range scenarios() {
		if err := h.callsOf(sc); err != nil {
			return err
		}
	}
	return nil
}

func (h *harness) callsOf(sc scenario) error {
	s, err := newScene(h.self)
	if err != nil {
		return err
	}
	defer s.end()
	seen := map[fault]int{}
	var known []string
	for range 2 { // the first run makes directories, which the others find
		var r result
		r, seen, _, err = h.traced(s, sc, nil, 3*h.limit)
		if err != nil {
			return err
		}
		if c, why := judge(r); c != confined && c != gapSaid {
			return fmt.Errorf("%s without any fault: %s: %s: %s", sc.name, c, why, r.err)
		}
		known = gapsIn(r.err)
	}
	only := regexp.MustCompile(h.only)
	list := slices.DeleteFunc(faults(seen), func(f fault) bool { return !only.MatchString(f.String()) })
	h.table.row("calls, " + sc.name)
	return eachOf(h, sample(list, h.each), func(s *scene, f fault) error { return h.fault(s, sc, f, known) })
}

// eachOf does all cases, several at a time. Each worker has its own scene.
func eachOf[T any](h *harness, list []T, do func(*scene, T) error) error {
	todo := make(chan T)
	errs := make(chan error, h.workers)
	var wg sync.WaitGroup
	for range h.workers {
		wg.Go(func() {
			s, err := newScene(h.self)
			if err == nil {
				defer s.end()
			}
			for f := range todo {
				if err == nil {
					err = do(s, f)
				}
			}
			errs <- err
		})
	}
	for _, f := range list {
		todo <- f
	}
	close(todo)
	wg.Wait()
	for range h.workers {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// fault runs one case. If it hangs or leaves something, it is tried once more with more time, since
// the machine may be busy. known are the gaps that zsbx names without any fault.
func (h *harness) fault(s *scene, sc scenario, f fault, known []string) error {
	var r result
	var c class
	var why string
	for _, limit := range []time.Duration{h.limit, 3 * h.limit} {
		var hit bool
		var err error
		r, _, hit, err = h.traced(s, sc, &f, limit)
		if err != nil {
			return err
		}
		r.mute = f.Who == 0 && calls[f.Call].name == "write" && f.On
		if lasts(f.Errno) || f.Errno == unix.EINTR || f.Errno == unix.EAGAIN {
			r.gaps = slices.DeleteFunc(gapsIn(r.err), func(g string) bool { return slices.Contains(known, g) })
		}
		c, why = judge(r)
		if !hit && !c.bad() {
			c = missed
		}
		if c != hang && c != left {
			break
		}
	}
	h.say("calls, "+sc.name, f.String(), c, why, r)
	return nil
}

// say notes a case, and prints those that went wrong.
func (h *harness) say(part, name string, c class, why string, r result) {
	h.table.add(part, c)
	if h.verbose || c.bad() {
		text := strings.ReplaceAll(strings.TrimSpace(r.err), "\n", " | ")
		fmt.Printf("%-10s %s: %s: %s  [%s]\n", c, part, name, why, text[:min(len(text), 400)])
	}
}

// traced runs zsbx under the tracer.
func (h *harness) traced(s *scene, sc scenario, f *fault, limit time.Duration) (result, map[fault]int, bool, error) {
	t := &tracer{fault: f}
	r, err := h.watch(s, func(attr *os.ProcAttr) error {
		attr.Dir = s.work()
		done := make(chan error)
		go func() { done <- t.run(h.argv(s, sc, "probe"), attr, limit) }() // its thread ends with the goroutine
		return <-done
	})
	r.status, r.hung = t.end, t.hung
	if err != nil {
		return r, nil, false, err
	}
	return r, t.seen, t.hit, h.after(s, &r)
}

// after looks at what a run left, and removes it.
func (h *harness) after(s *scene, r *result) error {
	if r.hung {
		s.kill()
	}
	r.left = s.left(testkit.Patience)
	_, err := os.Stat(s.work() + "/ran")
	r.ran = err == nil
	if len(r.left) == 0 && !r.hung {
		r.reap = s.reap(h.zsbx, "--all")
	}
	open, _ := r.open()
	if len(open) == 0 && len(r.left) == 0 && r.reap == "" {
		return os.RemoveAll(s.work() + "/ran")
	}
	return s.clean(h.self)
}

// watch collects what the process that do starts writes.
func (h *harness) watch(s *scene, do func(*os.ProcAttr) error) (result, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return result{}, err
	}
	defer null.Close()
	attr := &os.ProcAttr{Dir: s.work(), Env: s.env(), Files: []*os.File{null}}
	var bufs [2]bytes.Buffer
	var ends [2]*os.File
	var wg sync.WaitGroup
	for i := range bufs {
		r, w, err := os.Pipe()
		if err != nil {
			return result{}, err
		}
		defer r.Close()
		ends[i] = r
		attr.Files = append(attr.Files, w)
		wg.Go(func() { io.Copy(&bufs[i], r) })
	}
	err = do(attr)
	for i, r := range ends { // it does not matter who still has the other end
		attr.Files[1+i].Close()
		r.SetReadDeadline(time.Now().Add(5 * time.Second))
	}
	wg.Wait()
	return result{out: strings.ReplaceAll(bufs[0].String(), "\r", ""), err: bufs[1].String()}, err
}

// plain runs a program to its end without a tracer; begun is called meanwhile.
func (h *harness) plain(s *scene, argv []string, begun func(pid int)) (result, error) {
	var ws syscall.WaitStatus
	hung := false
	r, err := h.watch(s, func(attr *os.ProcAttr) error {
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr = attr.Dir, attr.Env, attr.Files[0], attr.Files[1], attr.Files[2]
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return err
		}
		timer := time.AfterFunc(h.limit, func() { hung = true; c.Process.Kill() })
		if begun != nil {
			begun(c.Process.Pid)
		}
		_ = c.Wait()
		timer.Stop()
		ws = c.ProcessState.Sys().(syscall.WaitStatus)
		return nil
	})
	r.status, r.hung = ws, hung
	return r, err
}
