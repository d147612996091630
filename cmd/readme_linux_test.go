package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestReadme: what the README shows first is what zsbx does. Each line with a "$" is typed, and the lines after
// it are what it prints.
func TestReadme(t *testing.T) {
	t.Parallel()
	caps := enforce.Probe()
	testkit.NeedLandlock(t, caps.Landlock, 1, caps.LandlockReason)
	testkit.NeedProgram(t, "cc")
	testkit.NeedProgram(t, "make")
	zsbx := testkit.NeedProgram(t, "zsbx")
	_, shown, _ := strings.Cut(readPage(t, "../README.md"), "```console\n")
	shown, _, _ = strings.Cut(shown, "```")
	if !strings.HasPrefix(shown, "$ zsbx run --rw . -- make ") {
		t.Fatalf("the README begins with another command:\n%s", shown)
	}

	home := t.TempDir()
	project := filepath.Join(home, "hello")
	for name, text := range map[string]string{
		".ssh/id_ed25519": "key\n",
		"hello/Makefile":  "hello: main.c\n\tcc -o hello main.c\n",
		"hello/main.c":    "int main(void) { return 0; }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("cat", filepath.Join(home, ".ssh/id_ed25519")).Output(); string(out) != "key\n" {
		t.Fatalf("control: %q, %v", out, err)
	}
	var printed strings.Builder
	for line := range strings.Lines(shown) {
		typed, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		printed.WriteString(line)
		c := exec.Command("sh", "-c", typed)
		c.Dir = project
		c.Env = []string{"HOME=" + home, "PATH=" + filepath.Dir(zsbx) + ":/usr/bin:/bin"} // make's own variables change what it says
		out, _ := c.CombinedOutput()
		printed.WriteString(strings.ReplaceAll(string(out), home, "/home/me"))
	}
	if printed.String() != shown {
		t.Errorf("the README shows\n%s\nbut this is printed:\n%s", shown, printed.String())
	}
}
