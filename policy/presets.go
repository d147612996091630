package policy

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zsbx/zsbx/policy/internal/tables"
	"github.com/zsbx/zsbx/policy/internal/tree"
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
	table := tables.Presets()
	all := make([]PresetInfo, 0, len(table))
	for _, s := range table {
		all = append(all, PresetInfo{
			Name: s.Name, Description: s.Note, Commands: s.Key("commands"), Files: s.Key("files"),
			Dirs: s.Key("dirs"), Programs: s.Key("programs"), agent: s.Key("agent") != nil,
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
			part.Env.Set, part.FS.CacheLinks, part.FS.CacheCopies, part.Closed = nil, nil, nil, nil
		}
	}
	return p, nil
}

// toolsOnly is what is put after a preset's name to have its readable and
// executable part alone.
const toolsOnly = ":tools"

// decodePreset reads a preset's file: the tables of a policy file, and keys that only
// presets have. fs.create names those of the writable directories that are made
// before a run when they are missing; fs.links are made in the project's own cache,
// by their names there, and fs.copies are files there, of which a command may change
// its own.
func decodePreset(from Origin, data []byte) (*Policy, error) {
	c := &checker{preset: &from}
	p, err := c.decode(tree.TOML, data)
	if err != nil {
		return nil, err
	}
	for _, part := range []**Policy{&p, &p.Linux, &p.MacOS} {
		if *part == nil {
			*part = &Policy{}
		}
		fs := &(*part).FS
		for i := range fs.Rules {
			r := &fs.Rules[i]
			r.Create = slices.ContainsFunc(fs.create, func(n Named) bool { return n.Value == r.Path })
		}
	}
	return p, nil
}

// Baseline returns the built-in rules of an operating system, "linux" or
// "macos": what nearly every program needs from it, to run the installed
// programs, to read the system's settings and data, and to use the harmless
// devices. Other names get an empty policy. It holds nothing below the home
// directory but the files that shells and git read at their start.
//
// All its rules are Optional and have the origin "baseline". FS.System holds the
// three categories that a policy may replace one by one, FS.Rules the dotfiles,
// which belong to none. docs/policy.md lists every path on Linux.
func Baseline(os string) *Policy {
	p := &Policy{}
	if os != "linux" && os != "macos" {
		return p
	}
	from, table := Origin{Source: "baseline"}, tables.Baseline()
	for _, c := range p.FS.System.categories() {
		*c.rules = optional(from, c.access, tables.Find(table, os+" "+c.key)...)
	}
	p.FS.Rules = optional(from, Read, tables.Find(table, "dotfiles")...)
	return p
}

// optional makes one rule for each path, all with the same access.
func optional(from Origin, access Access, paths ...string) []Rule {
	rules := make([]Rule, len(paths))
	for i, p := range paths {
		rules[i] = Rule{Path: p, Access: access, Optional: true, Origin: from}
	}
	return rules
}
