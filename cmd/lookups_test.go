package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLookUps: what protects and denies looks at files by host.Host.Look, Way and List, whose
// answers say whether something is unknown. Only those below may use the bare system calls. No error
// of a look-up may be dropped, unless a comment on the line says why that is harmless.
func TestLookUps(t *testing.T) {
	bare := []string{"Lstat", "ReadDir"}
	allowed := []string{
		"internal/host/look.go", "internal/host/walk.go", "internal/host/listing.go", "internal/host/foreign.go", "internal/enforce/noted.go", "internal/enforce/protect/gitlinks.go",
	}
	errs := []string{"RealPath", "RealDir", "Trail", "Walk", "Spelled", "Entries", "ReadFile", "ReadRegular", "GitDir", "GitPointer", "Readlink"}
	for _, room := range []string{"policy", "internal/host", "internal/resolve", "internal/enforce"} {
		err := filepath.WalkDir("../"+room, func(file string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			name := strings.TrimPrefix(filepath.ToSlash(file), "../")
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			harmless := make(map[int]bool) // lines that say why
			for _, c := range parsed.Comments {
				harmless[set.Position(c.Pos()).Line] = strings.Contains(c.Text(), "harmless: ")
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if called := methodOf(n); slices.Contains(bare, called) && !slices.Contains(allowed, name) {
					t.Errorf("%s: %s: use host.Host.Look or host.List", set.Position(n.Pos()), called)
				}
				a, ok := n.(*ast.AssignStmt)
				if !ok || len(a.Rhs) != 1 {
					return true
				}
				at := set.Position(n.Pos())
				last, ok := a.Lhs[len(a.Lhs)-1].(*ast.Ident)
				called := methodOf(a.Rhs[0])
				if ok && last.Name == "_" && slices.Contains(errs, called) && !harmless[at.Line] {
					t.Errorf("%s: the error of %s is dropped, but it may say that something is unknown", at, called)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// methodOf returns the name of the method that an expression calls, or "". Functions of the
// system's packages, and methods of an os.Root and an os.File, do not count.
func methodOf(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := f.X.(*ast.Ident); ok && slices.Contains([]string{"os", "unix", "syscall", "files", "root"}, x.Name) {
		return ""
	}
	return f.Sel.Name
}
