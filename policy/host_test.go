package policy

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// diskHost is a Host over the real file system with its own home directory, in which files are
// made.
func diskHost(t *testing.T, env ...string) Host {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Host{
		OS: "linux", Home: home, Dir: home, Env: env,
		Lstat: func(p string) (Stat, error) {
			fi, err := os.Lstat(p)
			if err != nil {
				return Stat{}, err
			}
			st := fi.Sys().(*syscall.Stat_t)
			return Stat{Mode: fi.Mode(), ID: FileID{Dev: uint64(st.Dev), Ino: st.Ino}}, nil
		},
		Readlink: os.Readlink,
		ReadDir:  func(p string, n int) ([]fs.DirEntry, error) { return os.ReadDir(p) },
		ReadFile: os.ReadFile,
	}
}

// write makes a file below the home directory and returns its path.
func writeBelow(h *Host, t *testing.T, name, content string) string {
	t.Helper()
	p := filepath.Join(h.Home, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// mkdirs makes directories below the home directory.
func mkdirsBelow(h *Host, t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if err := os.MkdirAll(filepath.Join(h.Home, n), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// path returns a Path as Resolve would make it from a preset's rule.
func presetPath(h *Host, t *testing.T, access Access, p string) Path {
	t.Helper()
	if !strings.HasPrefix(p, "/") {
		p = filepath.Join(h.Home, p)
	}
	real, st, err := h.RealPath(p)
	if err != nil {
		t.Fatal(err)
	}
	rule := Rule{Path: p, Access: access, Optional: true, Origin: Origin{Source: "preset test"}}
	return Path{Path: real, Access: access, Mode: st.Mode.Type(), ID: st.ID, Rule: rule}
}
