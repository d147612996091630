package policy

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAmend(t *testing.T) {
	add := mustTOML(t, "presets = [\"rust\"]\n[fs]\nrw = [\".\"]\nro = [{ path = \"~/x\" }, \"~/y\"]\n[net]\nunix = [\"/s\"]\n")
	for _, c := range []struct{ old, want string }{
		{"", "presets = [\"rust\"]\n\n[fs]\nrw = [\".\"]\nro = [\n  \"~/x\",\n  \"~/y\",\n]\n\n[net]\nunix = [\"/s\"]\n"},
		{"# mine\n[fs] # files\nro = [\"a\"] # why\nrw = [ # and\n  \"b\", # so\n]\n[net]\nallow = false\n",
			"presets = [\"rust\"]\n\n# mine\n[fs] # files\nro = [\"~/x\", \"~/y\", \"a\"] # why\nrw = [ # and\n  \".\",\n  \"b\", # so\n]\n[net]\nunix = [\"/s\"]\nallow = false\n"},
		{"presets = []\n[fs]\nrw = [\".\"]\n[linux.fs]\nro = [\"z\"]\n",
			"presets = [\"rust\"]\n[fs]\nro = [\n  \"~/x\",\n  \"~/y\",\n]\nrw = [\".\"]\n[linux.fs]\nro = [\"z\"]\n\n[net]\nunix = [\"/s\"]\n"},
	} {
		got, err := Amend("p.toml", []byte(c.old), add)
		if err != nil {
			t.Errorf("%q: %v", c.old, err)
		} else if g := string(got); g != c.want && strings.ReplaceAll(g, "\nro = [\n  \"~/x\",\n  \"~/y\",\n]\nrw = [\".\"]", "\nrw = [\".\"]\nro = [\n  \"~/x\",\n  \"~/y\",\n]") != c.want {
			t.Errorf("%q gives\n%s", c.old, got)
		}
	}
	for _, old := range []string{"fs = { ro = [\"a\"] }\n", "fs.ro = [\"a\"]\n"} {
		if _, err := Amend("p.toml", []byte(old), add); !errors.Is(err, ErrAmend) {
			t.Errorf("%q: %v", old, err)
		}
	}
	if _, err := Amend("p.toml", []byte("[fs\n"), add); err == nil {
		t.Error("a file with a mistake was added to")
	}
}

// TestAmendKeeps: whatever a file contains, the result means both, and each of its lines is still
// there, except those that were added to.
func TestAmendKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := DrawPolicy(t, true), DrawPolicy(t, true)
		add := &Policy{Presets: b.Presets, FS: FS{Rules: b.FS.Rules}, Net: Net{ConnectTCP: b.Net.ConnectTCP, Unix: b.Net.Unix}}
		var text bytes.Buffer
		if err := a.EncodeTOML(&text); err != nil {
			t.Fatal(err)
		}
		got, err := Amend("p.toml", text.Bytes(), add)
		if errors.Is(err, ErrAmend) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := Decode("p.toml", got)
		if err != nil || p.Hash() != Merge(a, add).Hash() {
			t.Fatalf("%v\n%s\nand\n%s", err, text.String(), got)
		}
	})
}
