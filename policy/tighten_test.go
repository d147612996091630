package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTightens checks the promise of OnlyTightens: merged over any base, such a policy gives no
// access, port or variable that the base did not give.
func TestTightens(t *testing.T) {
	h := tableHost(map[string]string{"/etc": "dir", "/usr/bin": "dir", "/home/u/x": "file", "/home/u/y": "dir", "/a$b": "dir", "/run/x": "socket", "/home/u/s": "socket", "/home/u/z": "dir", "/w/link": "-> /etc", "/ü \"q\" \\ '": "dir"})
	h.Env = append(h.Env, "A=a", "CARGO_X=1", "OTHER=1", "LD_PRELOAD=/x", "MY_TOKEN=1")
	tight := 0
	rapid.Check(t, func(t *rapid.T) {
		base, p := drawPolicy(t, true), drawPolicy(t, true)
		for _, b := range []*Policy{base, base.Linux, base.MacOS} {
			if b != nil && b.Net.Allow.Value != "" { // flags are merged later, and nothing overrides them
				b.Net.Allow.Origin = Origin{Source: "user.toml"}
			}
		}
		if rapid.Bool().Draw(t, "tame") { // most drawn policies widen
			deny, system, limits, mode, allow := p.FS.Deny, p.FS.System, p.Limits, p.Env.Mode, p.Net.Allow
			for _, c := range system.categories() {
				if *c.rules != nil {
					*c.rules = []Rule{}
				}
			}
			p = &Policy{FS: FS{Deny: deny, System: system}, Limits: limits, Env: Env{Mode: mode}, Net: Net{Allow: allow}, Guard: p.Guard, Audit: Audit{Required: p.Audit.Required}}
		}
		ok, wider := p.OnlyTightens(base)
		if ok != (len(wider) == 0) {
			t.Fatalf("%v, but %v", ok, wider)
		}
		if !ok {
			return
		}
		tight++
		before, err := base.Resolve(h)
		if err != nil {
			return
		}
		after, err := Merge(base, p).Resolve(h)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/", "/etc/x", "/usr/bin/ls", "/w", "/w/.env", "/home/u/x", "/home/u/y/z", "/a$b"} {
			for _, a := range []Access{Read, Write, Exec} {
				if after.Allowed(path, a).Allowed && !before.Allowed(path, a).Allowed {
					t.Fatalf("%s %s is allowed afterwards only", a, path)
				}
			}
		}
		for _, port := range append(portNumbers(base), 80) {
			if after.Connect(port).Allowed && !before.Connect(port).Allowed || after.Bind(port).Allowed && !before.Bind(port).Allowed {
				t.Fatalf("port %d is open afterwards only", port)
			}
		}
		for _, e := range after.Env {
			if !slices.Contains(before.Env, e) {
				t.Fatalf("%s is set afterwards only: %q", e, before.Env)
			}
		}
		if longer(after.Limits.Timeout.Value, before.Limits.Timeout.Value) || longer(after.Limits.MaxOutput.Value, before.Limits.MaxOutput.Value) {
			t.Fatal("the limits are higher afterwards")
		}
		for _, n := range base.GuardOn(h.OS).Lists {
			if !slices.Contains(Merge(base, p).GuardOn(h.OS).Lists, n) {
				t.Fatalf("the guard's list %s is off afterwards", n.Value)
			}
		}
		log, err := base.AuditLog(h)
		then, err2 := Merge(base, p).AuditLog(h)
		if err != nil || err2 != nil || log != nil && (then.Dir.Value != log.Dir.Value || then.Keep.Value != log.Keep.Value || log.Required.Value == "true" && then.Required.Value != "true") {
			t.Fatalf("the audit log is %+v, %v and then %+v, %v", log, err, then, err2)
		}
	})
	if tight == 0 && !testing.Short() { // of a few policies perhaps none tightens
		t.Error("no policy that tightens was drawn")
	}
}

func portNumbers(p *Policy) []uint16 {
	var all []uint16
	for _, list := range [][]Port{p.Net.ConnectTCP, p.Net.BindTCP} {
		for _, port := range list {
			all = append(all, port.Number)
		}
	}
	return all
}

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
	if ok, wider := mustTOML(t, "fs.ro = ['/a',\n'/b']").OnlyTightens(nil); ok || len(wider) != 2 || wider[1].Origin.Line != 2 {
		t.Errorf("%v, %v", ok, wider)
	}
}

// longer compares limits, of which 0 is no limit.
func longer(limit, than int64) bool { return than != 0 && (limit == 0 || limit > than) }
