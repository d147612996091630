package seatbelt_test

import (
	"errors"
	"fmt"
	"strings"
)

// The files sbpl_*_test.go execute Seatbelt profiles, on any system.
//
// They read the subset of Scheme that profiles are written in, run it with their own table of
// operations, and find the rule that decides about an operation on a target, in the order that
// was observed on macOS:
//
//   - the filtered rules of the very operation, the newest first;
//   - the operation's terminal: the last rule without filter, or else what is
//     built in, which is an answer or a jump to a more general operation;
//   - there the same again, up to "default".
//
// What macOS' compiler refuses is an error here, too: unknown operations and filters, a filter
// that does not fit the operation, a subpath that ends in a slash, a modifier given twice, a
// literal of 256 bytes.
//
// This is a model, made from others' descriptions and measurements. It can't show that a kernel
// agrees, which operations a program causes, how paths are made canonical, or that the dialects
// of regular expressions are the same.

// Profile is a compiled profile.
type Profile struct {
	release Release
	rules   map[string][]rule // by operation, the oldest first
	ends    map[string]rule   // the terminals that rules have replaced
	params  map[string]string
	version bool
}

// rule is one (allow ...) or (deny ...) for one operation.
type rule struct {
	allow  bool
	filter *filter
	line   int
}

// Decision is the answer to one question.
type Decision struct {
	Allowed bool
	Op      string // the operation whose rule decided
	Line    int    // of the profile; 0 for built-in rules
}

// value is what an expression evaluates to.
type value struct {
	text     string
	isString bool
	symbol   string
	number   int
	filter   *filter
	modifier string // of (with ...)
	truth    bool
}

// Compile executes a profile as release would compile it.
func Compile(text string, release Release, params map[string]string) (*Profile, error) {
	forms, err := readAll(text)
	if err != nil {
		return nil, err
	}
	p := &Profile{release: release, rules: map[string][]rule{}, ends: map[string]rule{}, params: params}
	for _, f := range forms {
		if err := p.top(f); err != nil {
			return nil, fmt.Errorf("line %d: %w", f.line, err)
		}
	}
	if !p.version {
		return nil, errors.New("no version specified")
	}
	return p, nil
}

// top executes a top-level form.
func (p *Profile) top(n node) error {
	switch n.head() {
	case "version":
		if len(n.list) != 2 || n.list[1].kind != numberNode || n.list[1].num != 1 {
			return errors.New("only version 1 is known")
		}
		p.version = true
	case "allow", "deny":
		if !p.version {
			return errors.New("no version specified")
		}
		return p.rule(n)
	case "debug":
	case "if", "when":
		if len(n.list) < 3 || n.head() == "if" && len(n.list) > 4 {
			return fmt.Errorf("%s is malformed", n.head())
		}
		c, err := p.eval(n.list[1])
		switch {
		case err != nil:
			return err
		case c.truth:
			return p.top(n.list[2])
		case n.head() == "if" && len(n.list) == 4:
			return p.top(n.list[3])
		}
	default:
		return fmt.Errorf("unbound variable: %s", n.head())
	}
	return nil
}

func (n node) head() string {
	if n.kind == listNode && len(n.list) > 0 && n.list[0].kind == symbolNode {
		return n.list[0].text
	}
	return ""
}

// bound reports whether the release knows an operation.
func (p *Profile) bound(op string) bool {
	o, ok := operations[op]
	return ok && p.release >= o.since
}

