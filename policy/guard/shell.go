package guard

import (
	"cmp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// line checks a string that a shell runs, unless it is not known.
func (c *checker) line(text, shell string) error {
	if strings.Contains(text, unknown) {
		return nil
	}
	lang := syntax.LangBash // what sh takes, and more
	if shell == "zsh" {
		lang = syntax.LangZsh
	}
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(strings.ToValidUTF8(text, "\uFFFD")), "")
	if err != nil {
		return refuse("the guard can't read the shell line: %v", err)
	}
	s := script{checker: c}
	syntax.Walk(file, s.visit)
	return s.err
}

// script is one parsed line, and the first thing that is wrong with it.
type script struct {
	*checker
	err      error
	function *syntax.FuncDecl // the last one
	forked   uint             // where in the text what runs beside the rest ends
}

// visit is called for each node, in the order of the text. For the lists, a redirection
// is a command, and so is "name()", a function that starts itself beside itself.
func (s *script) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Assign:
		if n.Name != nil && n.Value != nil {
			s.vars[n.Name.Value] = s.text(n.Value)
		}
	case *syntax.FuncDecl:
		s.function = n
	case *syntax.Stmt:
		if n.Background {
			s.forked = max(s.forked, n.End().Offset())
		}
		for _, r := range n.Redirs {
			s.check(r.Op.String(), s.text(r.Word))
		}
	case *syntax.BinaryCmd:
		if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
			s.forked = max(s.forked, n.End().Offset())
		}
	case *syntax.CallExpr:
		var words []string
		for _, a := range n.Args {
			words = append(words, s.text(a))
		}
		s.check(words...)
		f, at := s.function, n.Pos().Offset()
		if f != nil && f.Name != nil && words != nil && f.Name.Value == words[0] && at < f.End().Offset() && at < s.forked {
			s.check(words[0] + "()")
		}
	}
	return s.err == nil
}

// check checks a command, unless one before it was refused.
func (s *script) check(words ...string) {
	if s.err == nil {
		s.err = s.command(words)
	}
}

// text is a word's value, as far as the line itself says it. The values of variables
// count before the word is made of them.
func (s *script) text(w *syntax.Word) string {
	return Text(w.Parts, func(name string) string {
		if s.left -= len(s.vars[name]); s.left < 0 {
			return "" // the next command is refused
		}
		return s.vars[name]
	})
}

// Text is the value of a word, as far as its parts say it themselves and vars knows the
// variables in it, with a NUL for what is not known.
func Text(parts []syntax.WordPart, vars func(name string) string) string {
	var b strings.Builder
	for _, part := range parts {
		text := unknown
		switch p := part.(type) {
		case *syntax.Lit:
			text = strings.ReplaceAll(p.Value, `\`, "")
		case *syntax.SglQuoted:
			if !p.Dollar || !strings.Contains(p.Value, `\`) {
				text = p.Value
			}
		case *syntax.DblQuoted:
			text = Text(p.Parts, vars)
		case *syntax.ParamExp: // $x or ${x}, not ${x:-y}
			if p.Param != nil && int(p.End().Offset()-p.Pos().Offset()) <= len("${}")+len(p.Param.Value) {
				text = cmp.Or(vars(p.Param.Value), unknown)
			}
		}
		b.WriteString(text)
	}
	return b.String()
}
