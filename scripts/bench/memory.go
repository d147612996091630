package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// memory looks at the supervisor of a running session, whose keeper has the same
// memory, and at a keeper that may stay and so has its own.
func (b *bench) memory() error {
	fmt.Print("\nMemory of a running session\n\n| process | kB |\n|---|--:|\n")
	for _, keep := range []bool{false, true} {
		if err := b.memoryOf(keep); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) memoryOf(keep bool) error {
	argv := b.run("sleep", "100")
	if keep {
		argv = append([]string{b.zsbx, "run", "--rw", ".", "--keep", "--name", "bench-memory"}, "sleep", "100")
	}
	c := b.command(b.work(), argv...)
	if err := c.Start(); err != nil {
		return err
	}
	defer func() { c.Process.Signal(syscall.SIGTERM); c.Wait() }()
	time.Sleep(300 * time.Millisecond)
	if !keep {
		rss, err := field(c.Process.Pid, "status", "VmRSS:")
		fmt.Printf("| supervisor and keeper, resident | %d |\n", rss)
		return err
	}
	for _, pid := range below(c.Process.Pid) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err != nil || strings.TrimSpace(string(name)) != "zsbx-keeper" {
			continue
		}
		private := 0
		for _, f := range []string{"Private_Clean:", "Private_Dirty:"} {
			n, err := field(pid, "smaps_rollup", f)
			if err != nil {
				return errors.Join(err, errors.New("the keeper's memory can be read by root only"))
			}
			private += n
		}
		fmt.Printf("| keeper with --keep, private | %d |\n", private)
		return nil
	}
	return errors.New("no keeper is there")
}

// below are the processes below one.
func below(pid int) []int {
	var all []int
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

// field reads a number of a file of a process.
func field(pid int, file, name string) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			return strconv.Atoi(f[1])
		}
	}
	return 0, fmt.Errorf("no %s in %s", name, file)
}
