package policy

import (
	"strings"
	"testing"
)

// TestHash checks what makes a difference and what does not.
func TestHash(t *testing.T) {
	a := mustTOML(t, "[fs]\nro = ['/a', '/b', '/a']\n[env]\nset = {X = '1'}\n[linux]\n")
	b := mustTOML(t, "env.set.X = '1'\nfs.ro = [\n'/b', '/a']")
	if a.Hash() != b.Hash() || len(a.Hash()) != 64 {
		t.Errorf("%q\n%q", a.statements(""), b.statements(""))
	}
	seen := map[string]string{}
	for _, toml := range []string{
		"", "fs.ro = ['/a']", "fs.rox = ['/a']", "fs.rw = ['/a']", "fs.rw_noexec = ['/a']", "fs.deny = ['/a']", "fs.ro = [{path = '/a', optional = true}]",
		"fs.ro = [{path = '/a', create = true}]", "linux.fs.ro = ['/a']", "macos.fs.ro = ['/a']", "fs.system.executable = []", "fs.system.executable = ['/a']",
		"fs.system.read_only = ['/a']", "net.allow = true", "net.allow = false", "net.connect_tcp = []", "net.bind_tcp = []", "net.connect_tcp = [1]", "net.bind_tcp = [1]",
		"net.unix = ['/a']", "env.mode = 'vars'", "env.allow = ['A']", "env.set.A = ''", "env.set.A = '1'", "limits.timeout = '0'", "limits.timeout = '1s'",
		"limits.max_output = 0", "presets = ['go']", "fs.ro = ['/a\"', '/b']", "fs.ro = ['/a\" ro \"/b']",
	} {
		h := mustTOML(t, toml).Hash()
		if old, ok := seen[h]; ok {
			t.Errorf("%q and %q have one hash", old, toml)
		}
		seen[h] = toml
	}
}

// TestHashData: a preset's rule that forbids links has another hash.
func TestHashData(t *testing.T) {
	data := rules(Read|Write, "/a")
	data.FS.Rules[0].Data = true
	if data.Hash() == rules(Read|Write, "/a").Hash() || data.Hash() == (&Policy{}).Hash() {
		t.Error("data has the hash of something else")
	}
}

func TestEncodeText(t *testing.T) {
	var b strings.Builder
	p := Merge(mustTOML(t, fullTOML), &Policy{FS: FS{Rules: []Rule{{Path: "/opt", Access: Read, Origin: Origin{Source: "--ro\nx"}}}}})
	if err := p.EncodeTOML(&b); err != nil {
		t.Fatal(err)
	}
	const want = `[fs]
ro = [
  "~/.config/git",  # p.toml:3:7
  "/opt",  # --ro?x
]
`
	if !strings.Contains(b.String(), want) {
		t.Errorf("got\n%s\nwithout\n%s", b.String(), want)
	}
	for _, bad := range []*Policy{
		rules(Read, "/a\xff"), rules(Read, ""), rules(Write, "/a"), {FS: FS{Deny: []Named{{Value: "["}}}}, {Env: Env{Set: []Named{{Name: "A", Value: "\xff"}}}},
		{Linux: rules(Read, "")}, {Env: Env{Mode: Named{Value: "x"}}}, {Presets: []Named{{Value: "X"}}}, {Net: Net{Unix: []Named{{}}}},
	} {
		if err := bad.EncodeTOML(&b); err == nil {
			t.Errorf("%+v is written", bad)
		}
		if err := bad.EncodeJSON(&b); err == nil {
			t.Errorf("%+v is written", bad)
		}
	}
}
