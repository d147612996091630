package policy

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Generators of policies. Values are drawn from small sets, so that policies
// meet in names and paths.

func drawOrigin(t *rapid.T) Origin {
	return Origin{Source: rapid.SampledFrom([]string{"a.toml", "b.toml", "--rw", "preset x"}).Draw(t, "source"), Line: rapid.IntRange(0, 99).Draw(t, "line"), Column: 1}
}

func drawRules(t *rapid.T, label string, access ...Access) []Rule {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Rule {
		r := Rule{
			Path:     rapid.SampledFrom([]string{"/", "/etc", "/usr/bin", ".", "~/x", "cwd", "$HOME/y", "${X:-~/z}", "/ü \"q\" \\ '", "/a$$b", "link", "nope"}).Draw(t, "path"),
			Access:   rapid.SampledFrom(access).Draw(t, "access"),
			Optional: rapid.Bool().Draw(t, "optional"),
			Origin:   drawOrigin(t),
		}
		r.Create = r.Optional && rapid.Bool().Draw(t, "create")
		return r
	}), 0, 5).Draw(t, label)
}

func drawNamed(t *rapid.T, label string, values ...string) []Named {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Named {
		return Named{Value: rapid.SampledFrom(values).Draw(t, "value"), Origin: drawOrigin(t)}
	}), 0, 3).Draw(t, label)
}

func drawPorts(t *rapid.T, label string) []Port {
	if rapid.Bool().Draw(t, label+" given") {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Port {
			return Port{rapid.Uint16Range(1, 65535).Draw(t, "port"), drawOrigin(t)}
		}), 0, 3).Draw(t, label)
	}
	return nil
}

// drawPolicy draws a policy; deep says that it may have overrides.
func drawPolicy(t *rapid.T, deep bool) *Policy {
	p := &Policy{Presets: drawNamed(t, "presets", "rust", "python:tools")}
	p.FS.Rules = drawRules(t, "rules", Read, Read|Exec, Read|Write, Read|Write|Exec)
	for _, n := range drawNamed(t, "deny", "**/.env", ".git/hooks", "/etc/[a-z]?", `\[x`, "~/.ssh") {
		p.FS.Deny = append(p.FS.Deny, Deny{n.Value, n.Origin})
	}
	for _, c := range p.FS.System.categories() {
		if rapid.Bool().Draw(t, c.key) {
			*c.rules = drawRules(t, c.key+" rules", c.access)
		}
	}
	if rapid.Bool().Draw(t, "net") {
		p.Net.Allow = &Flag{rapid.Bool().Draw(t, "allow"), drawOrigin(t)}
	}
	p.Net.ConnectTCP, p.Net.BindTCP = drawPorts(t, "connect"), drawPorts(t, "bind")
	p.Net.Unix = drawNamed(t, "unix", "/run/x", "$HOME/s")
	for i := range p.Net.Unix {
		p.Net.Unix[i].Optional = rapid.Bool().Draw(t, "optional socket")
	}
	if p.Env.Mode = rapid.SampledFrom([]EnvMode{"", EnvScrubbed, EnvSanitized, EnvInherit, EnvVars}).Draw(t, "mode"); p.Env.Mode != "" {
		p.Env.From = drawOrigin(t)
	}
	p.Env.Allow = drawNamed(t, "env", "A", "CARGO_*", "LD_PRELOAD")
	for _, n := range drawNamed(t, "set", "A", "B", "npm_config_//x") {
		p.Env.Set = append(p.Env.Set, Var{n.Value, rapid.SampledFrom([]string{"", "1", "a\n\"b\"\\\t\u0085ü"}).Draw(t, "value"), n.Origin})
	}
	if rapid.Bool().Draw(t, "timeout") {
		p.Limits.Timeout, p.Limits.TimeoutFrom = rapid.SampledFrom([]time.Duration{0, time.Second, 90 * time.Minute}).Draw(t, "duration"), Origin{Source: "--timeout"}
	}
	if rapid.Bool().Draw(t, "output") {
		p.Limits.MaxOutput, p.Limits.MaxOutputFrom = rapid.Int64Range(0, 1<<40).Draw(t, "bytes"), Origin{Source: "--max-output"}
	}
	if deep && rapid.Bool().Draw(t, "linux") {
		p.Linux = drawPolicy(t, false)
	}
	if deep && rapid.Bool().Draw(t, "macos") {
		p.MacOS = drawPolicy(t, false)
	}
	return p
}