// rule executes (allow op... filter... modifier...).
func (p *Profile) rule(n node) error {
	allow := n.head() == "allow"
	var ops []string
	var any []*filter
	modifiers := map[string]bool{}
	for _, a := range n.list[1:] {
		if a.kind == symbolNode {
			if !p.bound(a.text) {
				return fmt.Errorf("unbound variable: %s", a.text)
			}
			ops = append(ops, a.text)
			continue
		}
		v, err := p.eval(a)
		if err != nil {
			return err
		}
		switch {
		case v.modifier != "":
			if modifiers[v.modifier] {
				return fmt.Errorf("duplicate modifier %s", v.modifier)
			}
			if err := checkModifier(v.modifier, allow); err != nil {
				return err
			}
			modifiers[v.modifier] = true
		case v.filter != nil:
			any = append(any, v.filter)
		default:
			return fmt.Errorf("%s takes operations and filters", n.head())
		}
	}
	if len(ops) == 0 {
		return fmt.Errorf("%s without operation", n.head())
	}
	for _, op := range ops {
		if err := p.add(op, allow, any, n.line); err != nil {
			return err
		}
	}
	return nil
}

func (p *Profile) add(op string, allow bool, any []*filter, line int) error {
	if len(any) == 0 {
		p.ends[op] = rule{allow: allow, line: line}
		return nil
	}
	for _, f := range any {
		if f.classes&operations[op].class == 0 {
			return fmt.Errorf("%s filter does not apply to %s operation", f.name, op)
		}
	}
	p.rules[op] = append(p.rules[op], rule{allow: allow, filter: requireAny(any), line: line})
	return nil
}

func checkModifier(m string, allow bool) error {
	switch m {
	case "no-log", "no-report":
		if allow {
			return fmt.Errorf("modifier %s does not apply to allow", m)
		}
	case "report", "grant", "no-sandbox":
		if !allow {
			return fmt.Errorf("modifier %s does not apply to deny", m)
		}
	case "message", "send-signal":
	default:
		return fmt.Errorf("modifier %s is unknown", m)
	}
	return nil
}

// eval evaluates an argument.
func (p *Profile) eval(n node) (value, error) {
	switch n.kind {
	case stringNode:
		return value{text: n.text, isString: true, truth: true}, nil
	case symbolNode:
		if n.text == "tiocsti" && p.release < namesTIOCSTI {
			return value{}, fmt.Errorf("unbound variable: %s", n.text)
		}
		return value{symbol: n.text, truth: true}, nil
	case numberNode:
		return value{number: n.num, truth: true}, nil
	}
	head := n.head()
	if head == "" {
		return value{}, errors.New("a form without name")
	}
	args := n.list[1:]
	switch head {
	case "quote":
		return value{symbol: args[0].text, truth: true}, nil
	case "with":
		if len(args) == 0 || args[0].kind != symbolNode {
			return value{}, errors.New("with takes a modifier")
		}
		return value{modifier: args[0].text}, nil
	}
	var vs []value
	for _, a := range args {
		v, err := p.eval(a)
		if err != nil {
			return value{}, err
		}
		vs = append(vs, v)
	}
	return p.apply(head, vs)
}

// apply calls a function of the language.
func (p *Profile) apply(head string, args []value) (value, error) {
	switch head {
	case "string-append":
		var b strings.Builder
		for _, a := range args {
			if !a.isString {
				return value{}, errors.New("string-append takes strings")
			}
			b.WriteString(a.text)
		}
		return value{text: b.String(), isString: true, truth: true}, nil
	case "param":
		s, err := oneString(args)
		v, ok := p.params[s]
		return value{text: v, isString: ok, truth: ok}, err
	case "defined?":
		_, isFilter := makers[args[0].symbol]
		isRequest := args[0].symbol == "tiocsti" && p.release >= namesTIOCSTI
		return value{truth: isFilter || isRequest || p.bound(args[0].symbol)}, nil
	case "require-any", "require-all", "require-not":
		return combine(head, args)
	case "remote", "local":
		m, err := network(head, args)
		return value{filter: &filter{name: head, classes: onNetwork, match: m}}, err
	}
	mk, ok := makers[head]
	if !ok {
		return value{}, fmt.Errorf("unbound variable: %s", head)
	}
	m, err := mk.make(args)
	return value{filter: &filter{name: head, classes: mk.classes, match: m, path: mk.classes == pathClasses}}, err
}
