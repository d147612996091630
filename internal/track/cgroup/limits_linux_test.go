package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGroup makes a directory with files like those of a control group.
func fakeGroup(t *testing.T, files map[string]string) *Group {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "zsbx-test")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &Group{Path: path}
}

func TestLimitFiles(t *testing.T) {
	g := fakeGroup(t, map[string]string{"memory.max": "max\n", "pids.max": "max\n", "cpu.max": "max 100000\n"})
	all := Limits{Memory: 1 << 20, Pids: 7, CPU: 1500}
	if err := g.limited(all); err == nil {
		t.Error("no error without limits")
	}
	if err := g.Limit(all); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"memory.max": "1048576", "pids.max": "7", "cpu.max": "150000"} {
		if b := g.read(name); !strings.HasPrefix(string(b), want) {
			t.Errorf("%s: %q, want %q", name, b, want)
		}
	}
	if err := g.limited(all); err != nil {
		t.Error(err)
	}
	// A limit that the kernel does not set is an error.
	if err := fakeGroup(t, map[string]string{"memory.max": "max\n"}).Limit(all); err == nil {
		t.Error("no error without pids.max")
	}
}
