package guard

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/tables"
	"github.com/zsbx/zsbx/policy"
)

// refuse returns the error for a command line, with what to type if the user means it.
func refuse(format string, args ...any) error {
	return &policy.Error{Code: policy.CodeGuard, Hint: "--guard off", Msg: fmt.Sprintf(format, args...)}
}

// Check returns a *policy.Error, which names the words and the list, if a list that a
// policy switches on refuses a command line. Unknown lists are policy.Errors. The host
// says what "~" and relative paths mean to the command.
func Check(policies *policy.Policy, h *host.Host, argv []string) error {
	p := policies.GuardOn(h.OS)
	if len(p.Lists) == 0 {
		return nil
	}
	c := checker{lists: map[string][]string{}, on: p.Lists, home: h.Home, cwd: h.Dir, left: 1 << 18}
	for _, s := range tables.Guard {
		if list, ok := strings.CutPrefix(s.Name, "list "); ok {
			c.lists[list] = slices.Clip(s.Entries)
		}
	}
	for _, w := range p.Words {
		c.lists[w.Name] = append(c.lists[w.Name], w.Value)
	}
	if errs := c.unknownLists(); errs != nil {
		return errs
	}
	return c.command(argv)
}

// unknownLists returns an error for each list that is switched on and does not exist.
func (c *checker) unknownLists() (errs policy.Errors) {
	known := strings.Join(slices.Sorted(maps.Keys(c.lists)), ", ")
	for _, n := range c.on {
		if c.lists[n.Value] == nil {
			msg := fmt.Sprintf("unknown guard list %q: the lists are %s", n.Value, known)
			errs = append(errs, &policy.Error{Origin: n.Origin, Code: policy.CodeValue, Msg: msg})
		}
	}
	return errs
}

// unknown stands for what only the shell will know. No command line has a NUL.
const unknown = "\x00"

// checker is one look at a command line.
type checker struct {
	lists map[string][]string // of entries: a command's name and arguments
	on    []policy.Named      // the lists that are looked at
	home  string
	cwd   string // as far as cd(1) was followed
	left  int    // how many words may still come: a short line can have a lot of them
}

// command checks a command with its arguments, and the commands that it runs.
func (c *checker) command(words []string) error {
	c.left -= len(words)
	if c.left < 0 {
		return refuse("the guard can't read the shell line: it has too many words")
	}
	if len(words) == 0 || strings.Contains(words[0], unknown) {
		return nil
	}
	for _, list := range c.on {
		for _, entry := range c.lists[list.Value] {
			if err := c.match(words, list.Value, strings.Fields(entry)); err != nil {
				return err
			}
		}
	}
	name := path.Base(words[0])
	args := words[1:]
	switch name {
	case "cd", "pushd":
		c.cwd = c.absolute(words[len(words)-1])
	case "eval":
		return c.line(strings.Join(args, " "), name)
	default:
		return c.runs(name, args)
	}
	return nil
}

// runs checks what a command is given to run: a command line, or a line for a shell after
// -c. The word after an option may be its value, or the first operand.
func (c *checker) runs(name string, args []string) error {
	exec := slices.IndexFunc(args, func(a string) bool { return glob("-exec*", a) || glob("-ok*", a) })
	if name == "find" && exec >= 0 {
		return c.command(args[exec+1:])
	}
	shell := slices.Contains(tables.Find(tables.Guard, "shells"), name)
	if !shell && !slices.Contains(tables.Find(tables.Guard, "runs"), name) {
		return nil
	}
	line := false
	behind := false // -c is given; the word before is an option
	for i, a := range args {
		if isOption(a) || shell && len(a) > 1 && a[0] == '+' {
			line = line || isShort(a) && strings.Contains(a, "c")
			behind = true
			continue
		}
		if !shell && isOperand(a) {
			continue
		}
		var err error
		if !shell {
			err = c.command(args[i:])
		} else if line {
			err = c.line(a, name)
		}
		if err != nil || !behind {
			return err
		}
		behind = false
	}
	return nil
}

// isOperand reports whether a word may come before the command that a program such as env(1),
// timeout(1) or nice(1) runs: "--", a number, or a variable with its value.
func isOperand(word string) bool {
	number := word != "" && word[0] >= '0' && word[0] <= '9'
	variable := strings.Contains(word, "=") && !strings.Contains(word, "/")
	return word == "--" || number || variable
}

// match refuses a command that has the words of an entry, in that order. If an entry
// begins with an option, that must come before the first operand: later options are a
// script's.
func (c *checker) match(words []string, list string, entry []string) error {
	what := path.Base(words[0])
	args := words[1:]
	if len(entry) == 0 || !glob(entry[0], what) {
		return nil
	}
	operand := false
	for _, want := range entry[1:] {
		i := slices.IndexFunc(args, func(a string) bool { return c.fits(want, a) })
		option := isOption(want)
		if i < 0 || option && !operand && slices.ContainsFunc(args[:i], func(a string) bool { return !isOption(a) }) {
			return nil
		}
		if strings.ContainsAny(want, "{*?[") {
			want = args[i]
		}
		what += " " + want
		args = args[i+1:]
		operand = operand || !option
	}
	return refuse("%q is on the guard's list %s", what, list)
}

// fits compares a word with one of an entry. -c is found in -ec, too.
func (c *checker) fits(want, text string) bool {
	before, kind, _ := strings.Cut(want, "{")
	rest, begins := strings.CutPrefix(text, before)
	switch {
	case strings.Contains(text, unknown):
		return want == "*"
	case kind == "vital}", kind == "device}":
		return begins && c.among(rest, strings.TrimSuffix(kind, "}"))
	case !isOption(want):
		return !isOption(text) && (want == "*" || glob(want, text))
	}
	letter := len(want) == 2 && isShort(text) && strings.Contains(text, want[1:])
	return glob(want, text) || letter || strings.HasPrefix(text, want+"=")
}

// absolute returns a path as the command will take it, lexically.
func (c *checker) absolute(p string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		p = c.home + p[1:]
	}
	if !path.IsAbs(p) {
		p = c.cwd + "/" + p
	}
	return path.Clean("/" + p)
}

// among reports whether a path, or the directory of which it matches all, is in a section
// of the table. The home directory and those above it are vital, too.
func (c *checker) among(text, section string) bool {
	p := c.absolute(text)
	for p != "/" && strings.Trim(path.Base(p), "*?.[!]") == "" {
		p = path.Dir(p)
	}
	if text == "" {
		return false
	}
	if section == "vital" && host.Within(c.home, p) {
		return true
	}
	is := func(entry string) bool { return entry == p || section == "device" && glob(entry, p) }
	return slices.ContainsFunc(tables.Find(tables.Guard, section), is)
}

func glob(pattern, s string) bool {
	ok, _ := path.Match(pattern, s)
	return ok
}

func isOption(s string) bool { return len(s) > 1 && s[0] == '-' && s != "--" }

func isShort(s string) bool { return isOption(s) && s[1] != '-' }
