package track

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestFullTable: a kept session has filled the process table. Programs written in Go, such as
// zsbx reap, can't start any more. The shell commands in docs/sessions.md work all the same.
func TestFullTable(t *testing.T) {
	doc, err := os.ReadFile("../../docs/sessions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rescue, found := strings.Cut(string(doc), "\n    for f in /proc/")
	rescue, _, _ = strings.Cut("for f in /proc/"+rescue, "\n\n")
	if !found {
		t.Fatal("docs/sessions.md does not say what to type")
	}
	for _, k := range []Kind{Domain, Subtree} {
		t.Run(string(k), func(t *testing.T) {
			if k == Domain {
				requireDomain(t)
			}
			out, err := inNamespace(t, "fullhost", string(k), strconv.Itoa(max(1, rounds(t)/5)), rescue)
			if e := (*exec.ExitError)(nil); errors.As(err, &e) && e.ExitCode() == 77 {
				testkit.Lacks(t, testkit.UserNS, out)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Log(out)
		})
	}
}

// playFullHost is the init of a PID namespace with a limit on processes. Its arguments are the
// tracker, the rounds, and what a shell does when the table is full.
func playFullHost(args []string) {
	check := func(err error) {
		if err != nil {
			fmt.Println("fullhost:", err)
			os.Exit(1)
		}
	}
	ownProc()
	dir, err := os.MkdirTemp("/tmp", "zsbx-full-")
	check(err)
	program := filepath.Join(dir, "program") // go test's own directory is closed to BECOME
	self, err := os.ReadFile("/proc/self/exe")
	check(errors.Join(err, os.WriteFile(program, self, 0o755), os.Chmod(dir, 0o777)))
	if uid, err := strconv.Atoi(os.Getenv("BECOME")); err == nil {
		check(errors.Join(syscall.Setgroups(nil), syscall.Setgid(uid), syscall.Setuid(uid)))
	}
	check(unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 100, Max: 100}))
	st, err := OpenStoreAt(filepath.Join(dir, "state"))
	check(err)
	n, err := strconv.Atoi(args[1])
	check(err)
	warmUp()
	for range n {
		reaper := waitingShell(`exec "$0"`, program)
		rescuer := waitingShell(args[2]+"\necho done", "")
		s, err := Begin(Options{Store: st, Tracker: Kind(args[0]), Confined: true, Scoped: true, Keep: true})
		check(err)
		c := attackCommand("bomb")
		c.Path = "/proc/self/exe"
		r, w, err := os.Pipe()
		check(err)
		c.Files[1] = w
		check(s.Start(c))
		w.Close()
		_, err = r.Read(make([]byte, 6))
		check(err)
		awaitFull()
		if out := reaper(); out == "" || strings.Contains(out, "hello") {
			check(fmt.Errorf("a Go program starts, so zsbx reap might: %q", out))
		}
		awaitFull()
		began := time.Now()
		if out := rescuer(); !strings.HasSuffix(out, "done\n") {
			check(fmt.Errorf("the shell says %q", out))
		}
		_ = r.SetReadDeadline(time.Now().Add(testkit.Patience))
		if _, err := r.Read(make([]byte, 64)); !errors.Is(err, io.EOF) {
			check(fmt.Errorf("something still has the pipe open: %w", err))
		}
		fmt.Println("all ended after", time.Since(began).Round(time.Millisecond))
		r.Close()
		for err = nil; err == nil; { // the keeper's last word
			_, err = s.Next()
		}
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		rep, err := s.Close(ctx)
		cancel()
		check(err)
		if !rep.Done() {
			check(fmt.Errorf("%+v", rep))
		}
	}
	_ = os.RemoveAll(dir)
}

// waitingShell starts a shell while there is room. The function makes it run script, and
// returns what it and the program $0 print.
func waitingShell(script, program string) func() string {
	c := exec.Command("/bin/sh", "-c", "read x\n"+script, program)
	c.Env = append(os.Environ(), helperEnv+"=hello")
	in, err := c.StdinPipe()
	if err != nil {
		panic(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	c.Stdout, c.Stderr = w, w
	if err := c.Start(); err != nil {
		panic(err)
	}
	w.Close()
	return func() string {
		_, _ = io.WriteString(in, "\n")
		out, _ := io.ReadAll(r)
		r.Close()
		_ = c.Wait()
		return string(out)
	}
}

// awaitFull waits until no process can be made for a while.
func awaitFull() {
	for refused := 0; refused < 50; {
		switch pid := rawFork(0); {
		case pid == 0:
			rawExit()
		case pid > 0:
			_, _ = syscall.Wait4(pid, nil, 0, nil)
			refused = 0
		default:
			refused++
		}
		time.Sleep(100 * time.Microsecond)
	}
}
