package guard

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// Catastrophic is the list of what destroys a machine or a home directory: its
// words, and the rules in catastrophic.go.
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
	lists     map[string][]string // entries
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
	known := map[string][]string{}
	for line := range strings.Lines(listFile) {
		name, words, _ := strings.Cut(line, ":")
		known[name] = strings.Split(words, "|")
	}
	for _, w := range p.Words {
		known[w.List] = append(known[w.List], w.Words)
	}
	g := &Guard{lists: known, home: home, dir: dir}
	var errs policy.Errors
	for _, n := range p.Lists {
		if known[n.Value] == nil {
			errs = append(errs, &policy.Error{Origin: n.Origin, Code: policy.CodeValue,
				Msg: fmt.Sprintf("unknown guard list %q: there are %s", n.Value, strings.Join(slices.Sorted(maps.Keys(known)), ", "))})
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
	Word   string // the entry, or what a rule found: "rm -r /"
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

// checker is one look at a command line.
type checker struct {
	*Guard
	cwd   string            // as far as cd(1) was followed; "" for not known
	vars  map[string]string // what the line assigns
	depth int
}

func (c *checker) refuse(w word, list, what string) error {
	return &Refusal{List: list, Word: what, Arg: w.arg, Line: w.line, Column: w.column}
}

// deeper bounds how deep lines within lines are followed.
func (c *checker) deeper(w word, check func() error) error {
	if c.depth++; c.depth > 20 {
		return &Refusal{Arg: w.arg, Line: w.line, Column: w.column, Err: errors.New("it is nested too deeply")}
	}
	defer func() { c.depth-- }()
	return check()
}

// command checks a command with its arguments, and the ones that it runs.
func (c *checker) command(words []word) error {
	if len(words) == 0 || words[0].text == "" {
		return nil
	}
	for _, name := range c.names {
		for _, entry := range c.lists[name] {
			if e := strings.Fields(entry); len(e) > 0 && glob(e[0], base(words[0])) && has(words[1:], e[1:]) {
				return c.refuse(words[0], name, strings.Join(e, " "))
			}
		}
		if name == Catastrophic {
			if err := c.catastrophic(base(words[0]), words[1:]); err != nil {
				return err
			}
		}
	}
	return c.deeper(words[0], func() error {
		if err := c.command(runs(words)); err != nil {
			return err
		}
		return c.runsMore(base(words[0]), words[1:])
	})
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

// runsMore checks what commands run that is not simply their last words.
func (c *checker) runsMore(name string, args []word) error {
	switch {
	case isShell(name) || name == "su" || name == "script":
		for i, a := range args {
			switch {
			case a.text == "--command" || len(a.text) > 1 && a.text[0] == '-' && a.text[1] != '-' && strings.Contains(a.text, "c"):
				for _, s := range operands(args[i+1:]) {
					return c.line(s, name)
				}
			case isShell(name) && !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "+"):
				return nil
			}
		}
	case name == "eval" || name == "watch":
		return c.line(joined(operands(args)), "bash")
	case name == "trap" && len(args) > 0:
		return c.line(args[0], "bash")
	case name == "find" || name == "fd" || name == "fdfind":
		for i, a := range args {
			if slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec"}, a.text) {
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

// has reports whether the arguments have an entry's words in their order. An
// option that comes first in the entry stands before the first operand: what
// comes later is a script's.
func has(args []word, entry []string) bool {
	operand := false
	for _, want := range entry {
		found := false
		for i, a := range args {
			option := strings.HasPrefix(a.text, "-") && a.text != "--"
			if want[0] == '-' && !operand && !option {
				return false
			}
			short := len(want) == 2 && want[0] == '-' && option && a.text[1:] != "" && a.text[1] != '-'
			if found = glob(want, a.text) || short && strings.Contains(a.text, want[1:]) || strings.HasPrefix(a.text, want+"="); found {
				args = args[i+1:]
				break
			}
		}
		if !found {
			return false
		}
		operand = operand || want[0] != '-'
	}
	return true
}

func glob(pattern, s string) bool { ok, _ := path.Match(pattern, s); return ok }

func base(w word) string { return w.text[strings.LastIndexByte(w.text, '/')+1:] }

func isShell(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "rbash", "fish"}, name)
}

// operands are the arguments that are no options.
func operands(args []word) []word {
	for i, w := range args {
		if w.text == "--" {
			return slices.Concat(operands(args[:i]), args[i+1:])
		}
	}
	return slices.DeleteFunc(slices.Clone(args), func(w word) bool { return len(w.text) > 1 && w.text[0] == '-' })
}

// joined are words as one, as eval(1p) takes them.
func joined(words []word) (w word) {
	for i, more := range words {
		if i == 0 {
			w = more
			continue
		}
		w.text += " " + more.text
		w.known = w.known && more.known
	}
	return w
}
