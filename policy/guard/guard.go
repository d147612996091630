package guard

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/internal/tables"
)

// Refusal is a command line that a list refuses, or that can't be read.
type Refusal struct {
	List string // "" for a shell line that can't be read
	Word string // the entry, as the command line has it: "rm -r /"
	Err  error  // why it can't be read
}

// Error says which word and which list.
func (r *Refusal) Error() string {
	if r.Err != nil {
		return fmt.Sprintf("the guard can't read the shell line: %v", r.Err)
	}
	return fmt.Sprintf("%q is on the guard's list %s", r.Word, r.List)
}

// Check says whether a list that p switches on refuses a command line: the error is a
// *Refusal then, and a policy.Errors, with the places, for lists that are not known.
// Home and dir are what "~" and relative paths mean to the command.
func Check(p *policy.Guard, home, dir string, argv []string) error {
	if len(p.Lists) == 0 {
		return nil
	}
	lists := map[string][]string{}
	for _, s := range tables.Guard() {
		if list, ok := strings.CutPrefix(s.Name, "list "); ok {
			lists[list] = slices.Clip(s.Entries)
		}
	}
	for _, w := range p.Words {
		lists[w.Name] = append(lists[w.Name], w.Value)
	}
	c := checker{home: home, cwd: dir, vars: map[string]string{"HOME": home}, left: maxWork}
	var errs policy.Errors
	for _, n := range p.Lists {
		if lists[n.Value] == nil {
			errs = append(errs, &policy.Error{Origin: n.Origin, Code: policy.CodeValue,
				Msg: fmt.Sprintf("unknown guard list %q: there are %s", n.Value, strings.Join(slices.Sorted(maps.Keys(lists)), ", "))})
		}
		for _, e := range lists[n.Value] {
			if words := strings.Fields(e); len(words) > 0 {
				c.entries = append(c.entries, entry{n.Value, words})
			}
		}
	}
	if errs != nil {
		return errs
	}
	return c.command(argv)
}

// entry is a command's name and arguments, as a list has them.
type entry struct {
	list  string
	words []string
}

// unknown stands for what only the shell will know: no command line has a NUL.
const unknown = "\x00"

// checker is one look at a command line.
type checker struct {
	entries []entry // of the lists that are on
	home    string
	cwd     string            // as far as cd(1) was followed
	vars    map[string]string // what the line assigns
	left    int               // of maxWork
}

// Who writes a line may have it say far more than it is long.
const (
	maxWork  = 8 << 20 // bytes of the words of all commands in it, and perWord for each, and of the values in them
	perWord  = 8
	maxValue = 128 << 10 // bytes of a variable's value: the longest word that a program is given (execve(2), MAX_ARG_STRLEN)
)

// command checks a command with its arguments, and the ones that it runs.
func (c *checker) command(words []string) error {
	for _, w := range words {
		c.left -= len(w) + perWord
	}
	if c.left < 0 {
		return &Refusal{Err: errors.New("it says too much")}
	}
	if len(words) == 0 || strings.Contains(words[0], unknown) {
		return nil
	}
	for _, e := range c.entries {
		if err := c.match(words, e); err != nil {
			return err
		}
	}
	switch name, args := path.Base(words[0]), words[1:]; name {
	case "cd", "pushd":
		c.cwd = c.absolute(words[len(words)-1])
	case "eval":
		return c.line(strings.Join(args, " "), name)
	default:
		return c.runs(name, args)
	}
	return nil
}

// runs checks the command line, or the line for a shell, that a command is given.
func (c *checker) runs(name string, args []string) error {
	runners := tables.Find(tables.Guard(), "runs")
	i := slices.IndexFunc(runners, func(r string) bool { return strings.HasPrefix(r, name+" ") })
	if i < 0 {
		return nil
	}
	valued, how, _ := strings.Cut(runners[i][len(name)+1:], " ")
	line := false // -c is given
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case how == "exec": // find
			if glob("-exec*", a) || glob("-ok*", a) {
				how = ""
			}
		case isOption(a), how == "shell" && len(a) > 1 && a[0] == '+':
			line = line || isShort(a) && strings.Contains(a, "c")
			if a[1] != '-' && strings.Contains(valued, a[len(a)-1:]) {
				i++
			}
		case how == "shell" && line:
			return c.line(args[i], name)
		case how == "shell":
			return nil // a script
		case a == "--", strings.Contains(a, "=") && !strings.Contains(a, "/"):
		case how == "1":
			how = ""
		default:
			return c.command(args[i:])
		}
	}
	return nil
}

// match refuses a command that has the words of an entry, in their order. An option that
// comes first in the entry stands before the first operand: what comes later is a
// script's.
func (c *checker) match(words []string, e entry) error {
	what, args := path.Base(words[0]), words[1:]
	if !glob(e.words[0], what) {
		return nil
	}
	operand := false
	for _, want := range e.words[1:] {
		i := slices.IndexFunc(args, func(a string) bool { return c.fits(want, a) })
		option := isOption(want)
		if i < 0 || option && !operand && slices.ContainsFunc(args[:i], func(a string) bool { return !isOption(a) }) {
			return nil
		}
		if strings.ContainsAny(want, "{*?[") {
			want = args[i]
		}
		what += " " + want
		args, operand = args[i+1:], operand || !option
	}
	return &Refusal{List: e.list, Word: what}
}

// fits compares a word with one of an entry. -c is found in -ec, too.
func (c *checker) fits(want, text string) bool {
	before, kind, _ := strings.Cut(want, "{")
	switch rest, ok := strings.CutPrefix(text, before); {
	case strings.Contains(text, unknown):
		return want == "*"
	case kind == "vital}":
		return ok && c.vital(rest)
	case kind == "device}":
		return ok && device(rest)
	case !isOption(want):
		return !isOption(text) && (want == "*" || glob(want, text))
	}
	return glob(want, text) || len(want) == 2 && isShort(text) && strings.Contains(text, want[1:]) || strings.HasPrefix(text, want+"=")
}

// absolute is a path as the command will take it, lexically.
func (c *checker) absolute(p string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		p = c.home + p[1:]
	}
	if !path.IsAbs(p) {
		p = c.cwd + "/" + p
	}
	return path.Clean("/" + p)
}

// vital reports whether a path is one that must not be lost, or all that is in one.
func (c *checker) vital(text string) bool {
	p := c.absolute(text)
	for p != "/" && strings.Trim(path.Base(p), "*?.[!]") == "" {
		p = path.Dir(p)
	}
	return text != "" && (policy.Within(c.home, p) || p == "/" || slices.Contains(tables.Find(tables.Guard(), "vital"), p))
}

// device tells a device that keeps what is written from those that do not.
func device(p string) bool {
	name, ok := strings.CutPrefix(path.Clean(p), "/dev/")
	return ok && !slices.ContainsFunc(tables.Find(tables.Guard(), "harmless"), func(h string) bool { return glob(h, name) }) &&
		(!strings.Contains(name, "/") || glob("disk/*", name) || glob("mapper/*", name) || glob("disk/*/*", name))
}

func glob(pattern, s string) bool { ok, _ := path.Match(pattern, s); return ok }

func isOption(s string) bool { return len(s) > 1 && s[0] == '-' && s != "--" }

func isShort(s string) bool { return isOption(s) && s[1] != '-' }
