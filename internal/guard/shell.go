package guard

import (
	"cmp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// line checks a string that a shell runs, unless part of it is unknown. For the lists, a
// redirection is a command, and so is "name()", a function that starts itself in parallel.
func (c *checker) line(text, shell string) error {
	if strings.Contains(text, unknown) {
		return nil
	}
	if depth(text) > maxDepth {
		return refuse("the guard can't read the shell line: it is nested more than %d levels deep", maxDepth)
	}
	lang := syntax.LangBash // what sh takes, and more
	if shell == "zsh" {
		lang = syntax.LangZsh
	}
	valid := strings.NewReader(strings.ToValidUTF8(text, "\uFFFD"))
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(valid, "")
	if err != nil {
		return refuse("the guard can't read the shell line: %v", err)
	}
	home := map[string]string{"HOME": c.home}
	check := func(words ...string) { err = cmp.Or(err, c.command(words)) }
	var function *syntax.FuncDecl // the last one
	var forked uint               // where the last part of the text ends that runs in parallel
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			function = n
		case *syntax.Stmt:
			if n.Background {
				forked = max(forked, n.End().Offset())
			}
			for _, r := range n.Redirs {
				check(r.Op.String(), Text(r.Word.Parts, home))
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				forked = max(forked, n.End().Offset())
			}
		case *syntax.CallExpr:
			var words []string
			for _, a := range n.Args {
				words = append(words, Text(a.Parts, home))
			}
			check(words...)
			at := n.Pos().Offset()
			if words != nil && at < forked && calls(function, words[0], at) {
				check(words[0] + "()")
			}
		}
		return err == nil
	})
	return err
}

// calls reports whether a command at an offset is a function's call of itself. f may be nil.
func calls(f *syntax.FuncDecl, name string, at uint) bool {
	return f != nil && f.Name != nil && f.Name.Value == name && at < f.End().Offset()
}

// maxDepth is how deep a shell line may be nested. The parser's time and memory grow with the
// depth.
const maxDepth = 500

// depth returns how many brackets are open at the most at one point of a text. Brackets in
// quotes count too.
func depth(text string) (deepest int) {
	open := 0
	for _, c := range []byte(text) {
		switch c {
		case '(', '{', '[':
			open++
			deepest = max(deepest, open)
		case ')', '}', ']':
			open = max(0, open-1) // that of a case has no opening one
		}
	}
	return deepest
}

// Text returns the value of a word, with the variables in vars, and a NUL for each part
// that is not known.
func Text(parts []syntax.WordPart, vars map[string]string) string {
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
				text = cmp.Or(vars[p.Param.Value], unknown)
			}
		}
		b.WriteString(text)
	}
	return b.String()
}
