package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// flat are folders of which no function nests deeper than some statements with blocks and functions within it.
var flat = map[string]int{
	"transport/transporttest": 5,
}

// TestDepth holds functions flat: one that goes deeper is two, or a table and what walks it.
func TestDepth(t *testing.T) {
	for folder, most := range flat {
		files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		fset := token.NewFileSet()
		for _, name := range files {
			file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Body == nil {
					continue
				}
				if deep := depth(f.Body); deep > most {
					t.Errorf("%s: %s nests %d deep, at most %d", fset.Position(f.Pos()), f.Name.Name, deep, most)
				}
			}
		}
	}
}

// TestDepthCounts shows what depth counts.
func TestDepthCounts(t *testing.T) {
	const text = `package p
func f() {
	for range 3 {
		go func() {
			switch {
			case true:
				if x {
				} else if y(func() {}) {
				}
			}
		}()
	}
}`
	file, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := depth(file.Decls[0].(*ast.FuncDecl).Body); got != 4 {
		t.Errorf("depth is %d, want 4: for, func, switch, if", got)
	}
}

// depth is how deep loops, conditions, switches and functions nest within a node. The cases of a switch, and the if of
// an else, are no deeper than it.
func depth(n ast.Node) int {
	deepest := 0
	var visit func(n ast.Node, level int)
	visit = func(n ast.Node, level int) {
		deepest = max(deepest, level)
		ast.Inspect(n, func(inner ast.Node) bool {
			if inner == n {
				return true
			}
			switch x := inner.(type) {
			case *ast.IfStmt:
				for ; x != nil; x, _ = x.Else.(*ast.IfStmt) {
					if x.Init != nil {
						visit(x.Init, level)
					}
					visit(x.Cond, level)
					visit(x.Body, level+1)
					if last, ok := x.Else.(*ast.BlockStmt); ok {
						visit(last, level+1)
					}
				}
				return false
			case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt, *ast.FuncLit:
				visit(inner, level+1)
				return false
			}
			return true
		})
	}
	visit(n, 0)
	return deepest
}
