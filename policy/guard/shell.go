package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// line checks a string that a shell runs, unless it is not known.
func (c *checker) line(w word, shell string) error {
	if !w.known {
		return nil
	}
	if !c.spend(len(w.text)) {
		return w.refused("", "", errTooMuch)
	}
	lang := syntax.LangBash // what sh takes, and more
	if shell == "zsh" {
		lang = syntax.LangZsh
	}
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(strings.ToValidUTF8(w.text, "\uFFFD")), "")
	if err != nil {
		return w.refused("", "", err)
	}
	s := script{checker: c, in: w}
	syntax.Walk(file, s.visit)
	return s.err
}

// script is one parsed line, and the first thing that is wrong with it.
type script struct {
	*checker
	in       word // the string itself
	err      error
	function *syntax.FuncDecl // the last one
	forked   uint             // where in the text what runs beside the rest ends
}

// visit is called for each node, in the order of the text.
func (s *script) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Assign:
		if n.Name != nil && n.Value != nil {
			s.vars[n.Name.Value] = s.word(n.Value).text
		}
	case *syntax.FuncDecl:
		s.function = n
	case *syntax.Stmt:
		if n.Background {
			s.forked = max(s.forked, n.End().Offset())
		}
		for _, r := range n.Redirs {
			if w := s.word(r.Word); r.Op != syntax.RdrIn && device(w.text) {
				s.catastrophe(w, r.Op.String()+" "+w.text)
			}
		}
	case *syntax.BinaryCmd:
		if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
			s.forked = max(s.forked, n.End().Offset())
		}
	case *syntax.CallExpr:
		var words []word
		for _, a := range n.Args {
			if words = append(words, s.word(a)); s.err != nil {
				return false
			}
		}
		s.err = s.command(words)
		// A function that starts itself in a pipe, or beside itself, is a bomb.
		if f, at := s.function, n.Pos().Offset(); f != nil && f.Name != nil && words != nil && f.Name.Value == words[0].text && at < f.End().Offset() && at < s.forked {
			s.catastrophe(words[0], f.Name.Value+"()")
		}
	}
	return s.err == nil
}

func (s *script) catastrophe(w word, what string) {
	if s.err == nil && slices.Contains(s.on, Catastrophic) {
		s.err = w.refused(Catastrophic, what, nil)
	}
}

// word is a word's value, as far as the line itself says it.
func (s *script) word(n *syntax.Word) word {
	w := s.in
	if w.at.Line == 0 { // else it stands in a string within this one
		w.at.Line, w.at.Column = int(n.Pos().Line()), int(n.Pos().Col())
	}
	w.text, w.known = Text(n.Parts, func(name string) string { return s.vars[name] })
	if s.err == nil && !s.spend(len(w.text)) {
		s.err = w.refused("", "", errTooMuch)
	}
	return w
}

// Text is the value of a word, as far as its parts say it themselves and vars
// knows the variables in it: "" is not known, nor what is longer than maxText.
func Text(parts []syntax.WordPart, vars func(name string) string) (text string, known bool) {
	var b strings.Builder
	for _, p := range parts {
		t, ok := "", false
		switch p := p.(type) {
		case *syntax.Lit:
			t, ok = strings.ReplaceAll(p.Value, `\`, ""), true
		case *syntax.SglQuoted:
			t, ok = p.Value, !p.Dollar || !strings.Contains(p.Value, `\`)
		case *syntax.DblQuoted:
			t, ok = Text(p.Parts, vars)
		case *syntax.ParamExp:
			if p.Param != nil && !p.Excl && !p.Length && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil {
				t = vars(p.Param.Value)
				ok = t != ""
			}
		}
		if !ok || b.Len()+len(t) > maxText {
			return "", false
		}
		b.WriteString(t)
	}
	return b.String(), true
}

// maxText is the longest word in bytes that a program can be given (execve(2),
// MAX_ARG_STRLEN).
const maxText = 128 << 10
