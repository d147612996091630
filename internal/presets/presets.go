package presets

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zsbx/zsbx/internal/nearest"
	"github.com/zsbx/zsbx/internal/tables"
)

// Info describes a built-in preset for listings.
type Info struct {
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

	Agent bool `json:"-"` // a coding agent's
}

// All lists the built-in presets, sorted by name. The caller must not change them.
func All() []Info { return table() }

var table = sync.OnceValue(func() []Info {
	table := tables.Presets
	all := make([]Info, len(table))
	for i, s := range table {
		all[i] = Info{
			Name:        s.Name,
			Description: s.Note,
			Commands:    s.Key("commands"),
			Files:       s.Key("files"),
			Dirs:        s.Key("dirs"),
			Programs:    s.Key("programs"),
			Vars:        s.Key("vars"),
			Agent:       s.Key("agent") != nil,
		}
	}
	return all
})

// ToolsOnly after a preset's name means only its readable and executable part.
const ToolsOnly = ":tools"

// Check returns what is wrong with the name of a preset.
func Check(s string) error {
	base, _ := strings.CutSuffix(s, ToolsOnly)
	if slices.ContainsFunc(All(), func(p Info) bool { return p.Name == base }) {
		return nil
	}
	var names []string
	for _, p := range All() {
		names = append(names, p.Name)
	}
	return fmt.Errorf("unknown preset %q (known: %s)%s", s, strings.Join(names, " "), nearest.DidYouMean(s, names))
}
