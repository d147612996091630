package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// mostPublic is how many names all packages that other modules can import may export.
const mostPublic = 160

// TestPublicNames: what other modules can import exports few names, each with a sentence, and
// no type of an internal package in a signature, a field or a definition.
func TestPublicNames(t *testing.T) {
	total := 0
	for _, room := range []string{"policy", "enforce", "track"} {
		err := filepath.WalkDir("../"+room, func(file string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if name := e.Name(); e.IsDir() && (name == "internal" || name == "testdata") {
				return filepath.SkipDir
			}
			if e.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return nil
			}
			if n := publicNames(t, file); !strings.HasSuffix(file, "_darwin.go") {
				total += n // these exist for Linux, too
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d names", total)
	if total > mostPublic {
		t.Errorf("%d public names, the bound is %d", total, mostPublic)
	}
}

// publicNames checks the exported declarations of a file, and counts them.
func publicNames(t *testing.T, file string) (n int) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	internal := make(map[string]bool)
	for _, i := range parsed.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		internal[name] = strings.Contains(path, "/internal/")
	}
	name := func(id *ast.Ident, doc ...*ast.CommentGroup) {
		n++
		for _, d := range doc {
			if d.Text() != "" {
				return
			}
		}
		t.Errorf("%s: %s has no sentence", set.Position(id.Pos()), id.Name)
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() || d.Recv != nil && !isPublic(d.Recv.List[0].Type) {
				continue
			}
			name(d.Name, d.Doc)
			noInternal(t, set, internal, d.Type)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						name(s.Name, s.Doc, d.Doc)
						noInternal(t, set, internal, s.Type)
					}
				case *ast.ValueSpec:
					for _, id := range s.Names {
						if id.IsExported() {
							name(id, s.Doc, s.Comment, d.Doc)
							noInternal(t, set, internal, s.Type)
						}
					}
				}
			}
		}
	}
	return n
}

// isPublic reports whether a receiver's type is exported.
func isPublic(receiver ast.Expr) bool {
	if s, ok := receiver.(*ast.StarExpr); ok {
		receiver = s.X
	}
	id, ok := receiver.(*ast.Ident)
	return ok && id.IsExported()
}

// noInternal fails for each type of an internal package in a type, except in fields that are not
// exported.
func noInternal(t *testing.T, set *token.FileSet, internal map[string]bool, of ast.Expr) {
	t.Helper()
	if of == nil {
		return
	}
	ast.Inspect(of, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && len(f.Names) > 0 && !f.Names[0].IsExported() {
			_, method := of.(*ast.FuncType)
			return method // parameters have small names
		}
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && internal[pkg.Name] {
				t.Errorf("%s: %s.%s is a type of an internal package", set.Position(n.Pos()), pkg.Name, sel.Sel.Name)
			}
		}
		return true
	})
}
