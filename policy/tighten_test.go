package policy

import (
	"testing"
)

func TestTightensTable(t *testing.T) {
	base := mustTOML(t, "limits.timeout = '1m'\nenv.mode = 'sanitized'")
	for toml, want := range map[string]bool{
		"":                              true,
		"fs.deny = ['x']":               true,
		"net.allow = false":             true,
		"net.connect_tcp = []":          true,
		"fs.system.executable = []":     true,
		"limits.timeout = '1m'":         true,
		"limits.timeout = '1s'":         true,
		"limits.max_output = 5":         true,
		"env.mode = 'scrubbed'":         true,
		"env.mode = 'vars'":             true,
		"linux.fs.deny = ['x']":         true,
		"net.allow = true":              false,
		"net.connect_tcp = [443]":       false,
		"net.unix = ['/x']":             false,
		"fs.ro = ['/x']":                false,
		"fs.system.executable = ['/x']": false,
		"presets = ['go']":              false,
		"limits.timeout = '2m'":         false,
		"limits.timeout = '0'":          false,
		"env.mode = 'inherit'":          false,
		"env.allow = ['A']":             false,
		"env.set.PATH = '.'":            false,
		"macos.fs.ro = ['/x']":          false,
		"linux.limits.timeout = '2m'":   false,
		"linux.net.allow = true":        false,
	} {
		if ok, wider := mustTOML(t, toml).OnlyTightens(base); ok != want {
			t.Errorf("%s: %v, %v", toml, ok, wider)
		}
	}
	try := mustTOML(t, "fs.writes = 'try'")
	if ok, wider := try.OnlyTightens(base); !ok {
		t.Errorf("a layer: %v", wider)
	}
	direct := mustTOML(t, "fs.writes = 'direct'")
	if ok, wider := direct.OnlyTightens(base); !ok {
		t.Errorf("no layer, as before: %v", wider)
	}
	if ok, wider := direct.OnlyTightens(try); ok || wider[0].Key != "fs.writes" {
		t.Errorf("no layer any more: %v", wider)
	}
	if ok, wider := mustTOML(t, "linux.fs.writes = 'direct'").OnlyTightens(try); ok {
		t.Errorf("no layer any more on Linux: %v", wider)
	}
	if ok, wider := mustTOML(t, "fs.ro = ['/a',\n'/b']").OnlyTightens(nil); ok || len(wider) != 2 || wider[1].Origin.Line != 2 {
		t.Errorf("%v, %v", ok, wider)
	}
}
