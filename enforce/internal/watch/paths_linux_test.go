package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
)

// TestInterpreter: a command may exchange its program while it is looked at. What is
// there then is not waited for, and no link is followed but on the way.
func TestInterpreter(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	os.WriteFile(at("script"), []byte("#!/bin/interp -x\n"), 0o755)
	os.Symlink(at("script"), at("link"))
	os.Mkdir(at("dir"), 0o755)
	os.WriteFile(at("dir/script"), []byte("#!/bin/other\n"), 0o755)
	os.Symlink("dir", at("way"))
	if err := unix.Mkfifo(at("fifo"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := make(chan [2]string)
	go func() {
		for _, name := range []string{"script", "dir/script", "link", "way/script", "fifo", "dir", "missing"} {
			l := look{r: New(&answer.World{Filter: &seccomp.Filter{}}, false)}
			l.Act.Path = at(name)
			next, _ := l.interpreter()
			got <- [2]string{name, next}
		}
		close(got)
	}()
	want := map[string]string{"script": "/bin/interp", "dir/script": "/bin/other", "way/script": "/bin/other"}
	for {
		select {
		case g, ok := <-got:
			if !ok {
				return
			}
			if g[1] != want[g[0]] {
				t.Errorf("%s: %q, want %q", g[0], g[1], want[g[0]])
			}
		case <-time.After(10 * time.Second):
			t.Fatal("opening the FIFO waits")
		}
	}
}
