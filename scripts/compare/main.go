//go:build linux

// Command compare tries acts that a sandboxed command should not be able to do:
// bare (the control, which must succeed), under zsbx and under bubblewrap in two
// usual configurations. It prints a Markdown table.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// wrapper is a way to run a command.
type wrapper struct {
	name string
	argv func(w *world, a act) []string
}

func main() {
	zsbx := flag.String("zsbx", "./zsbx", "the `binary`")
	name := flag.String("act", "", "do the `act` (for the inside)")
	flag.Parse()
	if *name != "" {
		os.Exit(perform(*name))
	}
	if err := compare(*zsbx); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// perform does one act: 0 when it succeeded.
func perform(name string) int {
	for _, a := range acts() {
		if a.name == name {
			if err := a.do(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			return 0
		}
	}
	return 2
}

func compare(zsbx string) error {
	zsbx, err := filepath.Abs(zsbx)
	if err != nil {
		return err
	}
	w, err := makeWorld()
	if err != nil {
		return err
	}
	defer w.end()
	self := filepath.Join(w.work, "act")
	if err := copyFile("/proc/self/exe", self); err != nil {
		return err
	}
	env := func() []string {
		var out []string
		for _, kv := range w.env() {
			out = append(out, "--env", kv)
		}
		return out
	}
	wrappers := []wrapper{
		{"bare", func(*world, act) []string { return nil }},
		{"zsbx run --rw .", func(w *world, a act) []string {
			argv := append([]string{zsbx, "run", "--rw", "."}, env()...)
			if a.network {
				argv = append(argv, "--no-net")
			}
			return append(argv, "--")
		}},
		{"bwrap, root read-only", func(w *world, a act) []string {
			argv := []string{"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", w.work, w.work,
				"--unshare-pid", "--die-with-parent"}
			if a.network {
				argv = append(argv, "--unshare-net")
			}
			return argv
		}},
		{"bwrap, all unshared, home and run hidden", func(w *world, a act) []string {
			argv := []string{"bwrap", "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--symlink", "usr/bin", "/bin",
				"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--dev", "/dev", "--proc", "/proc",
				"--tmpfs", "/tmp", "--tmpfs", "/run", "--bind", w.work, w.work, "--unshare-all", "--new-session", "--die-with-parent"}
			if !a.network {
				argv = append(argv, "--share-net")
			}
			return argv
		}},
	}
	fmt.Print("| act |")
	for _, wr := range wrappers {
		fmt.Printf(" %s |", wr.name)
	}
	fmt.Print("\n|---|", strings.Repeat("---|", len(wrappers)), "\n")
	for _, a := range acts() {
		fmt.Printf("| %s |", a.name)
		for _, wr := range wrappers {
			fmt.Printf(" %s |", w.try(wr, a, self))
		}
		fmt.Println()
	}
	return nil
}

// try reports whether the act succeeded under the wrapper.
func (w *world) try(wr wrapper, a act, self string) string {
	argv := append(wr.argv(w, a), self, "-act", a.name)
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = w.work, append(os.Environ(), w.env()...)
	if a.name == inheritedFd {
		f, err := os.OpenFile(w.fd9, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err.Error()
		}
		defer f.Close()
		c.ExtraFiles = []*os.File{f, f, f, f, f, f, f}
	}
	if a.repo {
		repo, err := w.makeRepo()
		if err != nil {
			return err.Error()
		}
		defer os.RemoveAll(repo)
	}
	done := make(chan error, 1)
	if err := c.Start(); err != nil {
		return err.Error()
	}
	go func() { done <- c.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-time.After(20 * time.Second):
		c.Process.Kill()
		return "hung"
	}
	if err == nil && a.after != nil {
		err = a.after(w)
	}
	if err == nil {
		return "**done**"
	}
	if c.ProcessState.ExitCode() != 1 && a.after == nil {
		return fmt.Sprintf("refused (%v)", c.ProcessState)
	}
	return "refused"
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}
