package imports_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/imports"
	"github.com/zsbx/zsbx/policy"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden reads one file of each format, as in their documentation, writes the policy, and
// checks that it reads back the same.
func TestGolden(t *testing.T) {
	for _, format := range imports.Formats() {
		files, err := filepath.Glob("testdata/" + format + ".*[a-z]")
		if format == "firejail" {
			files, err = []string{"testdata/player.profile"}, nil
		}
		for _, file := range files {
			if strings.HasSuffix(file, ".golden") {
				continue
			}
			data, e := os.ReadFile(file)
			r, e2 := imports.Read("", file, data)
			if err := errors.Join(err, e, e2); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if r.Format != format {
				t.Errorf("%s is taken for %q", file, r.Format)
			}
			var b bytes.Buffer
			for _, l := range r.Left {
				b.WriteString("# " + l + "\n")
			}
			if err := r.Policy.EncodeTOML(&b); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			back, err := policy.Decode("x.toml", b.Bytes())
			if err != nil || back.Hash() != r.Policy.Hash() {
				t.Errorf("%s: the policy is not read back as it was: %v", file, err)
			}
			golden := "testdata/" + format + ".golden"
			if *update {
				os.WriteFile(golden, b.Bytes(), 0o644)
			}
			if want, _ := os.ReadFile(golden); !bytes.Equal(want, b.Bytes()) {
				t.Errorf("%s: got\n%s\nwant\n%s", file, b.Bytes(), want)
			}
		}
		if len(files) == 0 {
			t.Errorf("no example of %s", format)
		}
	}
}

// TestDetect: a word in the content does not outweigh the name, and settings of other programs are
// not taken for those of a sandbox.
func TestDetect(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"s.json", `{"filesystem":{"denyRead":["~/.config/firejail","sandbox_mode"]}}`, "srt"},
		{"s.json", ` {"network":{},"x":"landrun"}`, "srt"},
		{"s.json", "// no firejail\n{\"terminal\":{\"sandbox\":{}}}", "zed"},
		{"x.sh", "landrun --ro /etc/firejail ls", "landrun"},
		{"x.profile", "blacklist /sandbox_mode", "firejail"},
		{"x.toml", "x = 'firejail'", "codex"},
		{"x", "exec landrun ls", ""},
		{"settings.json", `{"permissions": {"allow": ["Read(x)"]}}`, ""},
	} {
		r, err := imports.Read("", tt.name, []byte(tt.text))
		if (err != nil) != (tt.want == "") || err == nil && r.Format != tt.want {
			t.Errorf("%s %s: %+v, %v, want %s", tt.name, tt.text, r, err, tt.want)
		}
	}
}

