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

// Catastrophic is the list of what destroys a machine or a home directory.
const Catastrophic = "catastrophic"

// Guard compares command lines with the lists that are on.
type Guard struct {
	lists     map[string][]string // all: the table's, and the policy's
	on        []string            // names of lists
	home, dir string
}

// entries are those of a section of the guard's table.
func entries(section string) []string { return tables.Find(tables.Guard(), section) }

// New makes a Guard of the lists that p switches on, and nil when there are
// none. Home and dir are what "~" and relative paths mean to the command. The
// error is a policy.Errors, with the place of each list that is not known.
func New(p *policy.Guard, home, dir string) (*Guard, error) {
	if len(p.Lists) == 0 {
		return nil, nil
	}
	g := &Guard{home: home, dir: dir, lists: map[string][]string{}}
	for _, s := range tables.Guard() {
		if list, ok := strings.CutPrefix(s.Name, "list "); ok {
			g.lists[list] = s.Entries
		}
	}
	for list, words := range p.Words {
		for _, w := range words {
			g.lists[list] = append(g.lists[list], w.Value)
		}
	}
	var errs policy.Errors
	for _, n := range p.Lists {
		if g.on = append(g.on, n.Value); g.lists[n.Value] == nil {
			errs = append(errs, &policy.Error{Origin: n.Origin, Code: policy.CodeValue,
				Msg: fmt.Sprintf("unknown guard list %q: there are %s", n.Value, strings.Join(slices.Sorted(maps.Keys(g.lists)), ", "))})
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
	c := checker{Guard: g, cwd: g.dir, vars: map[string]string{"HOME": g.home}, left: maxWork}
	var words []word
	for i, a := range argv {
		words = append(words, word{text: a, known: true, at: Refusal{Arg: i}})
	}
	return c.command(words)
}

// word is a word of a command line. What the guard can't know is "".
type word struct {
	text  string
	known bool
	at    Refusal // the place alone
}

func (w word) refused(list, what string, err error) error {
	r := w.at
	r.List, r.Word, r.Err = list, what, err
	return &r
}

// checker is one look at a command line.
type checker struct {
	*Guard
	cwd  string            // as far as cd(1) was followed; "" for not known
	vars map[string]string // what the line assigns
	left int               // of maxWork
}

// maxWork is how much of a command line is looked at: bytes of what shells run and of
// the values in it, and perWord for each word of each command. Who writes the line may
// have it say far more than it is long.
const (
	maxWork = 8 << 20
	perWord = 8
)

var errTooMuch = errors.New("it says too much")

// spend takes some of what is left to be looked at, and reports whether that was there.
func (c *checker) spend(n int) bool {
	c.left -= n
	return c.left >= 0
}

// command checks a command with its arguments, and the ones that it runs.
func (c *checker) command(words []word) error {
	if len(words) == 0 || words[0].text == "" {
		return nil
	}
	if !c.spend(perWord * len(words)) {
		return words[0].refused("", "", errTooMuch)
	}
	for _, list := range c.on {
		for _, entry := range c.lists[list] {
			if w, what, ok := c.has(words, strings.Fields(entry)); ok {
				return w.refused(list, what, nil)
			}
		}
	}
	switch name, args := path.Base(words[0].text), words[1:]; name {
	case "eval":
		all, texts := word{known: true, at: words[0].at}, make([]string, len(args))
		for i, a := range args {
			if all.known = all.known && a.known; i == 0 {
				all.at = a.at
			}
			texts[i] = a.text
		}
		all.text = strings.Join(texts, " ")
		return c.line(all, name)
	case "find":
		for i, a := range args {
			if glob("-exec*", a.text) || glob("-ok*", a.text) {
				if err := c.command(args[i+1:]); err != nil {
					return err
				}
			}
		}
	case "cd", "pushd":
		if c.cwd = ""; len(args) > 0 && args[len(args)-1].known {
			c.cwd = c.absolute(args[len(args)-1].text)
		}
	default:
		return c.runs(name, args)
	}
	return nil
}

// runs checks the command line, or the line for a shell, that a command is given.
func (c *checker) runs(name string, args []word) error {
	runners := entries("runs")
	i := slices.IndexFunc(runners, func(r string) bool { return strings.HasPrefix(r, name+" ") })
	if i < 0 {
		return nil
	}
	valued, how, _ := strings.Cut(runners[i][len(name)+1:], " ")
	shell, before := how == "shell", how == "1"
	line := false // -c is given
	for i := 0; i < len(args); i++ {
		switch a := args[i].text; {
		case isOption(a) || shell && len(a) > 1 && a[0] == '+':
			if line = line || isShort(a) && strings.Contains(a, "c"); a[1] != '-' && strings.Contains(valued, a[len(a)-1:]) {
				i++
			}
		case shell && line:
			return c.line(args[i], name)
		case shell:
			return nil // a script
		case a == "--", strings.Contains(a, "=") && !strings.Contains(a, "/"):
		case before:
			before = false
		default:
			return c.command(args[i:])
		}
	}
	return nil
}

// has reports whether a command has the words of an entry, in their order: what
// it has, and which word is to blame, the one that stands for {vital} or
// {device}, or the name. An option that comes first in the entry stands before
// the first operand: what comes later is a script's.
func (c *checker) has(args []word, entry []string) (blamed word, what string, ok bool) {
	if len(entry) == 0 || !glob(entry[0], path.Base(args[0].text)) {
		return blamed, "", false
	}
	blamed, what, args = args[0], path.Base(args[0].text), args[1:]
	operand := false
	for _, want := range entry[1:] {
		option := want[0] == '-'
		i := slices.IndexFunc(args, func(a word) bool { return c.fits(want, a.text) })
		if i < 0 || option && !operand && slices.ContainsFunc(args[:i], func(a word) bool { return !isOption(a.text) }) {
			return blamed, "", false
		}
		if strings.Contains(want, "{") {
			blamed = args[i]
		}
		if strings.ContainsAny(want, "{*?[") {
			want = args[i].text
		}
		what += " " + want
		args, operand = args[i+1:], operand || !option
	}
	return blamed, what, true
}

// fits compares a word with one of an entry. -c is found in -ec, too.
func (c *checker) fits(want, text string) bool {
	if before, kind, ok := strings.Cut(want, "{"); ok {
		text, ok = strings.CutPrefix(text, before)
		return ok && (kind == "vital}" && c.vital(text) || kind == "device}" && device(text))
	}
	if want[0] != '-' {
		return !isOption(text) && (want == "*" || glob(want, text))
	}
	return glob(want, text) || len(want) == 2 && isShort(text) && strings.Contains(text, want[1:]) || strings.HasPrefix(text, want+"=")
}

// absolute is a path as the command will take it, lexically; "" when that is
// not known.
func (c *checker) absolute(p string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		p = c.home + p[1:]
	}
	if !path.IsAbs(p) && c.cwd == "" {
		return ""
	} else if !path.IsAbs(p) {
		p = c.cwd + "/" + p
	}
	return path.Clean(p)
}

// vital reports whether a path is one that must not be lost, or all that is in
// one.
func (c *checker) vital(text string) bool {
	p := c.absolute(text)
	for p != "/" && strings.Trim(path.Base(p), "*?.[!]") == "" && p != "" {
		p = path.Dir(p)
	}
	return text != "" && p != "" && (policy.Within(c.home, p) || p == "/" || slices.Contains(entries("vital"), p))
}

// device tells a device that keeps what is written from those that do not.
func device(p string) bool {
	name, ok := strings.CutPrefix(path.Clean(p), "/dev/")
	return ok && !slices.ContainsFunc(entries("harmless"), func(h string) bool { return glob(h, name) }) &&
		(!strings.Contains(name, "/") || glob("disk/*", name) || glob("mapper/*", name) || glob("disk/*/*", name))
}

func glob(pattern, s string) bool { ok, _ := path.Match(pattern, s); return ok }

func isOption(s string) bool { return len(s) > 1 && s[0] == '-' && s != "--" }

func isShort(s string) bool { return isOption(s) && s[1] != '-' }
