package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestHostIn(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("PWD", "/somewhere/else")
	t.Setenv("HOME", "/home/x/")
	for in, want := range map[string]string{"": "", "link": "/real", dir + "/link": "/real", "link/..": "", ".": ""} {
		h, err := HostIn(in)
		if err != nil || h.Dir != dir+want || h.Home != "/home/x" || h.TempDir != "" {
			t.Errorf("HostIn(%q): %q, home %q, %v", in, h.Dir, h.Home, err)
		}
		if err := h.Check(); err != nil {
			t.Errorf("HostIn(%q): %v", in, err)
		}
	}
	for _, bad := range []string{"file", "gone", "/no/such/dir"} {
		if h, err := HostIn(bad); err == nil {
			t.Errorf("HostIn(%q) = %q", bad, h.Dir)
		}
	}
	t.Setenv("HOME", "not/absolute")
	if h, err := ThisHost(); err != nil || h.Home != "" && !filepath.IsAbs(h.Home) {
		t.Errorf("home %q, %v", h.Home, err)
	}
}

// TestHostDeleted checks that a deleted working directory has its own error, and that another
// directory can still be named.
func TestHostDeleted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := ThisHost(); !errors.Is(err, ErrNoDirectory) {
		t.Errorf("got %v", err)
	}
	if h, err := HostIn("/"); err != nil || h.Dir != "/" {
		t.Errorf("%q, %v", h.Dir, err)
	}
}
