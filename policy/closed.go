package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/gitconfig"
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
		if slices.ContainsFunc(c.Commands, func(name string) bool { return named(name, program) }) {
			return fmt.Sprintf("%s is closed to %s: --ro %[1]s", r.tilde(c.Path), program)
		}
	}
	return ""
}

// tilde writes a path for a shell, from the home directory on where it lies there.
func (r *Resolved) tilde(p string) string {
	if rest, ok := strings.CutPrefix(p, r.Home+"/"); ok {
		return "~/" + shell.Quote(rest)
	}
	return shell.Quote(p)
}

// named says whether a program has a name, of which a final "*" stands for any ending.
func named(name, program string) bool {
	start, any := strings.CutSuffix(name, "*")
	return name == program || any && strings.HasPrefix(program, start)
}

// Spared says in one line which places of secrets a rule did not open, or, where they
// can't be held closed, which it did; "" for none.
func (r *Resolved) Spared(held bool) string {
	spared := slices.DeleteFunc(slices.Clone(r.Deny), func(d DenyPath) bool { return !d.Secret })
	if len(spared) == 0 {
		return ""
	}
	from, name, more := spared[0].Deny.Origin, r.tilde(spared[0].Pattern), ""
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

// closed finds out which of the files are there and closed.
func (rs *resolver) closed(flat *Policy) {
	for _, c := range flat.Closed {
		name, above := strings.CutPrefix(c.Path, "../")
		if file := rs.presets.place(c.Path); !above && file != "" && rs.missed(file, c.Commands) && c.Includes {
			rs.included(file, c.Commands)
		}
		for dir := rs.host.Dir; above && dir != "/"; {
			dir = path.Dir(dir)
			rs.missed(path.Join(dir, name), c.Commands)
		}
	}
}

// included looks for the files that a configuration of git includes (git-config(1),
// Includes). Git stops at one that it may not read.
func (rs *resolver) included(config string, commands []string) {
	text, _ := rs.host.ReadFile(config)
	settings, _ := gitconfig.Read(string(text))
	for _, s := range settings {
		file, below := strings.CutPrefix(s.Value, "~/")
		switch {
		case !s.Includes():
			continue
		case below:
			file = path.Join(rs.host.Home, file)
		case !path.IsAbs(file):
			file = path.Join(path.Dir(config), file)
		}
		rs.missed(path.Clean(file), commands)
	}
}

// missed notes a file that is there and closed, and reports whether it is open.
func (rs *resolver) missed(file string, commands []string) (open bool) {
	pl, err := rs.w.walk(file)
	if err != nil || pl.gone != "" {
		return false
	}
	v := rs.r.Allowed(pl.path, Read)
	if !v.Allowed && (v.Deny == nil || v.Deny.Secret) {
		rs.r.closed = append(rs.r.closed, Closed{Path: file, Commands: commands})
	}
	return v.Allowed
}
