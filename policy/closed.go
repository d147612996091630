package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy/shell"
)

// What a run is going to miss, in words for its user: settings that no preset opens,
// the project around the working directory, places of secrets.

// ClosedTo says in one line which settings file the program of a command line reads,
// is there, and is not open to it, and the flag that opens it; "" for none. The
// program would go on without it, or stop, in words that do not say why. One that is
// denied was closed on purpose and does not count.
func (r *Resolved) ClosedTo(argv []string) string {
	program := path.Base(programOf(argv))
	for _, c := range r.closed {
		if !slices.ContainsFunc(c.Commands, func(name string) bool { return named(name, program) }) {
			continue
		}
		for _, file := range r.settings(&c) {
			_, _, exists := r.Look(file)
			if v := r.Allowed(file, Read); exists && !v.Allowed && (v.Deny == nil || v.Deny.Secret) {
				return fmt.Sprintf("%s is closed to %s: --ro %[1]s", shell.QuotePath(r.Short(file)), program)
			}
		}
	}
	return ""
}

// settings are the files that a Closed is about.
func (r *Resolved) settings(c *Closed) (files []string) {
	if name, above := strings.CutPrefix(c.Path, "../"); above {
		for dir := r.Dir; dir != "/"; {
			dir = path.Dir(dir)
			files = append(files, path.Join(dir, name))
		}
		return files
	}
	host := r.host.forPresets(r.env.Set)
	if file := host.place(c.Path); file != "" {
		files = append(files, file)
	}
	return files
}

// named says whether a program has a name, of which a final "*" stands for any ending.
func named(name, program string) bool {
	start, any := strings.CutSuffix(name, "*")
	return name == program || any && strings.HasPrefix(program, start)
}

// Spared says in one line which places of secrets a rule did not open, or, where they
// can't be held closed, which it did; "" for none. zsbx's own is none that a user opens.
func (r *Resolved) Spared(held bool) string {
	own := path.Join(r.host.StateHome(), "zsbx")
	spared := slices.DeleteFunc(slices.Clone(r.Deny), func(d DenyPath) bool { return !d.Secret || d.Pattern == own })
	if len(spared) == 0 {
		return ""
	}
	from, name, more := spared[0].Deny.Origin, shell.QuotePath(r.Short(spared[0].Pattern)), ""
	if n := len(spared) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	switch {
	case from.Source == "default" || from.BuiltIn(): // nobody asked for them
		return ""
	case !held:
		return fmt.Sprintf("%s: %s%s: open, since nothing can be hidden here", from, name, more)
	}
	return fmt.Sprintf("%s: %s%s: closed; --ro %s opens it", from, name, more, name)
}
