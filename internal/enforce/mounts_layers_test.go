package enforce

import (
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestLayers: which writable directories get a layer, which of Landlock's rules are made on the files
// of an overlay, and why there can be none.
func TestLayers(t *testing.T) {
	const state = "/home/u/.local/state/zsbx"
	h := treeHost(map[string]string{"/w/": "", "/w/.git/": "", "/w/.git/config": "", "/v/": "", "/file": "", "/cache/": "", state + "/": ""})
	for _, tt := range []struct {
		name   string
		trees  []string
		change func(*Caps, *Options)
		want   string // the layers
		why    string // of the gap
	}{
		{"one", []string{"/w"}, nil, "/w", ""},
		{"two", []string{"/w", "/v", "/w/.git"}, nil, "/v /w", ""},
		{"a file", []string{"/w", "/file"}, nil, "", "/file is a file"},
		{"all", []string{"/"}, nil, "", "all of / is writable"},
		{"zsbx's own", []string{"/home/u"}, nil, "", "the two can't overlap"},
		{"no state", []string{"/w"}, func(_ *Caps, o *Options) { o.Try.None = "no place for layers" }, "", "no place for layers"},
		{"no overlay", []string{"/w"}, func(c *Caps, _ *Options) { c.TryReason = "refused" }, "", "refused"},
		{"no namespace", []string{"/w"}, func(c *Caps, _ *Options) { c.MountNS = false }, "", "no mount namespace"},
		{"no Landlock", []string{"/w"}, func(c *Caps, _ *Options) { c.Landlock = 0 }, "", "without Landlock"},
		{"nothing else needs a namespace", []string{"/w"}, func(c *Caps, o *Options) {
			c.TryReason = "refused"
			o.Accepted = []string{GapProtect, GapMetadata, GapIPC, GapTerminals}
		}, "", "refused"},
	} {
		r := asked(h, "/w", tt.trees)
		r.Writes.Value = "try"
		caps := canMount()
		caps.Privileged = true
		opts := Options{Try: mounts.Try{State: state + "/try"}}
		if tt.change != nil {
			tt.change(&caps, &opts)
		}
		p := NewPlan(r, caps, h, opts)
		var layers []string
		for _, l := range p.Layered() {
			layers = append(layers, l.Path)
		}
		if got := strings.Join(layers, " "); got != tt.want {
			t.Errorf("%s: layers %q, want %q", tt.name, got, tt.want)
		}
		i := slices.IndexFunc(p.Gaps, func(g Gap) bool { return g.Name == GapTry })
		if (i >= 0) != (tt.why != "") || i >= 0 && (!strings.Contains(p.Gaps[i].Why, tt.why) || p.Gaps[i].Kind != Core) {
			t.Errorf("%s: gaps %v, want one with %q", tt.name, p.Gaps, tt.why)
		}
		if p.Landlock == nil {
			continue
		}
		for _, rule := range p.Landlock.Paths {
			if in := p.Mounts.Layered(rule.Path); rule.Overlay != in {
				t.Errorf("%s: the rule for %s is made late: %v", tt.name, rule.Path, rule.Overlay)
			}
		}
	}
}

// TestLayersOfCaches: a preset's cache has a layer only if that is asked for, and the baseline's
// directories never have one.
func TestLayersOfCaches(t *testing.T) {
	h := treeHost(map[string]string{"/w/": "", "/cache/": "", "/dev/shm/": ""})
	for all, want := range map[bool]string{false: "/w", true: "/cache /w"} {
		r := asked(h, "/w", []string{"/w", "/cache", "/dev/shm"})
		r.Writes.Value = "try"
		for i := range r.Paths {
			switch r.Paths[i].Path {
			case "/cache":
				r.Paths[i].Rule.Origin = policy.Origin{Source: "preset go"}
			case "/dev/shm":
				r.Paths[i].Rule.Origin = policy.Origin{Source: "baseline"}
			}
		}
		var layers []string
		for _, l := range NewPlan(r, canMount(), h, Options{Try: mounts.Try{State: "/state/try", All: all}}).Layered() {
			layers = append(layers, l.Path)
		}
		if got := strings.Join(layers, " "); got != want {
			t.Errorf("%v: layers %q, want %q", all, got, want)
		}
	}
}

// TestOpenedInLayers: with TryProtected the command may write protected files in layers, but not the
// caller's, and they are told. The control: without it they are covered.
func TestOpenedInLayers(t *testing.T) {
	h := treeHost(map[string]string{"/w/": "", "/w/.git/": "", "/w/.git/HEAD": "", "/w/.git/config": "", "/w/policy.toml": ""})
	for _, open := range []bool{false, true} {
		r := asked(h, "/w", []string{"/w"})
		r.Writes.Value = "try"
		p := NewPlan(r, canMount(), h, Options{Try: mounts.Try{State: "/state/try", Protected: open}, Protect: []string{"/w/policy.toml"}})
		covered := p.Covered()["protect"]
		if slices.Contains(covered, "/w/.git/config") == open || !slices.Contains(covered, "/w/policy.toml") {
			t.Errorf("%v: covered are %q", open, covered)
		}
		if slices.Contains(p.Opened(), "/w/.git/config") != open || slices.Contains(p.Opened(), "/w/policy.toml") {
			t.Errorf("%v: opened are %q", open, p.Opened())
		}
	}
}

// TestOpenedBySettings: what is only compared at the end is told, too, but not a git directory that may be
// made, nor the index.
func TestOpenedBySettings(t *testing.T) {
	h := treeHost(map[string]string{
		"/w/": "", "/w/.git/": "", "/w/.git/HEAD": "", "/w/.git/index": "", "/w/.husky/": "",
		"/w/.git/config": "[core]\nhooksPath = .husky\n", "/w/sub/": "", "/x/": "",
	})
	r := asked(h, "/w", []string{"/w", "/x"})
	r.Writes.Value = "try"
	opened := NewPlan(r, canMount(), h, Options{Try: mounts.Try{State: "/state/try"}}).Opened()
	for p, want := range map[string]bool{
		"/w/.husky": true, "/w/.git/rebase-merge": true, "/w/.git/config": false, "/w/.git/index": false, "/x/.git": false,
	} {
		if slices.Contains(opened, p) != want {
			t.Errorf("%s: %v, of %q", p, !want, opened)
		}
	}
}

// TestDeniedInLayers: what is denied and is not there yet is told, with its name as a pattern.
func TestDeniedInLayers(t *testing.T) {
	h := treeHost(map[string]string{"/w/": "", "/w/there": "", "/w/a.pem": ""})
	r := asked(h, "/w", []string{"/w"})
	r.Writes.Value = "try"
	r.Deny = []resolve.DenyPath{{Pattern: "/w/there"}, {Pattern: "/w/later[1]"}, {Pattern: "/w/*.pem", Glob: true}}
	got := NewPlan(r, canMount(), h, Options{Try: mounts.Try{State: "/state/try"}}).Denied()
	slices.Sort(got)
	if want := []string{"/w/*.pem", glob.QuoteMeta("/w/later[1]")}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
