package layer

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

const mountEnv = "ZSBX_TEST_LAYER"

// TestMain mounts an overlay on a tree, in the namespaces of this process, if that is what it was started for.
// Then it runs a script there and prints a snapshot of what the script leaves.
func TestMain(m *testing.M) {
	dir := os.Getenv(mountEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := actInLayer(dir, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func actInLayer(dir, tree, script string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount --make-private /: %w", err)
	}
	options := fmt.Sprintf("userxattr,lowerdir=%s,upperdir=%s/upper,workdir=%s/work", tree, dir, dir)
	if err := unix.Mount("overlay", tree, "overlay", 0, options); err != nil {
		return fmt.Errorf("mounting an overlay: %w", err)
	}
	if err := os.Chdir(tree); err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	sh := exec.Command("sh", "-c", script)
	sh.Stderr = os.Stderr
	sh.Stdout = os.Stderr
	if err := sh.Run(); err != nil {
		return err
	}
	if len(os.Args) > 3 {
		for _, line := range snapshot(".") {
			fmt.Print(line, "\x00")
		}
	}
	return nil
}

// snapshot describes all that is in a directory, one text for each entry.
func snapshot(top string) (all []string) {
	err := filepath.WalkDir(top, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, name)
		line := fmt.Sprintf("%s %o", rel, st.Mode)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			to, err := os.Readlink(name)
			all = append(all, line+" "+to)
			return err
		case unix.S_IFREG:
			content, err := os.ReadFile(name)
			all = append(all, fmt.Sprintf("%s %d %d %q", line, st.Nlink, st.Mtim.Nano(), content))
			return err
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		all = append(all, err.Error())
	}
	return all
}

// tried is a tree with a layer.
type tried struct {
	t     testing.TB
	tree  string
	state string
	layer *Layer
}

// newTried makes a tree with a script, and a layer for it.
func newTried(t testing.TB, script string) *tried {
	t.Helper()
	top := t.TempDir()
	x := &tried{t: t, tree: filepath.Join(top, "tree"), state: filepath.Join(top, "state")}
	if err := os.Mkdir(x.tree, 0o755); err != nil {
		t.Fatal(err)
	}
	x.outside(script)
	time.Sleep(20 * time.Millisecond) // before Linux 6.13, what is younger may have the layer's own time
	x.layer = makeLayer(t, x.state, "", x.tree)
	return x
}

func makeLayer(t testing.TB, state, name string, trees ...string) *Layer {
	t.Helper()
	r := Record{Session: uuid.NewString(), Name: name, Command: []string{"c"}, Dir: "/", Began: time.Now()}
	for _, tree := range trees {
		st, err := os.Lstat(tree)
		if err != nil {
			t.Fatal(err)
		}
		sys := st.Sys().(*syscall.Stat_t)
		r.Trees = append(r.Trees, Tree{Path: tree, Dev: sys.Dev, Ino: sys.Ino})
	}
	l, err := Make(state, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := os.Lstat(l.Dir); err != nil {
			return
		}
		if err := l.Remove(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// outside runs a script in the tree itself.
func (x *tried) outside(script string) {
	x.t.Helper()
	sh := exec.Command("sh", "-e", "-c", script)
	sh.Dir = x.tree
	if out, err := sh.CombinedOutput(); err != nil {
		x.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// inside runs a script on the merged tree, and returns a snapshot of that.
func (x *tried) inside(script string) []string {
	x.t.Helper()
	return strings.Split(strings.TrimSuffix(x.run(script, "snapshot"), "\x00"), "\x00")
}

// insideOnly runs a script on the merged tree.
func (x *tried) insideOnly(script string) {
	x.t.Helper()
	x.run(script)
}

func (x *tried) run(script string, more ...string) string {
	x.t.Helper()
	self, err := os.Executable()
	if err != nil {
		x.t.Fatal(err)
	}
	c := exec.Command(self, append([]string{x.tree, script}, more...)...)
	c.Env = append(os.Environ(), mountEnv+"="+x.layer.TreeDir(0))
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE}, // the overlay's work directory is closed
	}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		x.t.Fatalf("%s: %v\n%s", script, err, stderr.String())
	}
	return string(out)
}

func (x *tried) freeze() {
	x.t.Helper()
	if err := x.layer.Freeze(); err != nil {
		x.t.Fatal(err)
	}
}

func (x *tried) changes() []Change {
	x.t.Helper()
	all, err := x.layer.Changes()
	if err != nil {
		x.t.Fatal(err)
	}
	return all
}

// text is a change in short.
func text(c *Change) string {
	sign := map[Op]string{Add: "+", Modify: "~", Remove: "-"}[c.Op]
	s := sign + " " + c.Path
	if c.Conflict != "" {
		s += " !" + c.Conflict
	}
	if c.Refused != "" {
		s += " ?" + c.Refused
	}
	return s
}

func texts(all []Change) (out []string) {
	for i := range all {
		out = append(out, text(&all[i]))
	}
	return out
}

// TestChanges: what a script does on the merged tree is what is read, before and after Freeze.
func TestChanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		before string // makes the tree
		script string
		want   []string
	}{
		{"nothing", "echo a >f; mkdir d; echo b >d/g", "cat f d/g >/dev/null", nil},
		{"create", "mkdir d", "echo a >f; echo b >d/g; mkdir -p e/h; : >e/h/i", []string{"+ d/g", "+ e", "+ e/h", "+ e/h/i", "+ f"}},
		{"change", "echo a >f; mkdir d; echo b >d/g", "echo c >>f; echo c >d/g", []string{"~ d/g", "~ f"}},
		{"chmod", "echo a >f; mkdir d", "chmod 600 f; chmod 700 d", []string{"~ d", "~ f"}},
		{"chmod and back", "echo a >f; chmod 644 f", "chmod 600 f; chmod 644 f", nil},
		{"chmod of the tree", "", "chmod 711 .", []string{"~ ."}},
		{"touch", "echo a >f", "touch f", []string{"~ f"}},
		{"touch of a directory", "mkdir d", "touch -d 2001-01-01 d", nil},
		{"opened for writing", "echo a >f", ": >>f", nil},
		{"same size and time", "echo a >f; touch -d 2001-01-01 f", "echo b >f; touch -d 2001-01-01 f", []string{"~ f"}},
		{"rename", "echo a >f", "mv f g", []string{"- f", "+ g"}},
		{"rename over", "echo a >f; echo b >g", "mv f g", []string{"- f", "~ g"}},
		{"remove", "echo a >f; mkdir -p d/e; echo b >d/g", "rm f; rm -r d", []string{"- d", "- d/e", "- d/g", "- f"}},
		{"make and remove", "", "echo a >f; mkdir d; rm -r f d", nil},
		{"opaque", "mkdir -p d/e; echo a >d/f; echo b >d/e/g", "rm -r d; mkdir d; echo c >d/h", []string{"- d/e", "- d/e/g", "- d/f", "+ d/h"}},
		{"below opaque", "mkdir -p d/e; echo a >d/e/f", "rm -r d; mkdir -p d/e; echo c >d/e/h", []string{"- d/e/f", "+ d/e/h"}},
		{"opaque with the same file", "mkdir d; echo a >d/f; echo b >d/g",
			"cp -a d d2; rm -r d; mv d2 d; rm d/g", []string{"- d/g"}},
		{"a directory made and renamed", "mkdir k", "mkdir d; echo a >d/f; mv d k/e", []string{"+ k/e", "+ k/e/f"}},
		{"file to directory", "echo a >f", "rm f; mkdir f; echo b >f/g", []string{"~ f", "+ f/g"}},
		{"directory to file", "mkdir -p d/e; echo a >d/e/f", "rm -r d; echo b >d", []string{"~ d", "- d/e", "- d/e/f"}},
		{"links", "ln -s a l; ln -s b m", "ln -sf c l; ln -s / n; rm m", []string{"~ l", "- m", "+ n"}},
		{"to a link", "echo a >f; mkdir d", "rm f; ln -s / f; rmdir d; ln -s / d", []string{"~ d", "~ f"}},
		{"a FIFO", "mkfifo p", "mkfifo q; rm p", []string{"- p", "+ q"}},
		{"a FIFO changed", "mkfifo p; chmod 644 p", "chmod 600 p", []string{"~ p"}},
		{"hard links", "echo a >f", "ln f g; echo b >h; ln h i", []string{"~ f", "+ g", "+ h", "+ i"}},
		{"as many names as before", "echo a >f; ln f g", "ln f h", []string{"~ f", "+ h"}},
		{"a name that goes again", "echo a >f", "ln f g; rm g", nil},
		{"set-id", "", ": >f; chmod 4755 f; : >g; chmod 2755 g; mkdir d; chmod 2755 d", []string{
			"+ d",
			"+ f ?it would run with the rights of its owner (set-user-ID)",
			"+ g ?it would run with the rights of its group (set-group-ID)",
		}},
		{"a name with a newline", "", `: >"$(printf 'a\nb')"; : >"$(printf 'c\377')"; : >'"q"'`, []string{`+ "q"`, "+ a\nb", "+ c\xff"}},
		{"a long name", "", fmt.Sprintf("mkdir %[1]s; : >%[1]s/%[2]s", long('d'), long('f')),
			[]string{"+ " + long('d'), "+ " + long('d') + "/" + long('f')}},
		{"order", "", "mkdir a; : >a/b; : >a-b; : >a.b; : >aa", []string{"+ a", "+ a/b", "+ a-b", "+ a.b", "+ aa"}},
		{"sparse", "", "truncate -s 1M f", []string{"+ f"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newTried(t, "set -e\n"+c.before)
			x.insideOnly("set -e\n" + c.script)
			if got := texts(x.changes()); !slices.Equal(got, c.want) {
				t.Errorf("before Freeze: %q, not %q", got, c.want)
			}
			x.freeze()
			if got := texts(x.changes()); !slices.Equal(got, c.want) {
				t.Errorf("after Freeze: %q, not %q", got, c.want)
			}
		})
	}
}

func long(c byte) string { return strings.Repeat(string(c), 255) }