// TestNarrow has what zsbx can't express: the policy becomes narrower, never wider.
func TestNarrow(t *testing.T) {
	for _, tt := range []struct{ format, text, want, never string }{
		{"srt", `{"network":{"allowedDomains":["*"]}}`, "allow = false", "allow = true"},
		{"srt", `{}`, "allow = false", "rw ="},
		{"srt", `{"filesystem":{"allowWrite":["."],"denyWrite":["x"]}}`, `"x"`, ""},
		{"srt", `{"filesystem":{"allowWrite":["src/**"]}}`, "rules take no patterns", "rw ="},
		{"srt", `{"filesystem":{"allowWrite":["$HOME/x"]}}`, `"$$HOME/x"`, ""},
		{"srt", `{"filesystem":{"denyRead":["/home"],"allowRead":["."]}}`, "denials always win", `ro = [`},
		{"codex", `sandbox_mode = "read-only"` + "\n[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = ['/x']", "allow = false", `"/x"`},
		{"codex", ``, "allow = false", "rw ="},
		{"codex", "[shell_environment_policy]\ninherit = 'all'\nexclude = ['X']", `mode = "scrubbed"`, "sanitized"},
		{"codex", "default_permissions = 'wide'\n[permissions.wide.filesystem]\n'/' = 'write'", "permission profiles are not read", "rw ="},
		{"zed", `{"terminal":{"sandbox":{"system_paths":{"executable":[]}}}}`, "executable = []", "read_only"},
		{"landrun", "landrun --rox /usr ls", "connect_tcp = []", "allow = true"},
		{"landrun", "landrun --unrestricted-network --rox /usr ls", "allow = true", "_tcp"},
		{"landrun", "landrun --unrestricted-filesystem=false --unrestricted-network=0 --rox /usr ls", "connect_tcp = []", "allow = true"},
		{"landrun", "landrun --unrestricted-filesystem=false --rox /usr ls", "/usr", "rw = "},
		{"landrun", "landrun --unrestricted-network --unrestricted-network=false --rox /usr ls", "connect_tcp = []", "allow = true"},
		{"landrun", "landrun --unrestricted-network=true --ldd=false --add-exec ls", "--add-exec: the command's own file", "_tcp"},
		{"landrun", "sudo landrun --rw /a\\ b -- ls --rw /c", `"/a b"`, `"/c"`},
		{"landrun", "landrun --env \"A=$B\" ls", "what it expands to is not known", `A = `},
		{"landrun", "landrun --ro \"$(id)\" --rox $HOME/x ls", `"~/x"`, "ro = "},
		{"firejail", "net none\nread-only ${HOME}\n", `"~",  #`, ""},
		{"firejail", "read-write /srv\nread-only /srv/sub/\n", `"/srv/sub",  #`, ""},
		{"firejail", "read-write /srv\nread-only /srv/sub\n", "2: read-only /srv/sub: zsbx can't deny writing alone", ""},
		{"firejail", "read-only /srv/sub\nwhitelist /srv\n", `"/srv/sub",  #`, ""},
		{"firejail", "read-write /srv\nread-only /srv\n", `deny = [`, ""},
		{"firejail", "noexec /tmp\n", "1: noexec /tmp: files can be executed", ""},
		{"firejail", "read-only ${PATH}/x\n", "1: read-only ${PATH}/x: what it expands to is not known", ""},
		{"firejail", "private\n", "rox", `"~"`},
		{"firejail", "blacklist ${HOME}/.ssh\n", `"~/.ssh"`, ""},
		{"firejail", "noblacklist ${HOME}/.ssh\nblacklist ${HOME}/.ssh\n", "denials always win", `path = "~/.ssh"`},
		{"codex", "[shell_environment_policy]\ninherit = 'all'\ninclude_only = ['PATH']", `mode = "vars"`, "sanitized"},
		{"codex", "[shell_environment_policy.set]\nA = 'a$b'\nB = '${A}'", `A = "a$b"`, ""},
		{"codex", "[[profiles]]\nports = [1]", "allow = false", ""},
		{"firejail", "protocol unix,inet\n", "rox", "allow ="},
		{"firejail", "protocol unix,bluetooth\n", "allow = false", ""},
	} {
		r, err := imports.Read(tt.format, "f", []byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		var b bytes.Buffer
		if err := r.Policy.EncodeTOML(&b); err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
		toml := b.String()
		for _, l := range r.Left {
			b.WriteString(l + "\n")
		}
		if !strings.Contains(b.String(), tt.want) || tt.never != "" && strings.Contains(toml, tt.never) {
			t.Errorf("%s: want %q and not %q in\n%s", tt.text, tt.want, tt.never, b.String())
		}
	}
}

// TestHosts: a list of domains never becomes an open network, whatever is in it.
func TestHosts(t *testing.T) {
	const codex = "sandbox_mode = 'workspace-write'\nsandbox_workspace_write.network_access = "
	for _, tt := range []struct{ name, text, hosts string }{
		{"x.json", `{"network": {"allowedDomains": ["a.example", "a.example:22"]}}`, "[a.example a.example:22]"},
		{"x.json", `{"network": {"allowedDomains": []}}`, "none"},
		{"x.json", `{"network": {"allowedDomains": ["build"]}}`, "none"},
		{"x.json", `{"network": {"deniedDomains": ["a.example"]}}`, "none"},
		{"x.toml", codex + "true\npermissions.network.allowed_domains = ['a.example']", "[a.example]"},
		{"x.toml", codex + "true\nnetwork_proxy.policy.allowed_domains = ['a.example']", "[a.example]"},
		{"x.toml", codex + "true\npermissions.network.allowed_domains = []", "[]"},
		{"x.toml", codex + "true\npermissions.network.allowed_domains = ['**.x.example']", "[]"},
		{"x.toml", codex + "false\npermissions.network.allowed_domains = ['a.example']", "none"},
		{"x.toml", "sandbox_mode = 'read-only'\npermissions.network.allowed_domains = ['a.example']", "none"},
	} {
		r, err := imports.Read("", tt.name, []byte(tt.text))
		if err != nil {
			t.Fatalf("%s: %v", tt.text, err)
		}
		n := r.Policy.Net
		var rules []string
		for _, h := range n.Hosts {
			rules = append(rules, h.Rule)
		}
		got := fmt.Sprint(rules)
		if n.Hosts == nil && n.Allow.Value == "false" {
			got = "none"
		}
		if got != tt.hosts || n.DenyHosts != nil {
			t.Errorf("%s: %s, %+v, want %s", tt.text, got, n, tt.hosts)
		}
	}
}

func TestBad(t *testing.T) {
	for _, tt := range []struct{ format, text, want string }{
		{"srt", `{"filesystem": {`, "f: as srt: hujson: line 1, column 17"},
		{"srt", `[]`, "f: as srt: "},
		{"srt", `null`, "no settings of a sandbox"},
		{"srt", `{"filesystem": {"allowWrite": [1, ""]}}`, "filesystem.allowWrite: strings are needed"},
		{"srt", `{/*`, "f: as srt: "},
		{"srt", `{"a": "\`, "f: as srt: "},
		{"zed", `{"theme": "x"}`, "no settings of a sandbox"},
		{"zed", `{"theme": "x"} /* "sandbox" */`, "no settings of a sandbox"},
		{"codex", "sandbox_mode = 'wide'", `sandbox_mode: unknown value "wide"`},
		{"codex", "[shell_environment_policy]\ninherit = 'all - the'\n'exclude no' = 'x'", ""},
		{"codex", "= 1", "f: as codex: "},
		{"landrun", "ls", "no landrun command"},
		{"landrun", "landrun --ro", "flag needs an argument: -ro"},
		{"landrun", "landrun --unrestricted-network=no ls", `invalid boolean value "no" for -unrestricted-network`},
		{"landrun", "landrun --other x ls", "flag provided but not defined: -other"},
		{"landrun", "landrun --ro '", "without closing quote"},
		{"landrun", "landrun --connect-tcp 70000 ls", `--connect-tcp: "70000": a port is a number from 1 to 65535`},
		{"landrun", "landrun --ro /x{a,b} ${y:-z} ls", ""},
		{"firejail", "whitelist\n", "1: whitelist: strings are needed"},
		{"", "", "f: unknown format: must be one of codex, firejail, zed, srt, landrun"},
		{"what", "", "unknown format"},
	} {
		r, err := imports.Read(tt.format, "f", []byte(tt.text))
		if (r == nil) == (err == nil) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s %s: %v, want %q", tt.format, tt.text, err, tt.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*")
	for _, file := range files {
		data, _ := os.ReadFile(file)
		for i := range imports.Formats() {
			f.Add(i, data)
		}
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		r, err := imports.Read(imports.Formats()[uint(i)%5], "f", data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if r.Policy.EncodeTOML(&b) == nil {
			if p, err := policy.Decode("f", b.Bytes()); err != nil || p.Hash() != r.Policy.Hash() {
				t.Errorf("not read back: %v", err)
			}
		}
	})
}
