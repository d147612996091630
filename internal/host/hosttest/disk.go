package hosttest

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
)

// Disk is a Host over the real file system with its own home directory, in which files are
// made.
func Disk(t *testing.T, env ...string) host.Host {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return host.Host{
		OS: "linux", Home: home, Dir: home, Env: env,
		Lstat: func(p string) (host.Stat, error) {
			fi, err := os.Lstat(p)
			if err != nil {
				return host.Stat{}, err
			}
			st := fi.Sys().(*syscall.Stat_t)
			return host.Stat{Mode: fi.Mode(), ID: host.FileID{Dev: uint64(st.Dev), Ino: st.Ino}}, nil
		},
		Readlink: os.Readlink,
		ReadDir:  func(p string, n int) ([]fs.DirEntry, error) { return os.ReadDir(p) },
		ReadFile: os.ReadFile,
	}
}

// Write makes a file below the home directory and returns its path.
func Write(h *host.Host, t *testing.T, name, content string) string {
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

// Mkdirs makes directories below the home directory.
func Mkdirs(h *host.Host, t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if err := os.MkdirAll(filepath.Join(h.Home, n), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
