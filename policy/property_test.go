package policy

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMergeKeeps checks that merging loses no rule, denial, port or name, keeps order and origins,
// lets later single values win, and does not change its arguments.
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
			if c.later.Net.Allow.Value != "" {
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
		for _, c := range m.FS.System.categories() {
			for i := range *c.rules {
				(*c.rules)[i].Path = "changed"
			}
		}
		if a.Hash() != aHash || b.Hash() != bHash {
			t.Fatal("merging changed its arguments, or shares memory with them")
		}
	})
}

// TestMergeOverrides checks for each system that the later policy's single values win, wherever
// they are in the two files.
func TestMergeOverrides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPolicy(t, true), drawPolicy(t, true)
		for _, os := range []string{"linux", "macos"} {
			first, later, got := a.on(os), b.on(os), Merge(a, b).on(os)
			if want := cmp.Or(later.Env.Mode.Value, first.Env.Mode.Value); got.Env.Mode.Value != want {
				t.Fatalf("mode %s, want %s", got.Env.Mode.Value, want)
			}
			want := first.Net.Allow
			if later.Net.Allow.Value != "" {
				want = later.Net.Allow
			}
			if !reflect.DeepEqual(got.Net.Allow, want) {
				t.Fatalf("net.allow %v, want %v", got.Net.Allow, want)
			}
			limits := first.Limits
			if later.Limits.Timeout.From != (Origin{}) {
				limits.Timeout = later.Limits.Timeout
			}
			if later.Limits.MaxOutput.From != (Origin{}) {
				limits.MaxOutput = later.Limits.MaxOutput
			}
			if got.Limits.Timeout != limits.Timeout || got.Limits.MaxOutput != limits.MaxOutput {
				t.Fatalf("limits %+v, want %+v", got.Limits, limits)
			}
			for i, c := range got.FS.System.categories() {
				want := *first.FS.System.categories()[i].rules
				if list := *later.FS.System.categories()[i].rules; list != nil {
					want = list
				}
				if !slices.Equal(*c.rules, want) {
					t.Fatalf("%s: %v, want %v", c.key, *c.rules, want)
				}
			}
			for _, v := range lastOfEach(later.Env.Set) {
				if i := slices.IndexFunc(lastOfEach(got.Env.Set), func(w Named) bool { return w.Name == v.Name && w.Value == v.Value }); i < 0 {
					t.Fatalf("%s is not %q: %v", v.Name, v.Value, got.Env.Set)
				}
			}
		}
	})
}

// TestMergeAssociates checks that the grouping in which policies are merged does not change what
// they mean on each system.
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

// TestEncodeRoundTrip checks that a written policy means the same when it is read, in both formats.
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
		fromTOML, err := Decode("p.toml", toml.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, toml.String())
		}
		fromJSON, err := Decode("p.json", json.Bytes())
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

// TestResolvedRoundTrip checks that a resolved policy, written and read again, resolves to the same
// on the same machine.
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
		all = append(all, fmt.Sprint(r.Limits.Timeout.Value))
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
		p, err := Decode("p.toml", b.Bytes())
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
