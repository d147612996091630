package trace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestInterpreter: a command may replace its program while it is read. The reader does not
// block on the replacement, and follows no link at the end of the path.
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
		case <-time.After(testkit.Patience):
			t.Fatal("opening the FIFO waits")
		}
	}
}

// TestChangedProgram: a program that the command can change is read each time.
func TestChangedProgram(t *testing.T) {
	name := filepath.Join(t.TempDir(), "script")
	r := New(&answer.World{Filter: &seccomp.Filter{}}, false)
	for _, want := range []string{"/bin/one", "/bin/two"} {
		os.WriteFile(name, []byte("#!"+want+"\n"), 0o755)
		l := look{r: r, proc: process(os.Getpid())}
		at, _ := l.find(cwd, name, true)
		l.Act.Path = at.path
		if next, _ := l.interpreter(); next != want {
			t.Errorf("%q, want %q", next, want)
		}
	}
}

// TestRemembered: a file that the command can't write is remembered by a name that the command
// can't make lead elsewhere, and only while it exists.
func TestRemembered(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return dir + "/" + name }
	os.MkdirAll(at("fixed/d"), 0o755)
	os.MkdirAll(at("free"), 0o755)
	os.WriteFile(at("fixed/f"), nil, 0o644)
	os.WriteFile(at("fixed/d/f"), nil, 0o644)
	os.Symlink(at("fixed"), at("free/link"))
	const all = 1<<13 - 1
	rules := &landlock.Ruleset{HandledFS: all, Paths: []landlock.PathRule{{Path: at("free"), Rights: all}}}
	r := New((&answer.World{Filter: &seccomp.Filter{}, Landlock: rules}).Index(), false)
	leads := func(name, want string, exists bool) {
		t.Helper()
		l := look{r: r, proc: process(os.Getpid())}
		if got, _ := l.find(cwd, at(name), true); got.path != at(want) || got.exists != exists {
			t.Errorf("%s: %+v, want %s, %v", name, got, at(want), exists)
		}
	}
	leads("fixed/f", "fixed/f", true)
	if _, known := r.found.Load(at("fixed/f")); !known {
		t.Error("what the command can't change is not remembered")
	}
	leads("free/link/f", "fixed/f", true)
	leads("free/link/d/f", "fixed/d/f", true)
	leads("fixed/late", "fixed/late", false)

	os.Remove(at("free/link"))
	os.MkdirAll(at("free/link/d"), 0o755)
	os.WriteFile(at("free/link/f"), nil, 0o644)
	os.WriteFile(at("free/link/d/f"), nil, 0o644)
	os.WriteFile(at("fixed/late"), nil, 0o644) // by a program outside
	leads("free/link/f", "free/link/f", true)
	leads("free/link/d/f", "free/link/d/f", true)
	leads("fixed/late", "fixed/late", true)

	os.WriteFile(at("fixed/script"), []byte("#!/bin/one\n"), 0o755)
	os.Link(at("fixed/script"), at("free/script"))
	for _, want := range []string{"/bin/one", "/bin/two"} {
		os.WriteFile(at("free/script"), []byte("#!"+want+"\n"), 0o755)
		leads("fixed/script", "fixed/script", true)
		l := look{r: r}
		l.Act.Path = at("fixed/script")
		if next, _ := l.interpreter(); next != want {
			t.Errorf("by another name: %q, want %q", next, want)
		}
	}
}

// TestResolve: a path is followed as the kernel does, and one process's own files are not
// remembered for another.
func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return dir + "/" + name }
	os.MkdirAll(at("d/e"), 0o755)
	os.WriteFile(at("d/f"), nil, 0o644)
	for to, from := range map[string]string{"d": "l", "l/../d/f": "f", "missing": "dangling", "loop": "loop", "/proc/self/cwd": "here", "d/e/": "slash"} {
		if err := os.Symlink(to, at(from)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(at("d/e"))
	r := New(&answer.World{Filter: &seccomp.Filter{}}, false)
	for range 2 {
		for name, want := range map[string]string{
			"/": "/", "/.": "/", "/..": "/", at("d/f"): at("d/f"), at("d//f"): at("d/f"), at("d/e/../f"): at("d/f"), at("l/e/.."): at("d"), at("l/"): at("d"),
			at("f"): at("d/f"), at("dangling"): at("missing") + "?", at("no"): at("no") + "?", at("no/x"): "", at("d/f/x"): "", at("loop"): "", at("here/.."): at("d"),
			"../f": at("d/f"), "": at("d/e"), "/proc/self/cwd": at("d/e"), "/dev/fd/../cwd": at("d/e"), at("slash"): at("d/e"),
			at(strings.Repeat("d/../", 300)): "",
		} {
			l := look{r: r, proc: process(os.Getpid())}
			got, ok := l.find(cwd, name, true)
			if !got.exists {
				got.path += "?"
			}
			if ok && got.path != want || !ok && want != "" {
				t.Errorf("%s: %+v, %v, want %q", name, got, ok, want)
			}
			l = look{r: r, proc: "/proc/1"}
			if other, ok := l.find(cwd, "/proc/self/comm", true); !ok || other.path != "/proc/1/comm" {
				t.Errorf("another's: %+v", other)
			}
		}
		l := look{r: r, proc: process(os.Getpid())}
		if got, ok := l.find(cwd, at("l"), false); !ok || got.path != at("l") || got.mode != os.ModeSymlink {
			t.Errorf("not followed: %+v, %v", got, ok)
		}
	}
	os.WriteFile(at("current"), nil, 0o644)
	os.Symlink("d/f", at("next"))
	for _, want := range []string{at("current"), at("d/f")} { // a link replaces a file: ln -sf, mv
		l := look{r: r, proc: process(os.Getpid())}
		if got, ok := l.find(cwd, at("current"), true); !ok || got.path != want {
			t.Errorf("current: %+v, want %s", got, want)
		}
		os.Rename(at("next"), at("current"))
	}
	for _, own := range []string{at("here"), "/proc/self/cwd", "/dev/fd", "/proc/self"} {
		if got, known := r.found.Load(own); known {
			t.Errorf("%s is remembered: %+v", own, got)
		}
	}
}
