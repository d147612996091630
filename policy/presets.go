package policy

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/internal/tables"
)

//go:embed presets/*.txt
var presetFiles embed.FS

// Preset returns the rules of a built-in preset as they are written: with "~", and with
// "${NAME:-default}" for the variables that move a tool's directories. All rules are
// Optional. "NAME:tools" is the preset without what is writable. The error for an unknown
// preset lists the names.
func Preset(name string) (*Policy, error) {
	if err := presets.Check(name); err != nil {
		return nil, err
	}
	base, tools := strings.CutSuffix(name, presets.ToolsOnly)
	text, err := presetFiles.ReadFile("presets/" + base + ".txt")
	if err != nil {
		return nil, err
	}
	p := &Policy{}
	for _, s := range tables.Read(string(text)) {
		part := p
		what := s.Name
		if os, rest, _ := strings.Cut(s.Name, " "); slices.Contains(syntax.Systems, os) {
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
	if !slices.Contains(syntax.Systems, os) {
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
