package policy

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zsbx/zsbx/internal/tables"
)

//go:embed presets/*.txt
var presetFiles embed.FS

// PresetInfo describes a built-in preset for listings.
type PresetInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`

	// Commands and Files switch it on: base names of commands, in which a final "*" stands for any
	// ending, and files in the working directory or above.
	Commands []string `json:"commands"`
	Files    []string `json:"files"`

	// Dirs are directories of its programs: a command found in one switches it on. One on PATH
	// switches on its tools.
	Dirs []string `json:"-"`
	// Programs are started by others unasked: one on PATH switches it on, if anything may be written.
	Programs []string `json:"-"`
	// Vars name a directory of its programs: one that is set switches on its tools.
	Vars []string `json:"-"`

	agent bool // a coding agent's
}

// Presets lists the built-in presets, sorted by name. The caller must not change them.
func Presets() []PresetInfo { return presetTable() }

var presetTable = sync.OnceValue(func() []PresetInfo {
	table := tables.Presets
	all := make([]PresetInfo, len(table))
	for i, s := range table {
		all[i] = PresetInfo{
			Name:        s.Name,
			Description: s.Note,
			Commands:    s.Key("commands"),
			Files:       s.Key("files"),
			Dirs:        s.Key("dirs"),
			Programs:    s.Key("programs"),
			Vars:        s.Key("vars"),
			agent:       s.Key("agent") != nil,
		}
	}
	return all
})

// Preset returns the rules of a built-in preset as they are written: with "~", and with
// "${NAME:-default}" for the variables that move a tool's directories. All rules are
// Optional. "NAME:tools" is the preset without what is writable. The error for an unknown
// preset lists the names.
func Preset(name string) (*Policy, error) {
	if err := checkPresetName(name); err != nil {
		return nil, err
	}
	base, tools := strings.CutSuffix(name, toolsOnly)
	text, err := presetFiles.ReadFile("presets/" + base + ".txt")
	if err != nil {
		return nil, err
	}
	p := &Policy{}
	for _, s := range tables.Read(string(text)) {
		part := p
		what := s.Name
		if os, rest, _ := strings.Cut(s.Name, " "); slices.Contains(systems, os) {
			at := p.part(os)
			*at = cmp.Or(*at, &Policy{})
			part = *at
			what = rest
		}
		if err := part.addPreset(&s, what, tools, Origin{Source: "preset " + name}); err != nil {
			return nil, fmt.Errorf("preset %s: [%s]: %w", name, s.Name, err)
		}
	}
	return p, nil
}

// toolsOnly after a preset's name means only its readable and executable part.
const toolsOnly = ":tools"

// addPreset adds a section of a preset's file. It has paths ("create" makes a missing
// directory before a run), names of variables, variables to set, links and copies in the
// project's own cache by their name there, or settings files that no preset opens with the
// commands that read them. A command may change its copies.
func (p *Policy) addPreset(s *tables.Section, what string, tools bool, from Origin) error {
	kind, more, _ := strings.Cut(what, " ")
	switch kind {
	case "env":
		p.fill("env.allow", Named{Origin: from}, s.Entries)
		return nil
	case "guard":
		p.fill("guard.lists", Named{Origin: from}, s.Entries)
		return nil
	case "ro", "rox":
		p.fill("fs."+kind, Named{Optional: true, Origin: from}, s.Entries)
		return nil
	}
	if tools {
		return nil
	}
	switch kind {
	case "rw", "rw_noexec":
		p.fill("fs."+kind, Named{Optional: true, Create: more == "create", Origin: from}, s.Entries)
	case "data":
		before := len(p.FS.Rules)
		p.fill("fs.rw_noexec", Named{Optional: true, Create: more == "create", Origin: from}, s.Entries)
		for i := range p.FS.Rules[before:] {
			p.FS.Rules[before+i].Data = true
		}
	case "set":
		for _, k := range s.Keys {
			p.Env.Set = append(p.Env.Set, Named{Name: k.Name, Value: k.Entries[0], Origin: from})
		}
	case "links", "copies":
		for _, k := range s.Keys {
			p.FS.Cache = append(p.FS.Cache, CacheEntry{Name: k.Name, To: k.Entries[0], Copy: kind == "copies"})
		}
	case "closed":
		for _, k := range s.Keys {
			p.Closed = append(p.Closed, Closed{Path: k.Name, Commands: k.Entries, Includes: more == "includes"})
		}
	default:
		return errors.New("no preset has that")
	}
	return nil
}

// forPresets returns the machine as presets see it: a variable that the policy sets moves a
// tool's directories as one of the caller's does. PATH and HOME stay as they are for
// programs outside.
func (v *view) forPresets(set []Named) view {
	seen := *v
	var vars []string
	for _, v := range slices.Backward(set) { // of set the last one counts, in an environment the first
		if !v.Origin.BuiltIn() && v.Name != "PATH" && v.Name != "HOME" {
			vars = append(vars, v.Name+"="+v.Value)
		}
	}
	if vars != nil {
		seen.Env = append(vars, v.Env...)
	}
	return seen
}

// fill adds a table's values for a key.
func (p *Policy) fill(name string, like Named, values []string) {
	k := keyNamed(name)
	switch at := k.at(p).(type) {
	case *[]Rule:
		*at = slices.Grow(*at, len(values))
	case *[]Named:
		*at = slices.Grow(*at, len(values))
	}
	for _, like.Value = range values {
		_ = k.put(p, []Named{like}) // only a limit can be wrong
	}
}

// Baseline returns the built-in rules of an operating system, "linux" or
// "macos": what nearly every program needs, to run the installed programs, to
// read the system's settings and data, and to use harmless devices. Other names
// get an empty policy. Below the home directory it has only the files that
// shells, git and the like read when they start.
//
// All its rules are Optional and have the origin "baseline". FS.System has the
// three categories that a policy may replace one by one. FS.Rules has the dotfiles,
// which are in no category. docs/policy.md lists every path on Linux.
func Baseline(os string) *Policy {
	p := &Policy{}
	if !slices.Contains(systems, os) {
		return p
	}
	like := Named{Optional: true, Origin: Origin{Source: "baseline"}}
	for _, s := range tables.Baseline {
		if key, ok := strings.CutPrefix(s.Name, os+" "); ok {
			p.fill("fs.system."+key, like, s.Entries)
		}
	}
	p.fill("fs.ro", like, tables.Find(tables.Baseline, "dotfiles"))
	return p
}

// wholeApp widens a rule of the baseline that leads to the developer directory inside an
// Xcode, to all that this Xcode reads of itself: the shims in /usr/bin fail if its
// Info.plist or its SharedFrameworks are closed. It is not known before where the rule
// leads: it may go by xcode-select(1)'s link or by DEVELOPER_DIR, which may also name the
// .app (xcrun(1)).
func (rs *resolver) wholeApp(p *Path) {
	app := strings.TrimSuffix(strings.TrimSuffix(p.Path, "/Developer"), "/Contents")
	if !strings.HasSuffix(app, ".app") || p.Access&Exec == 0 {
		return
	}
	if pl, err := rs.w.walk(app + "/Contents"); err == nil && pl.gone == "" && pl.path == app+"/Contents" {
		p.Path = pl.path
		p.Mode = pl.stat.Mode.Type()
		p.ID = pl.stat.ID
	}
}
