package resolve

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/internal/tables"
	"github.com/zsbx/zsbx/policy"
)

// Messages about what a run will miss: settings that no preset opens, and places of
// secrets.

// ClosedTo returns a settings file or a login that exists, that the program of a command line
// reads, and that is closed to it, and the program; "" for none. The program itself would not say
// why it fails or does without. A file that is denied was closed on purpose and does not count.
func (r *Resolved) ClosedTo(argv []string) (file, program string) {
	program = path.Base(programOf(argv))
	for _, c := range slices.Concat(r.closed, logins()) {
		if !slices.ContainsFunc(c.Commands, func(name string) bool { return tables.Matches(name, program) }) {
			continue
		}
		for _, file := range r.settings(&c) {
			_, _, exists := r.Look(file)
			if v := r.Allowed(file, policy.Read); exists && !v.Allowed && (v.Deny == nil || v.Deny.Secret) {
				return file, program
			}
		}
	}
	return "", ""
}

// logins returns where command-line programs keep their logins.
func logins() (all []policy.Closed) {
	for _, s := range tables.Places {
		if s.Name != "logins" {
			continue
		}
		for _, k := range s.Keys {
			all = append(all, policy.Closed{Path: k.Name, Commands: k.Entries})
		}
	}
	return all
}

// settings returns the files that a Closed is about. For one that git reads it returns those
// that it includes (git-config(1), Includes), since git stops at one that it may not read.
func (r *Resolved) settings(c *policy.Closed) (files []string) {
	if name, above := strings.CutPrefix(c.Path, "../"); above {
		for dir := r.Dir; dir != "/"; {
			dir = path.Dir(dir)
			files = append(files, path.Join(dir, name))
		}
		return files
	}
	host := r.host.forPresets(r.env.Set)
	config := host.expanded(c.Path)
	switch {
	case config == "":
		return nil
	case !c.Includes || host.ReadFile == nil || !r.Allowed(config, policy.Read).Allowed:
		return []string{config}
	}
	text, _ := host.ReadFile(config) // harmless: fewer files are named in a hint
	settings, _ := gitconfig.Read(string(text))
	host.Dir = path.Dir(config) // relative paths start there
	for _, s := range settings {
		if !s.Includes() {
			continue // its value may be empty, which is not a path
		}
		for _, value := range s.Values() {
			if file := host.expanded(syntax.Literal(value)); file != "" {
				files = append(files, file)
			}
		}
	}
	return files
}

// Spared returns one line about the places of secrets that a wide rule did not open, or
// that it did open because they can't be kept closed here; "" for none. The directory with
// zsbx's files is left out, since no user opens that. enforced says that they are kept closed.
func (r *Resolved) Spared(enforced bool) string {
	state := path.Join(r.host.StateHome(), "zsbx")
	spared := slices.DeleteFunc(slices.Clone(r.Deny), func(d DenyPath) bool { return !d.Secret || d.Pattern == state })
	if len(spared) == 0 {
		return ""
	}
	from := spared[0].Deny.Origin
	name := shell.QuotePath(r.Short(spared[0].Pattern))
	more := ""
	if n := len(spared) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	switch {
	case from.Source == "default" || from.BuiltIn(): // nobody asked for them
		return ""
	case !enforced:
		return fmt.Sprintf("%s: %s%s: open, since nothing can be hidden here", from, name, more)
	}
	return fmt.Sprintf("%s: %s%s: closed, as secrets may be there; only a rule for exactly that place opens it",
		from, name, more)
}
