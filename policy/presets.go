package policy

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zsbx/zsbx/policy/internal/tables"
)

//go:embed presets/*.txt
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
	all := make([]PresetInfo, len(table))
	for i, s := range table {
		all[i] = PresetInfo{s.Name, s.Note, s.Key("commands"), s.Key("files"), s.Key("dirs"), s.Key("programs"), s.Key("agent") != nil}
	}
	return all
})

// presetInfo finds a built-in preset, nil for none.
func presetInfo(name string) *PresetInfo {
	all := Presets()
	if at := slices.IndexFunc(all, func(p PresetInfo) bool { return p.Name == name }); at >= 0 {
		return &all[at]
	}
	return nil
}

// Preset returns the rules of a built-in preset as they are written: with
// "~" and with "${NAME:-default}" for the variables that move a tool's
// directories. All rules are Optional. "NAME:tools" is the preset without all
// that is writable. The error says which there are.
func Preset(name string) (*Policy, error) {
	base, tools := strings.CutSuffix(name, toolsOnly)
	text, err := presetFiles.ReadFile("presets/" + base + ".txt")
	if err != nil {
		var names []string
		for _, p := range Presets() {
			names = append(names, p.Name)
		}
		return nil, fmt.Errorf("unknown preset %q (known: %s)%s", name, strings.Join(names, " "), DidYouMean(name, names))
	}
	p := &Policy{}
	for _, s := range tables.Read(string(text)) {
		part, what := p, s.Name
		if os, rest, _ := strings.Cut(s.Name, " "); slices.Contains(systems, os) {
			at := p.part(os)
			*at = cmp.Or(*at, &Policy{})
			part, what = *at, rest
		}
		if err := part.addPreset(&s, what, tools, Origin{Source: "preset " + name}); err != nil {
			return nil, fmt.Errorf("preset %s: [%s]: %w", name, s.Name, err)
		}
	}
	return p, nil
}

// toolsOnly is what is put after a preset's name to have its readable and
// executable part alone.
const toolsOnly = ":tools"

// addPreset adds a section of a preset's file: paths, for which "create" says that the
// directory is made before a run when it is missing; names of variables; what is set,
// or made in the project's own cache by its name there, copies being files of which a
// command may change its own; and settings that are closed to all but some commands.
func (p *Policy) addPreset(s *tables.Section, what string, tools bool, from Origin) error {
	kind, more, _ := strings.Cut(what, " ")
	if access := accessOf(kind); access != 0 {
		if !tools || access&Write == 0 {
			p.FS.Rules = addOptional(p.FS.Rules, Rule{Access: access, Create: more == "create", Data: kind == "data", Origin: from}, s.Entries)
		}
		return nil
	}
	switch {
	case what == "env":
		p.Env.Allow = allNamed(s.Entries, from)
	case what == "guard":
		p.Guard.Lists = allNamed(s.Entries, from)
	case tools:
	case what == "set":
		for _, k := range s.Keys {
			p.Env.Set = append(p.Env.Set, Named{Name: k.Name, Value: k.Entries[0], Origin: from})
		}
	case what == "links", what == "copies":
		for _, k := range s.Keys {
			p.FS.Cache = append(p.FS.Cache, CacheEntry{Name: k.Name, To: k.Entries[0], Copy: what == "copies"})
		}
	case kind == "closed":
		for _, k := range s.Keys {
			p.Closed = append(p.Closed, Closed{Path: k.Name, Commands: k.Entries, Includes: more == "includes"})
		}
	default:
		return errors.New("no preset has that")
	}
	return nil
}

// accessOf is the access that a section of paths gives, 0 for no such section.
func accessOf(kind string) Access {
	switch kind {
	case "ro":
		return Read
	case "rox":
		return Read | Exec
	case "rw":
		return Read | Write | Exec
	case "rw_noexec", "data":
		return Read | Write
	}
	return 0
}

func allNamed(names []string, from Origin) []Named {
	all := make([]Named, len(names))
	for i, n := range names {
		all[i] = Named{Value: n, Origin: from}
	}
	return all
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
	if !slices.Contains(systems, os) {
		return p
	}
	from, table := Origin{Source: "baseline"}, tables.Baseline()
	for _, c := range p.FS.System.categories() {
		*c.rules = addOptional(nil, Rule{Access: c.access, Origin: from}, tables.Find(table, os+" "+c.key))
	}
	p.FS.Rules = addOptional(nil, Rule{Access: Read, Origin: from}, tables.Find(table, "dotfiles"))
	return p
}

// wholeApp widens a rule of the baseline's that leads to the developer directory
// inside of an Xcode to all that this Xcode reads of itself: the shims in
// /usr/bin stop where its Info.plist or its SharedFrameworks are closed. Where
// the rule leads is not known before, as it may be by xcode-select(1)'s link or
// by DEVELOPER_DIR, which may name the .app too (xcrun(1)).
func (rs *resolver) wholeApp(p *Path) {
	app := strings.TrimSuffix(strings.TrimSuffix(p.Path, "/Developer"), "/Contents")
	if !strings.HasSuffix(app, ".app") || p.Access&Exec == 0 {
		return
	}
	if pl, err := rs.w.walk(app + "/Contents"); err == nil && pl.gone == "" && pl.path == app+"/Contents" {
		p.Path, p.Mode, p.ID = pl.path, pl.stat.Mode.Type(), pl.stat.ID
	}
}

// addOptional adds a rule like this one for each path.
func addOptional(rules []Rule, like Rule, paths []string) []Rule {
	rules, like.Optional = slices.Grow(rules, len(paths)), true
	for _, like.Path = range paths {
		rules = append(rules, like)
	}
	return rules
}
