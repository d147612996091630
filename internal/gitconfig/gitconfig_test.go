package gitconfig_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestAsGitReads: Read returns what git lists, for a configuration that git accepts.
func TestAsGitReads(t *testing.T) {
	git := testkit.NeedProgram(t, "git")
	file, accepted := filepath.Join(t.TempDir(), "config"), 0
	starts := rapid.SampledFrom([]string{"[core]", "[Remote \"a]\\\"b\"]", "[remote.a]", "[include]", "[includeIf \"x\"] ", "path", "Url =", "\tx-1=", "x = a ", "path", "path\t= ", "#", " ; c", "[", "1", ""})
	values := rapid.SampledFrom([]string{"a", "b c", "\"q #\"", "\"", "#", "; c", "\\\n", "\\\r\n", "\\t", "\\\\", "\\\"", "\\", "]", "=", " ", "\t", "\r", "\f", "\ufeff", "é", "[core]"})
	line := rapid.Custom(func(rt *rapid.T) string {
		return starts.Draw(rt, "start") + strings.Join(rapid.SliceOfN(values, 0, 4).Draw(rt, "value"), "") + rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "end")
	})
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 0, 4).Draw(rt, "lines"), "")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		listed, err := exec.Command(git, "config", "-f", file, "-l", "-z").Output()
		if err != nil {
			return // git can't read it: what Read makes of it is what it saw until then, and later
		}
		accepted++
		settings, bad := gitconfig.Read(text)
		lines := strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00")
		if len(listed) == 0 {
			lines = nil
		}
		if bad != 0 || len(lines) != len(settings) {
			rt.Fatalf("%q: line %d, %+v, git has %q", text, bad, settings, lines)
		}
		for i, s := range settings {
			name, value, _ := strings.Cut(lines[i], "\n")
			section, key := name[:max(0, strings.IndexByte(name, '.'))], name[strings.LastIndexByte(name, '.')+1:]
			if s.Section != section || s.Key != key || !slices.Contains(s.Values(), value) {
				rt.Errorf("%q: %+v, git has %q", text, s, lines[i])
			}
		}
	})
	if accepted < 20 {
		t.Errorf("git accepted %d", accepted)
	}
}

// TestWhiteSpace: unquoted white space in a value is a blank for git before 2.45, and itself
// for later ones. In quotes, and written as an escape, it is itself for both.
func TestWhiteSpace(t *testing.T) {
	for text, want := range map[string][]string{
		"a\tb": {"a\tb", "a b"}, "a \t b\t": {"a \t b", "a   b"}, "a\rb": {"a\rb", "a b"},
		"\"a\tb\"": {"a\tb"}, `a\tb`: {"a\tb"}, "a b": {"a b"}, "\"a\tb\"\tc": {"a\tb\tc", "a\tb c"}, "\ta": {"a"}, "a\\\n\tb": {"a\tb", "a b"},
	} {
		settings, bad := gitconfig.Read("[a]\nb = " + text + "\n")
		if bad != 0 || len(settings) != 1 || !slices.Equal(settings[0].Values(), want) {
			t.Errorf("%q: %q, line %d; want %q", text, settings, bad, want)
		}
	}
}
