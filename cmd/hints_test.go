package cmd

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// typable returns what is wrong with a hint. It must be a command line of a POSIX shell, of zsbx
// or of a few well-known tools, or flags of run, with nothing left to fill in.
func typable(t *testing.T, hint string) string {
	t.Helper()
	first, _, _ := strings.Cut(hint, " && ")
	out, err := exec.Command("sh", "-uc", "NODE_OPTIONS=x; set -- "+first+`; printf '%s\0' "$@"`).CombinedOutput()
	if err != nil {
		return "the shell does not take it: " + string(out)
	}
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if slices.ContainsFunc(words, func(w string) bool { return len(w) > 1 && strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" }) {
		return "a word is left to be filled in"
	}
	a := &app{stdout: io.Discard, stderr: io.Discard, say: voice{w: io.Discard}, env: os.Environ()}
	switch {
	case strings.HasPrefix(words[0], "--"):
		fs := newRun(a).Flags()
		if err := fs.Parse(words); err != nil {
			return err.Error()
		}
		if fs.NArg() > 0 {
			return "more than flags: " + fs.Arg(0)
		}
	case words[0] == "zsbx":
		c, rest, err := newRoot(a, words[1:]).Find(words[1:])
		if err == nil && !slices.Contains(rest, "--help") {
			err = c.ParseFlags(rest)
		}
		if err != nil {
			return err.Error()
		}
	case !slices.Contains([]string{"cat", "chmod", "cp", "cd", "find", "sudo"}, words[0]):
		return "neither flags nor a command that is known"
	}
	return ""
}

// TestHintsAreTyped makes mistakes, is refused things, and reads the hints.
func TestHintsAreTyped(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "a 'b")
	for name, text := range map[string]string{
		"a 'b/.zsbx.toml": "[fs]\nrw = [\".\"]\n", "a 'b/net.toml": "[net]\nallow = true\n", "a 'b/port.toml": "[net]\nconnect_tcp = [443]\n",
		"a 'b/key.toml": "x = 1\n", "plain/prog": "#!/no/such\n", "plain/secret": "x\n",
	} {
		name = filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(home+"/plain/secret", home+"/plain/other"); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "PATH=/usr/bin:/bin", "XDG_STATE_HOME=" + home + "/state", "NODE_OPTIONS=x", "XDG_CONFIG_HOME=" + home + "/config"}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	for dir, lines := range map[string][][]string{
		dir: {{"run", "--", "true"}, {"run", "-p", "net.toml", "-p", "port.toml", "--", "true"}, {"run", "--no-baseline", "-p", "key.toml"}},
		home + "/plain": {
			{"run"}, {"rum"}, {"ls"}, {"--rw", ".", "ls"}, {"run", "--nonsense"}, {"run", "true", "--rw", "."}, {"run", "cd", "/"}, {"version", "x"}, {"reap"}, {"reap", "nobody"}, {"completion"}, {"completion", "tcsh"},
			{"run", "--preset", "no-such", "--", "true"}, {"run", "--ro", "missing", "--", "true"}, {"run", "--ro", "$NO_SUCH/x", "--", "true"},
			{"run", "--env", "NODE_OPTIONS", "--", "no-such-command"}, {"run", "--exec", "--track", "subtree", "--", "true"},
			{"run", "--track-only", "--track", "domain", "--", "true"}, {"run", "--strict", "--rw", ".", "--deny", "secret", "--", "true"},
			{"check", "--no-net", "--connect", "example.org:443"}, {"check", "--connect-tcp", "80", "--connect", "example.org:443"}, {"check", "--read", "/root/x y"}, {"check", "--write", "/etc/it's"},
			{"check", "--connect", "/run/x y"}, {"check", "--no-baseline", "--", "/bin/true"},
		},
	} {
		t.Chdir(dir)
		for _, args := range lines {
			var b strings.Builder
			a := &app{stdout: io.Discard, stderr: &b, env: env}
			a.main(args)
			for line := range strings.Lines(b.String()) {
				if hint, ok := strings.CutPrefix(strings.TrimSpace(line), "zsbx: hint: "); ok {
					t.Logf("%q: %s", args, hint)
					if why := typable(t, hint); why != "" {
						t.Errorf("%q: hint %q: %s", args, hint, why)
					}
				}
			}
		}
	}
}

// TestGapHintsAreTyped reads the hints of a machine that can enforce nothing.
func TestGapHintsAreTyped(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	for _, net := range []resolve.ResolvedNet{{Mode: resolve.NetOpen}, {Mode: resolve.NetNone}, {Mode: resolve.NetPorts, ConnectTCP: []policy.Port{{Number: 443}}}} {
		for _, abi := range []int{0, 1, 7} {
			r := &resolve.Resolved{OS: "linux", Dir: "/", Net: net, Deny: []resolve.DenyPath{{Pattern: "/tmp/x"}}}
			r.Paths = []resolve.Path{{Path: "/tmp", Mode: os.ModeDir, Access: policy.Read | policy.Write}}
			plan := enforce.NewPlan(r, enforce.Caps{OS: "linux", Landlock: abi}, &h, enforce.Options{Protect: []string{"/tmp/no/such"}})
			for _, g := range plan.Gaps {
				if why := typable(t, "--allow-gap "+g.Name); why != "" {
					t.Errorf("%s: %s", g.Name, why)
				}
				if why := typable(t, g.Hint); g.Hint != "" && why != "" {
					t.Errorf("%s: hint %q: %s", g.Name, g.Hint, why)
				}
			}
		}
	}
	for _, hint := range []string{"--track auto", "--track cgroup"} { // the hints of a *track.TrackerError
		if why := typable(t, hint); why != "" {
			t.Errorf("hint %q: %s", hint, why)
		}
	}
}