// TestMergeKeeps checks that merging loses no rule, no denial, no port and no
// name, keeps order and origins, lets the later scalar win, and leaves its
// arguments alone.
func TestMergeKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPolicy(t, true), drawPolicy(t, true)
		aHash, bHash := a.Hash(), b.Hash()
		m := Merge(a, nil, b)
		if !slices.Equal(m.FS.Rules, slices.Concat(a.FS.Rules, b.FS.Rules)) ||
			!slices.Equal(m.FS.Deny, slices.Concat(a.FS.Deny, b.FS.Deny)) ||
			!slices.Equal(m.Net.ConnectTCP, slices.Concat(a.Net.ConnectTCP, b.Net.ConnectTCP)) ||
			!slices.Equal(m.Net.BindTCP, slices.Concat(a.Net.BindTCP, b.Net.BindTCP)) ||
			!slices.Equal(m.Net.Unix, slices.Concat(a.Net.Unix, b.Net.Unix)) ||
			!slices.Equal(m.Env.Allow, slices.Concat(a.Env.Allow, b.Env.Allow)) ||
			!slices.Equal(m.Env.Set, slices.Concat(a.Env.Set, b.Env.Set)) ||
			!slices.Equal(m.Presets, slices.Concat(a.Presets, b.Presets)) {
			t.Fatalf("merging lost something:\n%+v\n%+v\n%+v", a, b, m)
		}
		if (m.Net.ConnectTCP == nil) != (a.Net.ConnectTCP == nil && b.Net.ConnectTCP == nil) {
			t.Fatal("whether ports were listed at all was lost")
		}
		for _, c := range []struct{ sum, first, later *Policy }{{m, a, b}} {
			want := c.first.Net.Allow
			if c.later.Net.Allow != nil {
				want = c.later.Net.Allow
			}
			if !reflect.DeepEqual(c.sum.Net.Allow, want) {
				t.Fatalf("net.allow is %v, want %v", c.sum.Net.Allow, want)
			}
		}
		for i, c := range m.FS.System.categories() {
			want := *a.FS.System.categories()[i].rules
			if later := *b.FS.System.categories()[i].rules; later != nil {
				want = later
			}
			if !slices.Equal(*c.rules, want) || (*c.rules == nil) != (want == nil) {
				t.Fatalf("category %s is %v, want %v", c.key, *c.rules, want)
			}
		}
		for _, os := range []func(*Policy) *Policy{func(p *Policy) *Policy { return p.Linux }, func(p *Policy) *Policy { return p.MacOS }} {
			var rules []Rule
			for _, p := range []*Policy{a, b} {
				if own := os(p); own != nil {
					rules = append(rules, own.FS.Rules...)
				}
			}
			if own := os(m); own == nil && rules != nil || own != nil && !slices.Equal(own.FS.Rules, rules) {
				t.Fatalf("merging lost a system's rules")
			}
		}
		for i := range m.FS.Rules {
			m.FS.Rules[i].Path = "changed"
		}
		if a.Hash() != aHash || b.Hash() != bHash {
			t.Fatal("merging changed its arguments, or shares memory with them")
		}
	})
}

// TestMergeAssociates checks that it does not matter in which steps policies
// are merged, for what they mean on each system.
func TestMergeAssociates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawPolicy(t, true), drawPolicy(t, true), drawPolicy(t, true)
		all := Merge(a, b, c)
		for _, os := range []string{"linux", "macos"} {
			want := all.on(os).Hash()
			if Merge(Merge(a, b), c).on(os).Hash() != want || Merge(a, Merge(b, c)).on(os).Hash() != want {
				t.Fatalf("on %s:\n%q\n%q", os, all.on(os).statements(""), Merge(a, Merge(b, c)).on(os).statements(""))
			}
		}
	})
}

// TestEncodeRoundTrip checks that what is written means the same when it is
// read, in both formats.
func TestEncodeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t, true)
		var toml, json bytes.Buffer
		if err := p.EncodeTOML(&toml); err != nil {
			t.Fatal(err)
		}
		if err := p.EncodeJSON(&json); err != nil {
			t.Fatal(err)
		}
		fromTOML, err := DecodeTOML("p.toml", bytes.NewReader(toml.Bytes()))
		if err != nil {
			t.Fatalf("%v\n%s", err, toml.String())
		}
		fromJSON, err := DecodeJSON("p.json", bytes.NewReader(json.Bytes()))
		if err != nil {
			t.Fatalf("%v\n%s", err, json.String())
		}
		if fromTOML.Hash() != p.Hash() || fromJSON.Hash() != p.Hash() {
			t.Fatalf("written %q\nTOML %q\nJSON %q", p.statements(""), fromTOML.statements(""), fromJSON.statements(""))
		}
		var again bytes.Buffer
		if err := fromTOML.EncodeJSON(&again); err != nil {
			t.Fatal(err)
		}
	})
}

