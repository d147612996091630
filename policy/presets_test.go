package policy

import (
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/syntax"
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
	for _, info := range presets.All() {
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
	for _, info := range presets.All() {
		p, err := Preset(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range p.parts() {
			for _, r := range part.FS.Rules {
				if r.Create && r.Access&Write == 0 {
					t.Errorf("%s: %s is to be made, and is not writable", info.Name, r.Path)
				}
				if err := syntax.CheckPath(r.Path); err != nil {
					t.Errorf("%s: %v", info.Name, err)
				}
			}
			for _, e := range part.FS.Cache {
				if err := syntax.CheckPath(e.To); err != nil || !filepath.IsLocal(e.Name) {
					t.Errorf("%s: %+v: %v", info.Name, e, err)
				}
			}
			for _, c := range part.Closed {
				if err := syntax.CheckPath(c.Path); err != nil || len(c.Commands) == 0 {
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

func TestUnknownPreset(t *testing.T) {
	for _, name := range []string{"", "cobol", "../policy", "rust.toml"} {
		p, err := Preset(name)
		if p != nil || err == nil {
			t.Errorf("Preset(%q) = %v, %v", name, p, err)
		}
	}
}

func BenchmarkPreset(b *testing.B) {
	for _, info := range presets.All() {
		b.Run(info.Name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Preset(info.Name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
