package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/policy/shell"
)

// closedFile is a file of a Closed that is there and that the command can't read.
type closedFile struct {
	path     string
	commands []string
}

// ClosedTo says in one line which settings file the program of a command line reads,
// is there, and is not open to it, and the flag that opens it; "" for none. The
// program would go on without it, or stop, in words that do not say why. One that is
// denied was closed on purpose and does not count.
func (r *Resolved) ClosedTo(argv []string) string {
	program := path.Base(programOf(argv))
	for _, c := range r.closed {
		if !slices.ContainsFunc(c.commands, func(name string) bool { return named(name, program) }) {
			continue
		}
		tilde, below := "", c.path
		if rest, ok := strings.CutPrefix(c.path, r.Home+"/"); ok {
			tilde, below = "~/", rest
		}
		return fmt.Sprintf("%s%s is closed to %s: --ro %[1]s%[4]s", tilde, below, program, shell.Quote(below))
	}
	return ""
}

// named says whether a program has a name, of which a final "*" stands for any ending.
func named(name, program string) bool {
	start, any := strings.CutSuffix(name, "*")
	return name == program || any && strings.HasPrefix(program, start)
}

// closed finds out which of the files are there and closed.
func (rs *resolver) closed(flat *Policy) {
	for i := range flat.Closed {
		c := &flat.Closed[i]
		for _, file := range rs.candidates(c.Path) {
			if rs.missed(file, c.Commands) && c.Includes {
				rs.included(file, c.Commands)
			}
		}
	}
}

// candidates are the files that a Closed.Path may be.
func (rs *resolver) candidates(written string) []string {
	name, above := strings.CutPrefix(written, "../")
	if !above {
		if file, err := rs.presets.absolute(written); err == nil {
			return []string{file}
		}
		return nil
	}
	var all []string
	for dir := rs.host.Dir; dir != "/"; {
		dir = path.Dir(dir)
		all = append(all, path.Join(dir, name))
	}
	return all
}

// included looks for the files that a configuration of git includes
// (git-config(1), Includes). Git stops at one that it may not read.
func (rs *resolver) included(config string, commands []string) {
	if rs.host.ReadFile == nil {
		return
	}
	data, err := rs.host.ReadFile(config)
	if err != nil {
		return
	}
	settings, _ := gitconfig.Read(string(data))
	for _, s := range settings {
		if !s.Includes() {
			continue
		}
		file := path.Join(path.Dir(config), s.Value)
		if rest, ok := strings.CutPrefix(s.Value, "~/"); ok {
			file = path.Join(rs.host.Home, rest)
		} else if path.IsAbs(s.Value) {
			file = path.Clean(s.Value)
		}
		rs.missed(file, commands)
	}
}

// missed notes a file that is there and closed.
func (rs *resolver) missed(file string, commands []string) (open bool) {
	pl, err := rs.w.walk(file)
	if err != nil || pl.gone != "" {
		return false
	}
	v := rs.r.Allowed(pl.path, Read)
	if !v.Allowed && (v.Deny == nil || v.Deny.Secret) {
		rs.r.closed = append(rs.r.closed, closedFile{file, commands})
	}
	return v.Allowed
}
