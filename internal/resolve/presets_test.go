package resolve

import (
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/policy"
)

// TestPresetsOutside requires an answer, for every path that a preset makes writable, to what
// programs outside do with it, and checks that no answer is stale.
func TestPresetsOutside(t *testing.T) {
	writable := make(map[string]bool)
	for _, info := range presets.All() {
		p, err := policy.Preset(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range partsOf(p) {
			for _, r := range part.FS.Rules {
				if r.Access&policy.Write == 0 {
					continue
				}
				writable[r.Path] = true
				if o := outsideOf(r.Path); o == nil || o.trust == "" {
					t.Errorf("%s: %s: what do programs outside read, execute or trust of it, and when? (presets_outside_test.go)", info.Name, r.Path)
				}
			}
		}
	}
	for _, o := range outsideTable() {
		for _, q := range o.paths {
			if !writable[q] {
				t.Errorf("%s has an answer, and no preset makes it writable", q)
			}
		}
	}
}

// TestOwnFlags uses the flags of the table that give a command its own caches: then the shared
// cache is not writable, and its own is.
func TestOwnFlags(t *testing.T) {
	for _, o := range outsideTable() {
		_, flag, ok := strings.Cut(o.own, `--env `)
		if !ok {
			continue
		}
		flag, deny, _ := strings.Cut(flag, " --deny ")
		name, value, _ := strings.Cut(flag, "=")
		h, all := homeWithEverything(t)
		user := &policy.Policy{}
		user.FS.Rules = []policy.Rule{{Path: ".", Access: policy.Read | policy.Write | policy.Exec, Origin: policy.Origin{Source: "--rw"}}}
		control, err := Policy(policy.Merge(all, user), h)
		if err != nil {
			t.Fatal(err)
		}
		value = strings.ReplaceAll(strings.Trim(value, `"`), "$PWD", h.Dir)
		user.Env.Set = []policy.Named{{Name: name, Value: value, Origin: policy.Origin{Source: "--env"}}}
		if deny != "" {
			user.FS.Deny = []policy.Named{{Value: deny, Origin: policy.Origin{Source: "--deny"}}}
		}
		r, err := Policy(policy.Merge(all, user), h)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range o.paths {
			shared := (&view{Host: h}).expanded(q)
			if strings.Contains(shared, "/Library/") {
				continue
			}
			if !control.Allowed(shared, policy.Write).Allowed {
				t.Errorf("control: %s is not writable", shared)
			}
			if v := r.Allowed(shared, policy.Write); v.Allowed {
				t.Errorf("%s: %s is writable all the same: %s", o.own, shared, v.Reason)
			}
		}
		if !slices.Contains(r.Env, name+"="+value) {
			t.Errorf("%s: %v", o.own, r.Env)
		}
	}
}

func TestDefaults(t *testing.T) {
	h := &host.Host{Home: "/h", Dir: "/w", Env: []string{"CARGO_HOME=/data/cargo/", "GOPATH=/a/go:/b/go", "GOCACHE=off", "EMPTY=", "REL=x/y", "ROOT=//", "D=$D~"}}
	for in, want := range map[string]string{
		"${CARGO_HOME:-~/.cargo}/bin":            "/data/cargo/bin",
		"${RUSTUP_HOME:-~/.rustup}/toolchains":   "/h/.rustup/toolchains",
		"${GOMODCACHE:-${GOPATH:-~/go}/pkg/mod}": "/a/go/pkg/mod",
		"${GOCACHE:-${X:-~/.cache}/go-build}":    "/h/.cache/go-build",
		"${EMPTY:-~}/x":                          "/h/x",
		"${REL:-/d}":                             "/d",
		"${ROOT:-/d}":                            "/d",
		"~/.m2":                                  "/h/.m2",
		"$HOME/x":                                "/h/x",
		"${HOME}/x":                              "/h/x",
		"a${B:-b}c${D:-d}e":                      "/w/abcde",
		"${A:-${B:-${C:-c}}}":                    "/w/c",
		"${D}/$$":                                "/w/$D~/$",
		"${A:-":                                  "",
		"$A":                                     "",
	} {
		if got := (&view{Host: *h}).expanded(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
