package layer

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRandomActs: whatever is done on the merged tree, a copy of the tree to which the changes are applied has
// what the merged tree had. Nothing is listed twice, and directories come before what is in them.
func TestRandomActs(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		before := randomActs(r, 25)
		script := randomActs(r, 40)
		x := newTried(t, "umask 022\n"+before)
		model := filepath.Join(filepath.Dir(x.tree), "model")
		if out, err := exec.Command("cp", "-a", x.tree, model).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		merged := x.inside("umask 022\n" + script)
		for _, frozen := range []bool{false, true} {
			if frozen {
				x.freeze()
			}
			all := x.changes()
			ordered := func(a, b Change) int {
				return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
			}
			if !slices.IsSortedFunc(all, ordered) {
				t.Errorf("seed %d: %q", seed, texts(all))
			}
			for i := range all {
				if all[i].Conflict+all[i].Refused != "" || i > 0 && all[i].Path == all[i-1].Path {
					t.Errorf("seed %d: %q", seed, texts(all))
				}
			}
			if frozen {
				applyTo(t, model, x.layer.TreeDir(0)+"/upper", all)
			}
		}
		if got := snapshot(model); !slices.Equal(got, merged) {
			t.Fatalf("seed %d, with %s\nand then %s\nthe changes %q give\n%q, not\n%q", seed, before, script,
				texts(x.changes()), got, merged)
		}
		x.outside("umask 022\n" + script + "\ntrue")
		for _, c := range texts(x.changes()) {
			// The same acts outside lead to the same tree but for times, which files made there have.
			if strings.HasPrefix(c, "- ") && !strings.Contains(c, "!") {
				t.Errorf("seed %d: removed outside, too, and still a change: %q", seed, c)
			}
		}
		if err := x.layer.Remove(); err != nil {
			t.Error(err)
		}
	}
}

// randomActs is a script. Many of its acts fail.
func randomActs(r *rand.Rand, n int) string {
	names := []string{"a", "b", "c"}
	path := func() string {
		p := names[r.IntN(3)]
		for r.IntN(2) == 0 {
			p += "/" + names[r.IntN(3)]
		}
		return p
	}
	var b strings.Builder
	for i := range n {
		acts := []string{
			fmt.Sprintf("echo %d >%s", i, path()),
			fmt.Sprintf("echo %d >>%s", i, path()),
			fmt.Sprintf("mkdir -p %s", path()),
			fmt.Sprintf("mkdir -p %s", path()),
			fmt.Sprintf("rm -rf %s", path()),
			fmt.Sprintf("rm %s", path()),
			fmt.Sprintf("rmdir %s", path()),
			fmt.Sprintf("mv -T %s %s", path(), path()),
			fmt.Sprintf("mv %s %s", path(), path()),
			fmt.Sprintf("cp -a --remove-destination %s %s", path(), path()), // else it writes to a FIFO in a directory
			fmt.Sprintf("ln -s %s %s", names[r.IntN(3)], path()),
			fmt.Sprintf("ln -sfT %d %s", i, path()),
			fmt.Sprintf("mkfifo %s", path()),
			fmt.Sprintf("chmod 7%d5 %s", r.IntN(6), path()),
			fmt.Sprintf("touch -hd 2001-01-0%d %s", 1+r.IntN(3), path()),
			fmt.Sprintf("true >>%s", path()),
			fmt.Sprintf("ln %s %s", path(), path()),
		}
		// An act that opens a FIFO would wait, and one that follows a link could do something elsewhere.
		act := acts[r.IntN(len(acts))]
		words := strings.FieldsFunc(act, func(c rune) bool { return c == ' ' || c == '>' })
		target := words[len(words)-1]
		fmt.Fprintf(&b, "[ -p %s ] || %s 2>/dev/null\n", target, act)
	}
	return "set +e\nexec 2>/dev/null\n" + b.String() + "true\n"
}

// applyTo applies changes in the plainest way.
func applyTo(t *testing.T, top, upper string, all []Change) {
	t.Helper()
	made := make(map[uint64]string)
	for i := len(all) - 1; i >= 0; i-- { // what is in a directory before it
		c := &all[i]
		name := filepath.Join(top, c.Path)
		if c.Op == Remove || c.Was != nil && c.Was.Mode.Type() != c.Type.Type() {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range all {
		c := &all[i]
		name := filepath.Join(top, c.Path)
		if c.Op == Remove {
			continue
		}
		var err error
		switch {
		case c.Type.IsDir():
			err = os.Mkdir(name, 0o700)
			if errors.Is(err, fs.ErrExist) {
				err = nil
			}
			err = errors.Join(err, os.Chmod(name, c.Type))
		case c.Links > 1 && made[c.Inode] != "":
			_ = os.Remove(name)
			err = os.Link(made[c.Inode], name)
		default:
			_ = os.Remove(name)
			err = exec.Command("cp", "-a", "--", filepath.Join(upper, c.Path), name).Run()
			made[c.Inode] = name
		}
		if err != nil {
			t.Fatal(c.Path, err)
		}
	}
}
