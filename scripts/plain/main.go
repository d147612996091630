// Command plain finds lines of Go that say more than one thing:
//
//	go run ./scripts/plain [-list] [DIR]
//
// It counts, in files that are not generated, below DIR or the working directory,
//
//   - header: a statement other than := in the header of an if or switch, in tests, too
//   - parallel: an assignment of several values that do not come from one call; a swap is one,
//     and so is the header of a for statement
//   - switch: a switch without a tag that has more than three cases, whose order a reader must keep in mind
//   - long: a line of more than 120 columns, a tab being four
//
// and fails if there are more of a kind than the bounds below, which only ever get smaller.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// bounds are how many findings of each kind there may be.
var bounds = []bound{
	{"header", 0},
	{"parallel", 0},
	{"switch", 0},
	{"long", 0},
}

type bound struct {
	kind string
	most int
}

// columns is the width of a line.
const columns = 120

func main() {
	list := flag.Bool("list", false, "print each finding")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	found, err := search(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *list {
		for _, f := range found {
			fmt.Printf("%s: %s\n", f.at, f.kind)
		}
	}
	status := 0
	for _, b := range bounds {
		n := 0
		for _, f := range found {
			if f.kind == b.kind {
				n++
			}
		}
		fmt.Printf("%-8s %4d, the bound is %d\n", b.kind, n, b.most)
		if n > b.most {
			status = 1
		}
	}
	os.Exit(status)
}

type finding struct {
	at   token.Position
	kind string
}

// search returns what is found in the files below a directory.
func search(root string) ([]finding, error) {
	var all []finding
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "testdata" || e.Name() == ".git") {
			return filepath.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found, err := inspect(name, src)
		if strings.HasSuffix(name, "_test.go") {
			found = slices.DeleteFunc(found, func(f finding) bool { return f.kind != "header" })
		}
		all = append(all, found...)
		return err
	})
	return all, err
}

// inspect returns what is found in a file. A generated file has nothing.
func inspect(name string, src []byte) ([]finding, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var all []finding
	add := func(n ast.Node, kind string) {
		all = append(all, finding{set.Position(n.Pos()), kind})
	}
	loops := make(map[ast.Stmt]bool) // the headers of for statements
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if acts(n.Init) {
				add(n, "header")
			}
		case *ast.SwitchStmt:
			if acts(n.Init) {
				add(n, "header")
			}
			if n.Tag == nil && cases(n) > 3 {
				add(n, "switch")
			}
		case *ast.ForStmt:
			loops[n.Init] = true
			loops[n.Post] = true
		case *ast.AssignStmt:
			if len(n.Rhs) > 1 && !swaps(n) && !loops[n] {
				add(n, "parallel")
			}
		}
		return true
	})
	for i, line := range bytes.Split(src, []byte("\n")) {
		if width(line) > columns {
			all = append(all, finding{token.Position{Filename: name, Line: i + 1}, "long"})
		}
	}
	return all, nil
}

// acts reports whether a header has a statement that does not only define something.
func acts(s ast.Stmt) bool {
	a, ok := s.(*ast.AssignStmt)
	return s != nil && (!ok || a.Tok != token.DEFINE)
}

// cases counts the cases of a switch except the default.
func cases(s *ast.SwitchStmt) int {
	n := 0
	for _, c := range s.Body.List {
		if c.(*ast.CaseClause).List != nil {
			n++
		}
	}
	return n
}

// swaps reports whether an assignment has the same operands on both sides, in another order.
func swaps(a *ast.AssignStmt) bool {
	return slices.Equal(texts(a.Lhs), texts(a.Rhs))
}

// texts returns the sorted sources of expressions.
func texts(all []ast.Expr) []string {
	var out []string
	for _, e := range all {
		var b bytes.Buffer
		if err := format.Node(&b, token.NewFileSet(), e); err != nil {
			return nil
		}
		out = append(out, b.String())
	}
	slices.Sort(out)
	return out
}

// width returns how many columns a line takes.
func width(line []byte) int {
	return utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t"))
}
