package policy

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMergeKeeps checks that merging loses no rule, denial, port or name, keeps order and origins,
// lets later single values win, and does not change its arguments.
func TestMergeKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := DrawPolicy(t, true), DrawPolicy(t, true)
		aHash, bHash := a.Hash(), b.Hash()
		m := Merge(a, nil, b)
		if !slices.Equal(m.FS.Rules, slices.Concat(a.FS.Rules, b.FS.Rules)) ||
			!slices.Equal(m.FS.Deny, slices.Concat(a.FS.Deny, b.FS.Deny)) ||
			!slices.Equal(m.Net.ConnectTCP, slices.Concat(a.Net.ConnectTCP, b.Net.ConnectTCP)) ||
			!slices.Equal(m.Net.BindTCP, slices.Concat(a.Net.BindTCP, b.Net.BindTCP)) ||
			!slices.Equal(m.Net.Hosts, slices.Concat(a.Net.Hosts, b.Net.Hosts)) ||
			!slices.Equal(m.Net.DenyHosts, slices.Concat(a.Net.DenyHosts, b.Net.DenyHosts)) ||
			!slices.Equal(m.Net.Unix, slices.Concat(a.Net.Unix, b.Net.Unix)) ||
			!slices.Equal(m.Env.Allow, slices.Concat(a.Env.Allow, b.Env.Allow)) ||
			!slices.Equal(m.Env.Set, slices.Concat(a.Env.Set, b.Env.Set)) ||
			!slices.Equal(m.Presets, slices.Concat(a.Presets, b.Presets)) {
			t.Fatalf("merging lost something:\n%+v\n%+v\n%+v", a, b, m)
		}
		if (m.Net.ConnectTCP == nil) != (a.Net.ConnectTCP == nil && b.Net.ConnectTCP == nil) {
			t.Fatal("whether ports were listed at all was lost")
		}
		if (m.Net.Hosts == nil) != (a.Net.Hosts == nil && b.Net.Hosts == nil) {
			t.Fatal("whether hosts were listed at all was lost")
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
		for i, c := range m.FS.System.Categories() {
			want := *a.FS.System.Categories()[i].Rules
			if later := *b.FS.System.Categories()[i].Rules; later != nil {
				want = later
			}
			if !slices.Equal(*c.Rules, want) || (*c.Rules == nil) != (want == nil) {
				t.Fatalf("category %s is %v, want %v", c.key, *c.Rules, want)
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
		for _, c := range m.FS.System.Categories() {
			for i := range *c.Rules {
				(*c.Rules)[i].Path = "changed"
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
		a, b := DrawPolicy(t, true), DrawPolicy(t, true)
		for _, os := range []string{"linux", "macos"} {
			first, later, got := a.On(os), b.On(os), Merge(a, b).On(os)
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
			for i, c := range got.FS.System.Categories() {
				want := *first.FS.System.Categories()[i].Rules
				if list := *later.FS.System.Categories()[i].Rules; list != nil {
					want = list
				}
				if !slices.Equal(*c.Rules, want) {
					t.Fatalf("%s: %v, want %v", c.key, *c.Rules, want)
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
		a, b, c := DrawPolicy(t, true), DrawPolicy(t, true), DrawPolicy(t, true)
		all := Merge(a, b, c)
		for _, os := range []string{"linux", "macos"} {
			want := all.On(os).Hash()
			if Merge(Merge(a, b), c).On(os).Hash() != want || Merge(a, Merge(b, c)).On(os).Hash() != want {
				t.Fatalf("on %s:\n%q\n%q", os, all.On(os).statements(""), Merge(a, Merge(b, c)).On(os).statements(""))
			}
		}
	})
}

// TestEncodeRoundTrip checks that a written policy means the same when it is read, in both formats.
func TestEncodeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DrawPolicy(t, true)
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
