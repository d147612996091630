package policy

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// checkDecoded checks what is true for every decoder and every input: the policy is nil if and only
// if there is an error, errors have places in the file, and what was read can be written and read
// again.
func checkDecoded(t *testing.T, data []byte, p *Policy, err error) {
	if (p == nil) != (err != nil) {
		t.Fatalf("policy %v, error %v", p, err)
	}
	if err != nil {
		var es Errors
		if !errors.As(err, &es) || len(es) == 0 {
			t.Fatalf("%T is not Errors", err)
		}
		lines := bytes.Count(data, []byte("\n")) + 1
		for _, e := range es {
			if e.Code != CodeMore && e.Code != CodeLimit && (e.Origin.Line < 1 || e.Origin.Line > lines || e.Origin.Column < 1) {
				t.Fatalf("%v lies outside %d lines", e, lines)
			}
		}
		return
	}
	var b bytes.Buffer
	if err := p.EncodeTOML(&b); err != nil {
		t.Fatalf("what was read cannot be written: %v", err)
	}
	again, err := Decode("p.toml", b.Bytes())
	if err != nil || again.Hash() != p.Hash() {
		t.Fatalf("%v after writing and reading:\n%q\n%q", err, p.statements(""), again.statements(""))
	}
}

func FuzzDecodeTOML(f *testing.F) {
	f.Add([]byte(fullTOML))
	for _, s := range []string{
		"", "fs.ro = [", "[fs]\n[fs]\n", "[[fs.ro]]\npath='/'\noptional=true\n[[fs.ro]]\npath='.'\n", "a.b = 1\n[a]\n", "x = {a.b = 1, a = 2}",
		"net.connect_tcp = [0x1F, 1_000, 0o17, 0b1, +5]", "env.set = { 'ü' = \"\"\"\nx\\u0007\"\"\" }", "limits.timeout = '1e3s'", "fs.deny = ['**/x', '[!a]']",
		"net.hosts = ['*.a.example', { host = \"b\\u002eexample:22\", private = true }, \"\"\"\nc.*\"\"\"]\nnet.deny_hosts = ['x.a.example']\nnet.deny = 'error'",
		"[linux]\nfs.ro = ['/']\n[macos.fs.system]\nread_only = []\n", "\r\n[fs]\r\nro = ['/']", "\xef\xbb\xbf[fs]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode("p.toml", data)
		checkDecoded(t, data, p, err)
		// Nothing may be accepted here that is not TOML for other programs.
		var any map[string]any
		if terr := toml.Unmarshal(data, &any); err == nil && terr != nil {
			t.Fatalf("read what is no TOML: %v", terr)
		}
	})
}

func FuzzDecodeJSON(f *testing.F) {
	f.Add([]byte(fullJSON))
	for _, s := range []string{
		"", "{}", "[]", `{"fs":{"ro":["/"],"ro":[]}}`, `{"net":{"connect_tcp":[1e2, -0, 443]}}`, `{"env":{"set":{"A":"\u0000","B":"\ud800"}}}`,
		`{"fs":{"ro":[{"path":"/","optional":true}]}}` + "\n", `{"presets":[[[[{}]]]]}`, `{"net":{"hosts":["a.example",{"host":"*.b\u002eexample","ech":true}],"deny_hosts":["c.*"]}}`, "{\"fs\":\n{\"rw\" : [ \".\" , 3 ]}}", `nul`, `{"a":1}{`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode("p.json", data)
		checkDecoded(t, data, p, err)
	})
}
