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
	switch shell {
	case "zsh":
		lang = syntax.LangZsh
	case "mksh", "ksh", "ksh93":
		lang = syntax.LangMirBSDKorn
	}
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(strings.ToValidUTF8(w.text, "\uFFFD")), "")
	if err != nil {
		return &Refusal{Arg: w.arg, Line: w.line, Column: w.column, Err: err}
	}
	return c.deeper(w, func() error {
		s := script{checker: c, in: w}
		syntax.Walk(file, s.visit)
		return s.err
	})
}

// script is one parsed line, and the first thing that is wrong with it.
type script struct {
	*checker
	in  word // the string itself
	err error
}

// visit is called for each node, in the order of the text.
func (s *script) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Assign:
		if n.Name != nil && n.Value != nil {
			s.vars[n.Name.Value] = s.word(n.Value).text
		}
	case *syntax.CallExpr:
		for _, a := range n.Assigns {
			s.visit(a)
		}
		s.err = s.command(s.words(n.Args))
	case *syntax.Stmt:
		s.redirections(n)
	case *syntax.BinaryCmd:
		if call, ok := n.X.Cmd.(*syntax.CallExpr); ok && n.Op == syntax.Pipe && s.readsLines(n.Y) {
			if words := s.words(call.Args); len(words) > 1 && (base(words[0]) == "echo" || base(words[0]) == "printf") {
				s.err = s.line(joined(operands(words[1:])), "bash")
			}
		}
	case *syntax.FuncDecl:
		s.bomb(n)
	}
	return s.err == nil
}

// words are the arguments of a call, with "$v" split where it is not quoted.
func (s *script) words(args []*syntax.Word) []word {
	var out []word
	for _, a := range args {
		w := s.word(a)
		if _, plain := a.Parts[0].(*syntax.ParamExp); len(a.Parts) == 1 && plain && strings.Contains(w.text, " ") {
			for f := range strings.FieldsSeq(w.text) {
				w.text = f
				out = append(out, w)
			}
			continue
		}
		out = append(out, w)
	}
	return out
}

// word is a word's value, as far as the line itself says it.
func (s *script) word(n *syntax.Word) word {
	w := s.in
	if w.text = ""; w.line == 0 { // else it stands in a string within this one
		w.line, w.column = int(n.Pos().Line()), int(n.Pos().Col())
	}
	for i, p := range n.Parts {
		text, ok := s.part(p, false)
		if _, lit := p.(*syntax.Lit); lit && i == 0 && (text == "~" || strings.HasPrefix(text, "~/")) {
			text = s.home + text[1:]
		}
		w.text += text
		w.known = w.known && ok
	}
	if !w.known {
		w.text = ""
	}
	return w
}

func (s *script) part(p syntax.WordPart, quoted bool) (text string, ok bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			return p.Value, true
		}
		return strings.ReplaceAll(p.Value, `\`, ""), true
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar || !strings.Contains(p.Value, `\`)
	case *syntax.DblQuoted:
		ok = true
		for _, in := range p.Parts {
			t, known := s.part(in, true)
			text, ok = text+t, ok && known
		}
		return text, ok
	case *syntax.ParamExp:
		if p.Param != nil && !p.Excl && !p.Length && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil {
			text, ok = s.vars[p.Param.Value]
		}
	}
	return text, ok && text != ""
}

// redirections are files that are written, and what a shell is given to read.
func (s *script) redirections(n *syntax.Stmt) {
	for _, r := range n.Redirs {
		if text := r.Hdoc; text != nil || r.Op == syntax.WordHdoc {
			if text == nil {
				text = r.Word
			}
			if s.err == nil && s.readsLines(n) {
				s.err = s.line(s.word(text), "bash")
			}
		} else if w := s.word(r.Word); s.err == nil && r.Op != syntax.RdrIn && isDevice(w.text) && slices.Contains(s.names, Catastrophic) {
			s.err = s.refuse(w, Catastrophic, r.Op.String()+" "+w.text)
		}
	}
}

// readsLines tells a shell that runs what it reads.
func (s *script) readsLines(n *syntax.Stmt) bool {
	call, ok := n.Cmd.(*syntax.CallExpr)
	if !ok {
		return false
	}
	words := s.words(call.Args)
	for len(words) > 0 && !isShell(base(words[0])) {
		words = runs(words)
	}
	return len(words) > 0 && len(operands(words[1:])) == 0
}

// bomb finds a function that starts itself in a pipe, or beside itself.
func (s *script) bomb(f *syntax.FuncDecl) {
	calls, forks := false, false
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			calls = calls || len(n.Args) > 0 && f.Name != nil && s.word(n.Args[0]).text == f.Name.Value
		case *syntax.BinaryCmd:
			forks = forks || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		case *syntax.Stmt:
			forks = forks || n.Background
		}
		return true
	})
	if calls && forks && slices.Contains(s.names, Catastrophic) {
		s.err = s.refuse(s.word(&syntax.Word{Parts: []syntax.WordPart{f.Name}}), Catastrophic, f.Name.Value+"()")
	}
}
