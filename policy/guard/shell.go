package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// line checks a string that a shell runs. What is not known, and what is fish's,
// which is another language, is left alone.
func (c *checker) line(w word, shell string) error {
	if !w.known || shell == "fish" {
		return nil
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
		s.devices(n)
	case *syntax.BinaryCmd:
		if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
			s.forked = max(s.forked, n.End().Offset())
		}
	case *syntax.CallExpr:
		var words []word
		for _, a := range n.Args {
			words = append(words, s.word(a))
		}
		if s.err = s.command(words); len(words) > 0 && s.bomb(n, words[0].text) {
			s.err = words[0].refused(Catastrophic, words[0].text+"()", nil)
		}
	}
	return s.err == nil
}

// bomb reports whether a call is that of a function that starts itself in a
// pipe, or beside itself.
func (s *script) bomb(n *syntax.CallExpr, name string) bool {
	f, at := s.function, n.Pos().Offset()
	return f != nil && f.Name != nil && f.Name.Value == name && at < f.End().Offset() && at < s.forked && slices.Contains(s.names, Catastrophic)
}

// devices finds redirections to disks.
func (s *script) devices(n *syntax.Stmt) {
	for _, r := range n.Redirs {
		if w := s.word(r.Word); s.err == nil && r.Op != syntax.RdrIn && isDevice(w.text) && slices.Contains(s.names, Catastrophic) {
			s.err = w.refused(Catastrophic, r.Op.String()+" "+w.text, nil)
		}
	}
}

// word is a word's value, as far as the line itself says it.
func (s *script) word(n *syntax.Word) word {
	w := s.in
	if w.line == 0 { // else it stands in a string within this one
		w.line, w.column = int(n.Pos().Line()), int(n.Pos().Col())
	}
	text, known := Text(n.Parts, func(name string) (string, bool) { v := s.vars[name]; return v, v != "" })
	if w.text, w.known = text, known; !known {
		w.text = ""
	}
	return w
}

// Text is the value of a word, as far as its parts say it themselves and lookup
// knows the variables in it.
func Text(parts []syntax.WordPart, lookup func(name string) (string, bool)) (text string, known bool) {
	known = true
	for _, p := range parts {
		t, ok := "", false
		switch p := p.(type) {
		case *syntax.Lit:
			t, ok = strings.ReplaceAll(p.Value, `\`, ""), true
		case *syntax.SglQuoted:
			t, ok = p.Value, !p.Dollar || !strings.Contains(p.Value, `\`)
		case *syntax.DblQuoted:
			t, ok = Text(p.Parts, lookup)
		case *syntax.ParamExp:
			if p.Param != nil && !p.Excl && !p.Length && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil {
				t, ok = lookup(p.Param.Value)
			}
		}
		text, known = text+t, known && ok
	}
	return text, known
}
