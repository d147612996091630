package tempdir

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSweep: what a killed run left is removed, and nothing that may be in use.
func TestSweep(t *testing.T) {
	tmp := t.TempDir()
	if len(tmp) > 50 {
		t.Skip("the directory for temporary files has a long name")
	}
	long := time.Now().Add(-time.Hour)
	left := func(name string, age time.Time) string {
		dir := filepath.Join(tmp, name)
		if err := os.MkdirAll(dir+"/run", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, age, age); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	killed, fresh, recorded, other := left("zsbx-1", long), left("zsbx-2", time.Now()), left("zsbx-3", long), left("zsbx-caches", long)
	full := left("zsbx-4", long)
	if err := os.WriteFile(full+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(full, long, long); err != nil {
		t.Fatal(err)
	}
	used, err := makeIn(tmp)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(used.lock)
	if err := os.Chtimes(used.path, long, long); err != nil {
		t.Fatal(err)
	}
	Sweep(tmp, []string{recorded})
	for dir, want := range map[string]bool{killed: false, fresh: true, recorded: true, other: true, full: true, used.path + "/run": true} {
		if _, err := os.Lstat(dir); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", dir, err == nil, want)
		}
	}
}
