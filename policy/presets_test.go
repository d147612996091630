package policy

import (
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPresetFiles checks that the table and the embedded files name the same presets, that each
// file decodes, and that all rules are optional.
func TestPresetFiles(t *testing.T) {
	var files []string
	err := fs.WalkDir(presetFiles, ".", func(p string, d fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(d.Name(), ".txt"); ok {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, info := range Presets() {
		names = append(names, info.Name)
		if info.Description == "" || len(info.Commands)+len(info.Dirs) == 0 {
			t.Errorf("%s: no description or nothing to detect it by", info.Name)
		}
		p, err := Preset(info.Name)
		if err != nil {
			t.Errorf("Preset(%q): %v", info.Name, err)
			continue
		}
		for _, part := range p.parts() {
			for _, r := range part.FS.Rules {
				if !r.Optional || r.Origin.Source != "preset "+info.Name {
					t.Errorf("%s: rule %+v is not optional or has another origin", info.Name, r)
				}
			}
		}
	}
	if !slices.Equal(files, names) || !slices.IsSorted(names) {
		t.Errorf("files %v\ntable %v", files, names)
	}
}

// TestPresetCreate checks that only what is writable is made, and that paths, names and values are
// valid in a policy file.
func TestPresetCreate(t *testing.T) {
	for _, info := range Presets() {
		p, err := Preset(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range p.parts() {
			for _, r := range part.FS.Rules {
				if r.Create && r.Access&Write == 0 {
					t.Errorf("%s: %s is to be made, and is not writable", info.Name, r.Path)
				}
				if err := checkPath(r.Path); err != nil {
					t.Errorf("%s: %v", info.Name, err)
				}
			}
			for _, e := range part.FS.Cache {
				if err := checkPath(e.To); err != nil || !filepath.IsLocal(e.Name) {
					t.Errorf("%s: %+v: %v", info.Name, e, err)
				}
			}
			for _, c := range part.Closed {
				if err := checkPath(c.Path); err != nil || len(c.Commands) == 0 {
					t.Errorf("%s: %+v: %v", info.Name, c, err)
				}
			}
		}
		if err := p.EncodeTOML(io.Discard); err != nil {
			t.Error(err)
		}
		for _, s := range p.statements("") {
			if name := strings.TrimPrefix(strings.TrimPrefix(s, "linux "), "macos "); !strings.HasPrefix(name, "fs.r") && !strings.HasPrefix(name, "env.") && !strings.HasPrefix(name, "guard.") {
				t.Errorf("%s: no preset says %s", info.Name, s)
			}
		}
	}
}

// TestPresetsOutside requires an answer, for every path that a preset makes writable, to what
// programs outside do with it, and checks that no answer is stale.
func TestPresetsOutside(t *testing.T) {
	writable := make(map[string]bool)
	for _, info := range Presets() {
		p, err := Preset(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range p.parts() {
			for _, r := range part.FS.Rules {
				if r.Access&Write == 0 {
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
		user := &Policy{}
		user.FS.Rules = []Rule{{Path: ".", Access: Read | Write | Exec, Origin: Origin{Source: "--rw"}}}
		control, err := Merge(all, user).Resolve(h)
		if err != nil {
			t.Fatal(err)
		}
		value = strings.ReplaceAll(strings.Trim(value, `"`), "$PWD", h.Dir)
		user.Env.Set = []Named{{Name: name, Value: value, Origin: Origin{Source: "--env"}}}
		if deny != "" {
			user.FS.Deny = []Named{{Value: deny, Origin: Origin{Source: "--deny"}}}
		}
		r, err := Merge(all, user).Resolve(h)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range o.paths {
			shared := (&view{Host: h}).expanded(q)
			if strings.Contains(shared, "/Library/") {
				continue
			}
			if !control.Allowed(shared, Write).Allowed {
				t.Errorf("control: %s is not writable", shared)
			}
			if v := r.Allowed(shared, Write); v.Allowed {
				t.Errorf("%s: %s is writable all the same: %s", o.own, shared, v.Reason)
			}
		}
		if !slices.Contains(r.Env, name+"="+value) {
			t.Errorf("%s: %v", o.own, r.Env)
		}
	}
}

func TestUnknownPreset(t *testing.T) {
	for _, name := range []string{"", "cobol", "../policy", "rust.toml"} {
		p, err := Preset(name)
		if p != nil || err == nil {
			t.Errorf("Preset(%q) = %v, %v", name, p, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	h := &Host{Home: "/h", Dir: "/w", Env: []string{"CARGO_HOME=/data/cargo/", "GOPATH=/a/go:/b/go", "GOCACHE=off", "EMPTY=", "REL=x/y", "ROOT=//", "D=$D~"}}
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

func BenchmarkPreset(b *testing.B) {
	for _, info := range Presets() {
		b.Run(info.Name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Preset(info.Name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
