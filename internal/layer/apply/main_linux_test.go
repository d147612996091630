package apply

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(killEnv) != "" {
		killed()
	}
	if attr := strings.Fields(os.Getenv("ZSBX_ATTR")); len(attr) > 0 { // FILE NAME VALUE
		if err := unix.Setxattr(attr[0], attr[1], []byte(attr[2]), 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// world is a tree, a layer of it, and what is outside.
type world struct {
	top, tree, upper, outside string
	*layer.Layer
}

// newWorld makes a tree with a script, and a layer for it.
func newWorld(t testing.TB, top, script string) *world {
	t.Helper()
	w := &world{top: top, tree: filepath.Join(top, "tree"), outside: filepath.Join(top, "outside")}
	for _, dir := range []string{w.tree, w.outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, w.tree, script)
	time.Sleep(20 * time.Millisecond) // what has the layer's time changed while the command ran
	w.layer(t)
	return w
}

// layer makes a layer for a tree.
func (w *world) layer(t testing.TB) {
	t.Helper()
	st, err := files.Lstat(w.tree)
	if err != nil {
		t.Fatal(err)
	}
	r := layer.Record{Session: uuid.NewString(), Trees: []layer.Tree{{Path: w.tree, Dev: st.ID.Dev, Ino: st.ID.Ino}}}
	w.Layer, err = layer.Make(filepath.Join(w.top, "state"), r)
	if err != nil {
		t.Fatal(err)
	}
	w.upper = filepath.Join(w.TreeDir(0), "upper")
	t.Cleanup(func() { // the overlay's work directory is closed to its owner, too
		_ = exec.Command("chmod", "-R", "u+rwX", w.top).Run()
	})
}

// find finds the layer that an earlier process made.
func find(top string) *layer.Layer {
	all, err := layer.All(filepath.Join(top, "state"))
	if err != nil || len(all) != 1 {
		panic(fmt.Sprint(all, err))
	}
	return all[0]
}

// write writes into the layer by hand, and freezes it.
func (w *world) write(t testing.TB, script string) {
	t.Helper()
	sh(t, w.upper, script)
	w.markCopied(t)
	w.freeze(t)
}

// markCopied marks the directories of the layer that the tree has, too, as the kernel does when it copies one.
func (w *world) markCopied(t testing.TB) {
	t.Helper()
	err := filepath.WalkDir(w.upper, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(w.upper, name)
		st, lower := os.Lstat(filepath.Join(w.tree, rel))
		if lower != nil || !st.IsDir() {
			return nil
		}
		closed, err := os.Lstat(name)
		if err != nil {
			return err
		}
		err = errors.Join(os.Chmod(name, 0o700), unix.Setxattr(name, "user.overlay.origin", nil, 0))
		return errors.Join(err, os.Chmod(name, closed.Mode()))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) freeze(t testing.TB) {
	t.Helper()
	if err := w.Freeze(); err != nil {
		t.Fatal(err)
	}
}

// overlay runs a script in the merged tree, and copies what it has in the end to top/merged.
func (w *world) overlay(t *testing.T, script string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprintf(`set -eu
attr() { ZSBX_ATTR="$*" %[3]s; }
mount -t overlay -o userxattr,lowerdir=%[1]s/tree,upperdir=%[4]s/upper,workdir=%[4]s/work overlay %[1]s/outside
cd %[1]s/outside
%[2]s
cp -a . %[1]s/merged
`, w.top, script, self, w.TreeDir(0))
	cmd := exec.Command("unshare", "-Urm", "sh", "-c", all)
	if os.Geteuid() == 0 {
		cmd = exec.Command("unshare", "-m", "sh", "-c", all)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "unshare failed") {
			testkit.Lacks(t, "userns", string(out))
		}
		t.Fatalf("%v: %s", err, out)
	}
	w.freeze(t)
}

func attrs(name string) map[string][]byte {
	dir, err := unix.Open(filepath.Dir(name), anyDir, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(dir)
	all, _ := layer.AttributesAt(dir, filepath.Base(name))
	return all
}

func (w *world) apply(t *testing.T, o Options) Result {
	t.Helper()
	res, err := Apply(w.Layer, o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// snapshot says how a directory looks, by names. Inodes are not part of it, but which names are of one file is.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	first := make(map[uint64]string)
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		if inTrees && strings.HasPrefix(rel, ".zsbx-try-") { // it stays until Undo or Drop
			return fs.SkipDir
		}
		text := fmt.Sprintf("%o %d:%d %s", st.Mode, st.Uid, st.Gid, time.Unix(st.Mtim.Unix()).UTC().Format(time.RFC3339Nano))
		switch files.Mode(st.Mode).Type() {
		case 0:
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %.12x", st.Size, sha256.Sum256(b))
			if st.Size > 1<<20 {
				text += fmt.Sprint(" sparse:", st.Blocks*512 < st.Size/2)
			}
			if st.Nlink > 1 {
				if other := first[st.Ino]; other != "" {
					text += " is " + other
				} else {
					first[st.Ino] = rel
				}
			}
		case fs.ModeSymlink:
			to, _ := os.Readlink(name)
			text += " -> " + to
		}
		if files.Mode(st.Mode).Type() != fs.ModeSymlink {
			text += fmt.Sprintf(" %q", attrs(name))
		}
		all[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// undone fails the test if a staging directory is left in the tree.
func (w *world) undone(t testing.TB) {
	t.Helper()
	if left, _ := filepath.Glob(w.tree + "/.zsbx-try-*"); left != nil {
		t.Errorf("left after an undo: %q", left)
	}
}

// same fails the test if two directories differ.
func same(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: %s is\n%q, not\n%q", what, name, got[name], want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want[name] == "" {
			t.Errorf("%s: there is %s: %s", what, name, got[name])
		}
	}
}

// sh runs a script in a directory.
func sh(t testing.TB, dir, script string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-euc", `attr() { ZSBX_ATTR="$*" "$SELF"; }; `+script)
	cmd.Env = append(os.Environ(), "SELF="+self)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// memory returns a new directory, in memory if possible: syncfs(2) waits for all that others write.
func memory(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "zsbx-apply-")
	if err != nil {
		return t.TempDir()
	}
	if unix.Setxattr(dir, "user.mine", []byte("1"), 0) != nil { // before Linux 6.6
		_ = os.Remove(dir)
		return t.TempDir()
	}
	t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+rwX", dir).Run()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// inTmpfs runs a test once more in a mount namespace with a new /tmp.
func inTmpfs(t *testing.T, name, env string) {
	t.Helper()
	args := []string{"-m"}
	if os.Geteuid() != 0 {
		args = []string{"-Urm"}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The program may be below /tmp itself.
	const script = `exec 9<"$0"; mount -t tmpfs tmpfs /tmp && exec /proc/self/fd/9 "$@"`
	args = append(args, "sh", "-c", script, self, "-test.run", "^"+name+"$")
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), env+"=1", "TMPDIR=/tmp")
	out, err := cmd.CombinedOutput()
	if err != nil {
		if len(out) < 200 {
			testkit.Lacks(t, "userns", string(out))
		}
		t.Fatalf("%s", out)
	}
}
