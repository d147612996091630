package guard

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// Catastrophic is the list of what destroys a machine or a home directory.
const Catastrophic = "catastrophic"

// listFile has the built-in lists, one a line, and runnerFile the commands that
// run what their operands name: with the short options that take a value, and
// how many operands stand before it.
//
//go:embed lists.txt
var listFile string

//go:embed runners.txt
var runnerFile string

// Guard compares command lines with the lists that are on.
type Guard struct {
	lists     map[string][][]string // entries, as words
	names     []string
	home, dir string
}

// New makes a Guard of the lists that p switches on, and nil when there are
// none. Home and dir are what "~" and relative paths mean to the command. The
// error is a policy.Errors, with the place of each list that is not known.
func New(p *policy.Guard, home, dir string) (*Guard, error) {
	if len(p.Lists) == 0 {
		return nil, nil
	}
	g := &Guard{lists: map[string][][]string{}, home: home, dir: dir}
	add := func(list, entry string) {
		if words := strings.Fields(entry); len(words) > 0 {
			g.lists[list] = append(g.lists[list], words)
		}
	}
	for line := range strings.Lines(listFile) {
		name, entries, _ := strings.Cut(line, ":")
		for entry := range strings.SplitSeq(entries, "|") {
			add(name, entry)
		}
	}
	for _, w := range p.Words {
		add(w.List, w.Words)
	}
	var errs policy.Errors
	for _, n := range p.Lists {
		if g.lists[n.Value] == nil {
			errs = append(errs, &policy.Error{Origin: n.Origin, Code: policy.CodeValue,
				Msg: fmt.Sprintf("unknown guard list %q: there are %s", n.Value, strings.Join(slices.Sorted(maps.Keys(g.lists)), ", "))})
		} else if !slices.Contains(g.names, n.Value) {
			g.names = append(g.names, n.Value)
		}
	}
	if errs != nil {
		return nil, errs
	}
	return g, nil
}

// Refusal is a command line that a list refuses, or that can't be read.
type Refusal struct {
	List   string // "" for a shell line that can't be parsed
	Word   string // the entry, as the command line has it: "rm -r /"
	Arg    int    // index in the command line of the word, or of the string it stands in
	Line   int    // in that string, 1-based; 0 where it is the command line's own
	Column int    // likewise, in bytes
	Err    error  // the parser's
}

// Error says which word, which list, and where.
func (r *Refusal) Error() string {
	at := fmt.Sprintf("argument %d", r.Arg)
	if r.Line > 0 {
		at += fmt.Sprintf(", line %d, column %d", r.Line, r.Column)
	}
	if r.List == "" {
		return fmt.Sprintf("the guard can't read the shell line (%s): %v", at, r.Err)
	}
	return fmt.Sprintf("%q is on the guard's list %s (%s)", r.Word, r.List, at)
}

// Unwrap gives the parser's error.
func (r *Refusal) Unwrap() error { return r.Err }

// Check says whether a command line is refused: the error is a *Refusal. A nil
// Guard refuses nothing.
func (g *Guard) Check(argv []string) error {
	if g == nil {
		return nil
	}
	words := make([]word, len(argv))
	for i, a := range argv {
		words[i] = word{text: a, arg: i, known: true}
	}
	c := checker{Guard: g, cwd: g.dir, vars: map[string]string{"HOME": g.home}}
	return c.command(words)
}

// word is a word of a command line, and whether its text is certain: what the
// guard can't know is "".
type word struct {
	text              string
	arg, line, column int
	known             bool
}

func (w word) refused(list, what string, err error) error {
	return &Refusal{List: list, Word: what, Arg: w.arg, Line: w.line, Column: w.column, Err: err}
}

// checker is one look at a command line.
type checker struct {
	*Guard
	cwd   string            // as far as cd(1) was followed; "" for not known
	vars  map[string]string // what the line assigns
	depth int
}

// command checks a command with its arguments, and the ones that it runs.
func (c *checker) command(words []word) error {
	if len(words) == 0 || words[0].text == "" {
		return nil
	}
	if c.depth++; c.depth > 20 {
		return words[0].refused("", "", errors.New("it is nested too deeply"))
	}
	defer func() { c.depth-- }()
	name := base(words[0])
	for _, list := range c.names {
		for _, entry := range c.lists[list] {
			if !glob(entry[0], name) {
				continue
			}
			if w, what, ok := c.has(words, entry[1:]); ok {
				return w.refused(list, what, nil)
			}
		}
	}
	if err := c.command(runs(words)); err != nil {
		return err
	}
	return c.inner(name, words[1:])
}

// inner checks what commands run that is not simply their last words.
func (c *checker) inner(name string, args []word) error {
	switch {
	case isShell(name):
		given, valued := false, false // -c, and an option before that takes a word
		for _, a := range args {
			switch {
			case strings.HasPrefix(a.text, "-") || strings.HasPrefix(a.text, "+"):
				given = given || a.text[0] == '-' && !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "c")
				valued = strings.HasSuffix(a.text, "o") || strings.HasSuffix(a.text, "O")
			case valued:
				valued = false
			case given:
				return c.line(a, name)
			default:
				return nil // a script
			}
		}
	case name == "eval" && len(args) > 0:
		all := args[0]
		for _, a := range args[1:] {
			all.text, all.known = all.text+" "+a.text, all.known && a.known
		}
		return c.line(all, name)
	case name == "find":
		for i, a := range args {
			if glob("-exec*", a.text) || glob("-ok*", a.text) {
				if err := c.command(args[i+1:]); err != nil {
					return err
				}
			}
		}
	case name == "cd" || name == "pushd":
		if c.cwd = ""; len(args) > 0 && args[len(args)-1].known {
			c.cwd = c.absolute(args[len(args)-1].text)
		}
	}
	return nil
}

// runs is the command line among the words of a command that runs it.
func runs(words []word) []word {
	valued, before, found := "", 0, false
	for line := range strings.Lines(runnerFile) {
		if f := strings.Fields(line); f[0] == base(words[0]) {
			valued, before, found = f[1], int(f[2][0]-'0'), true
		}
	}
	for i := 1; i < len(words) && found; i++ {
		switch a := words[i].text; {
		case len(a) > 1 && a[0] == '-':
			if a[1] != '-' && strings.IndexByte(valued, a[len(a)-1]) >= 0 {
				i++
			}
		case strings.Contains(a, "=") && !strings.Contains(a, "/"):
		case before > 0:
			before--
		default:
			return words[i:]
		}
	}
	return nil
}