// TestResolvedRoundTrip checks that a resolved policy that is written and
// read again resolves to the same on the same machine.
func TestResolvedRoundTrip(t *testing.T) {
	h := tableHost(map[string]string{
		"/etc": "dir", "/usr/bin": "dir", "/home/u/x": "file", "/home/u/y": "dir", "/home/u/z": "-> y", "/ü \"q\" \\ '": "dir",
		"/a$b": "dir", "/w/link": "-> /a$b", "/run/x": "socket", "/home/u/s": "socket", "/tmp/z": "dir",
	})
	h.Env = append(h.Env, "A=a", "CARGO_X=1", "OTHER=1", "LD_PRELOAD=/x")
	h.TempDir = "/tmp/z"
	facts := func(r *Resolved) []string {
		var all []string
		for _, p := range r.Paths {
			all = append(all, p.Access.String()+" "+p.Path)
		}
		for _, d := range r.Deny {
			all = append(all, "deny "+d.Pattern)
		}
		for _, p := range r.Net.Unix {
			all = append(all, "unix "+p.Path)
		}
		all = append(all, string(r.Net.Mode)+" "+ports(r.Net.ConnectTCP)+" "+ports(r.Net.BindTCP))
		all = append(all, r.Env...)
		all = append(all, r.Limits.Timeout.String())
		slices.Sort(all)
		return slices.Compact(all)
	}
	rapid.Check(t, func(t *rapid.T) {
		r, err := drawPolicy(t, true).Resolve(h)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := r.Policy().EncodeTOML(&b); err != nil {
			t.Fatal(err)
		}
		p, err := DecodeTOML("p.toml", &b)
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.Resolve(h)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := facts(r), facts(again); !slices.Equal(a, b) {
			t.Fatalf("first  %q\nagain  %q", a, b)
		}
	})
}

// TestTightens checks the promise of OnlyTightens: put over any base, such a
// policy gives no access, port or variable that the base did not give.
func TestTightens(t *testing.T) {
	h := tableHost(map[string]string{"/etc": "dir", "/usr/bin": "dir", "/home/u/x": "file", "/home/u/y": "dir", "/a$b": "dir", "/run/x": "socket", "/home/u/s": "socket", "/home/u/z": "dir", "/w/link": "-> /etc", "/ü \"q\" \\ '": "dir"})
	h.Env = append(h.Env, "A=a", "CARGO_X=1", "OTHER=1", "LD_PRELOAD=/x", "MY_TOKEN=1")
	tight := 0
	rapid.Check(t, func(t *rapid.T) {
		base, p := drawPolicy(t, true), drawPolicy(t, true)
		if rapid.Bool().Draw(t, "tame") { // most drawn policies widen
			deny, system, limits, mode, allow := p.FS.Deny, p.FS.System, p.Limits, p.Env.Mode, p.Net.Allow
			for _, c := range system.categories() {
				if *c.rules != nil {
					*c.rules = []Rule{}
				}
			}
			p = &Policy{FS: FS{Deny: deny, System: system}, Limits: limits, Env: Env{Mode: mode, From: p.Env.From}, Net: Net{Allow: allow}}
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
		if longer(int64(after.Limits.Timeout), int64(before.Limits.Timeout)) || longer(after.Limits.MaxOutput, before.Limits.MaxOutput) {
			t.Fatal("the limits are higher afterwards")
		}
	})
	if tight == 0 {
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
	if ok, wider := mustTOML(t, "fs.ro = ['/a',\n'/b']").OnlyTightens(nil); ok || len(wider) != 2 || wider[1].Line != 2 {
		t.Errorf("%v, %v", ok, wider)
	}
}

// TestHash pins what makes a difference and what does not.
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
		"limits.max_output = 0", "presets = ['a']", "fs.ro = ['/a\"', '/b']", "fs.ro = ['/a\" ro \"/b']",
	} {
		h := mustTOML(t, toml).Hash()
		if old, ok := seen[h]; ok {
			t.Errorf("%q and %q have one hash", old, toml)
		}
		seen[h] = toml
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
		rules(Read, "/a\xff"), rules(Read, ""), rules(Write, "/a"), {FS: FS{Deny: []Deny{{Pattern: "["}}}}, {Env: Env{Set: []Var{{Name: "A", Value: "\xff"}}}},
		{Linux: rules(Read, "")}, {Env: Env{Mode: "x"}}, {Presets: []Named{{Value: "X"}}}, {Net: Net{Unix: []Named{{}}}},
	} {
		if err := bad.EncodeTOML(&b); err == nil {
			t.Errorf("%+v is written", bad)
		}
		if err := bad.EncodeJSON(&b); err == nil {
			t.Errorf("%+v is written", bad)
		}
	}
}
