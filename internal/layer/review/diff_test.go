package review

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/layer"
)

// TestDiffPatch: patch(1) makes the new file from the old one and the difference, and counts say how many
// lines it has.
func TestDiffPatch(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("no patch(1)")
	}
	line := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "b", "{", "}", "-- x", "++ y", "--- a/x", "+++ b/x", "@@ -1 +1 @@", `\ No newline at end of file`, "\tx"}),
		rapid.StringMatching(`[ -~äλ漢]{0,12}`),
	)
	text := rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(line, 0, 30).Draw(t, "lines"), "\n")
		if rapid.Bool().Draw(t, "ends") {
			s += "\n"
		}
		return s
	})
	edited := rapid.Custom(func(t *rapid.T) [2]string {
		was := text.Draw(t, "was")
		if rapid.Bool().Draw(t, "other") {
			return [2]string{was, text.Draw(t, "is")}
		}
		lines := strings.SplitAfter(was, "\n")
		i := rapid.IntRange(0, len(lines)-1).Draw(t, "at")
		j := rapid.IntRange(i, len(lines)).Draw(t, "to")
		return [2]string{was, strings.Join(lines[:i], "") + text.Draw(t, "in") + strings.Join(lines[j:], "")}
	})
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		both := edited.Draw(t, "texts")
		name := rapid.StringMatching(`[a-z]([a-z ./]?[a-zé-]){0,8}`).Draw(t, "name")
		if strings.Contains(name, "./") || strings.Contains(name, "/.") {
			t.Skip()
		}
		op := rapid.SampledFrom([]layer.Op{layer.Add, layer.Modify, layer.Remove}).Draw(t, "op")
		c := changedFile(name, 0o644, 0o644)
		c.Op = op
		file := filepath.Join(dir, "tree", name)
		if err := os.RemoveAll(filepath.Join(dir, "tree")); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		want := both[1]
		switch op {
		case layer.Add:
			c.Was = nil
			both[0] = ""
		case layer.Remove:
			want = ""
		}
		if op != layer.Add {
			if err := os.WriteFile(file, []byte(both[0]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if both[0] == want {
			return // no lines
		}
		m := memory{is: map[string]string{name: both[1]}, was: map[string]string{name: both[0]}}
		var b strings.Builder
		r := reviewed(m, []layer.Change{c}, "/t")
		if err := r.Diff(&b); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("patch", "-p1", "--binary", "-s", "--fuzz=0")
		cmd.Dir = filepath.Join(dir, "tree")
		cmd.Stdin = strings.NewReader(b.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, b.String())
		}
		got, err := os.ReadFile(file)
		if op == layer.Remove && os.IsNotExist(err) {
			return
		}
		if err != nil || string(got) != want {
			t.Fatalf("%v, got %q, not %q, by\n%s", err, got, want, b.String())
		}
	})
}

// TestDiffOther: what is no text, or too big, is told by its size.
func TestDiffOther(t *testing.T) {
	big := strings.Repeat("x\n", maxText)
	m := memory{
		is:  map[string]string{"bin": "a\x00b", "big": big, "link": "to"},
		was: map[string]string{"bin": "a", "gone": "old\n"},
	}
	binary := changedFile("bin", 0o755, 0o644)
	binary.Size = 3
	binary.Was.Size = 1
	var b strings.Builder
	r := reviewed(m, []layer.Change{
		binary, added("big", 0o644, int64(len(big))), added("link", linkMode, 0), added("d", dirMode, 0),
		removed("gone", 0o644), added("unread", 0o644, 7),
	}, "/t")
	const want = `~ bin: mode 0755, was 0644, binary, 3 bytes, was 1 byte
+ big: new file, mode 0644, too big to be compared by lines, 2.0 MiB
+ link: new link, to to
+ d: new directory, mode 0755
- gone: removed file
--- a/gone
+++ /dev/null
@@ -1,1 +0,0 @@
-old
+ unread: new file, mode 0644, can't be read: file does not exist, 7 bytes
`
	if err := r.Diff(&b); err != nil || b.String() != want {
		t.Errorf("%v, got\n%swant\n%s", err, b.String(), want)
	}
}
