package policy

import (
	"bytes"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/zsbx/zsbx/policy/internal/tables"
)

//go:embed presets/*.toml
var presetFiles embed.FS

// PresetInfo describes a built-in preset for listings.
type PresetInfo struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Commands    []string `json:"commands"` // base names of commands that switch it on; a final "*" stands for any ending
	Files       []string `json:"files"`    // files in the working directory or above that switch it on
	Dirs        []string `json:"-"`        // a command found in one of these directories switches it on; on PATH, its tools
	Programs    []string `json:"-"`        // programs that others start unasked: one on PATH switches it on, where something else may be written

	agent bool // a coding agent's
}

// Presets lists the built-in presets, sorted by name. They are not to be changed.
func Presets() []PresetInfo { return presetTable() }

var presetTable = sync.OnceValue(func() []PresetInfo {
	var all []PresetInfo
	for _, s := range tables.Presets() {
		all = append(all, PresetInfo{
			Name: s.Name, Description: s.Note, Commands: s.Keys["commands"], Files: s.Keys["files"],
			Dirs: s.Keys["dirs"], Programs: s.Keys["programs"], agent: s.Keys["agent"] != nil,
		})
	}
	return all
})

// presetInfo finds a built-in preset, nil for none.
func presetInfo(name string) *PresetInfo {
	all := Presets()
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// UnknownPresetError reports a preset's name that is not built in.
type UnknownPresetError struct{ Name string }

// Error names the preset and those there are.
func (e *UnknownPresetError) Error() string {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return fmt.Sprintf("unknown preset %q (known: %s)%s", e.Name, strings.Join(names, " "), didYouMean(e.Name, names))
}

// Preset returns the rules of a built-in preset as they are written: with
// "~" and with "${NAME:-default}" for the variables that move a tool's
// directories. All rules are Optional. "NAME:tools" is the preset without all
// that is writable. The error is an *UnknownPresetError.
func Preset(name string) (*Policy, error) {
	base, tools := strings.CutSuffix(name, toolsOnly)
	if presetInfo(base) == nil {
		return nil, &UnknownPresetError{Name: name}
	}
	data, err := presetFiles.ReadFile("presets/" + base + ".toml")
	if err != nil {
		return nil, fmt.Errorf("preset %s: %w", name, err)
	}
	p, err := decodePreset(Origin{Source: "preset " + name}, data)
	if err != nil {
		return nil, fmt.Errorf("preset %s: %w", name, err)
	}
	if tools {
		for _, part := range []*Policy{p, p.Linux, p.MacOS} {
			part.FS.Rules = slices.DeleteFunc(part.FS.Rules, func(r Rule) bool { return r.Access&Write != 0 })
			part.Env.Set, part.FS.Links, part.FS.Copies, part.Closed = nil, nil, nil, nil
		}
	}
	return p, nil
}

// toolsOnly is what is put after a preset's name to have its readable and
// executable part alone.
const toolsOnly = ":tools"

// presetTables are the tables that a preset's file may have: those of a
// policy file that make sense here, and create.
type presetTables struct {
	FS struct {
		RO       []string `toml:"ro"`
		ROX      []string `toml:"rox"`
		RW       []string `toml:"rw"`
		RWNoexec []string `toml:"rw_noexec"`
		// Create names those of the writable directories that are made
		// before a run when they are missing.
		Create []string `toml:"create"`
		// Links are made in the project's own cache, by their names there.
		Links map[string]string `toml:"links"`
		// Copies are files there, of which a command may change its own.
		Copies map[string]string `toml:"copies"`
	} `toml:"fs"`
	Env struct {
		Allow []string          `toml:"allow"`
		Set   map[string]string `toml:"set"`
	} `toml:"env"`
	Closed []struct {
		Path     string   `toml:"path"`
		Commands []string `toml:"commands"`
		Includes bool     `toml:"includes"`
	} `toml:"closed"`
	Guard struct {
		Lists []string `toml:"lists"`
	} `toml:"guard"`
}

// presetFile is a preset's file: the tables, and those for one system only.
type presetFile struct {
	presetTables
	Linux presetTables `toml:"linux"`
	MacOS presetTables `toml:"macos"`
}

// decodePreset reads a preset's TOML strictly.
func decodePreset(from Origin, data []byte) (*Policy, error) {
	var f presetFile
	if err := decodeStrict(data, &f); err != nil {
		return nil, err
	}
	p := f.policy(from)
	p.Linux = f.Linux.policy(from)
	p.MacOS = f.MacOS.policy(from)
	return p, nil
}

// decodeStrict decodes TOML in which every key must be known.
func decodeStrict(data []byte, v any) error {
	return toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(v)
}

// policy turns the tables into rules.
func (t *presetTables) policy(from Origin) *Policy {
	p := &Policy{}
	add := func(access Access, paths []string) {
		p.FS.Rules = append(p.FS.Rules, optional(from, access, paths...)...)
	}
	add(Read, t.FS.RO)
	add(Read|Exec, t.FS.ROX)
	add(Read|Write|Exec, t.FS.RW)
	add(Read|Write, t.FS.RWNoexec)
	for i := range p.FS.Rules {
		for _, c := range t.FS.Create {
			if p.FS.Rules[i].Path == c {
				p.FS.Rules[i].Create = true
			}
		}
	}
	p.FS.Links, p.FS.Copies = links(t.FS.Links), links(t.FS.Copies)
	for _, name := range t.Env.Allow {
		p.Env.Allow = append(p.Env.Allow, Named{Value: name, Origin: from})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Env.Set)) {
		p.Env.Set = append(p.Env.Set, Var{Name: name, Value: t.Env.Set[name], Origin: from})
	}
	for _, c := range t.Closed {
		p.Closed = append(p.Closed, Closed{Path: c.Path, Commands: c.Commands, Includes: c.Includes})
	}
	for _, name := range t.Guard.Lists {
		p.Guard.Lists = append(p.Guard.Lists, Named{Value: name, Origin: from})
	}
	return p
}

// links sorts a table by name.
func links(table map[string]string) []Link {
	var all []Link
	for _, name := range slices.Sorted(maps.Keys(table)) {
		all = append(all, Link{Name: name, To: table[name]})
	}
	return all
}
