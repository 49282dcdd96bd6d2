package layering

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// kind is a set of constants of which each has a row in a table. No other file compares a value with one of them, or
// has one in a case: a question about the kind is a column of the table.
type kind struct {
	pkg    string   // where the constants are
	names  []string // of the constants
	exempt map[string]string
}

// kinds lists them, with the files and packages that may compare, and why.
func kinds() []kind {
	return []kind{{
		pkg:   "gcl",
		names: []string{"Add", "Mean", "Mul", "Min", "Max", "LogicalAnd", "LogicalOr", "SquareAdd", "Local"},
		exempt: map[string]string{
			"cmd/gclperf/picture.go": "a line is drawn where it was measured, which is for ADD of float32",
			"internal/gen":           "an oracle of its own knows operators by itself, not by the table that it tests",
			"rts/sharding.go":        "an argument must be one of two: gradients are summed or averaged",
		},
	}}
}

func TestKinds(t *testing.T) {
	problems, err := checkKinds(os.DirFS("../.."), module, kinds())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// eachFile calls do for each file of Go below root, tests aside.
func eachFile(root fs.FS, do func(name string, file *ast.File)) error {
	return fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && isSkipped(root, name):
			return fs.SkipDir
		case entry.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parse(root, name)
		if err != nil {
			return err
		}
		do(name, file)
		return nil
	})
}

// checkKinds returns a line for each comparison with a constant of a kind, and for each exempt file or package without
// one.
func checkKinds(root fs.FS, module string, kinds []kind) (problems []string, err error) {
	used := map[string]bool{}
	err = eachFile(root, func(name string, file *ast.File) {
		for _, k := range kinds {
			for _, found := range k.compared(file, module, path.Dir(name)) {
				if by := k.exemption(name); by != "" {
					used[by] = true
					continue
				}
				problems = append(problems, fmt.Sprintf("%s: compares with %s.%s: ask the row of the table, and add "+
					"a column if it has none", name, k.pkg, found))
			}
		}
	})
	for _, k := range kinds {
		for name := range k.exempt {
			if !used[name] {
				problems = append(problems, name+": is exempt, and compares with none")
			}
		}
	}
	slices.Sort(problems)
	return problems, err
}

// exemption is the entry by which a file may compare: its own or that of its package, or "".
func (k kind) exemption(name string) string {
	for _, by := range []string{name, path.Dir(name)} {
		if _, exempt := k.exempt[by]; exempt {
			return by
		}
	}
	return ""
}

// compared lists the constants that a file of package dir compares with, or has in a case.
func (k kind) compared(file *ast.File, module, dir string) (found []string) {
	local := "" // the file's name for the package, "" if it is the package
	if dir != k.pkg {
		at := slices.IndexFunc(file.Imports, func(s *ast.ImportSpec) bool {
			p, _ := strconv.Unquote(s.Path.Value)
			return p == module+"/"+k.pkg
		})
		if at < 0 {
			return nil
		}
		local = path.Base(k.pkg)
		if named := file.Imports[at].Name; named != nil {
			local = named.Name
		}
	}
	look := func(e ast.Expr) {
		name := ""
		switch e := e.(type) {
		case *ast.Ident:
			if local == "" {
				name = e.Name
			}
		case *ast.SelectorExpr:
			if x, ok := e.X.(*ast.Ident); ok && x.Name == local {
				name = e.Sel.Name
			}
		}
		if slices.Contains(k.names, name) {
			found = append(found, name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, e := range n.List {
				look(e)
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				look(n.X)
				look(n.Y)
			}
		}
		return true
	})
	return found
}

// TestCheckKinds shows that comparisons are found, and nothing else.
func TestCheckKinds(t *testing.T) {
	root := fstest.MapFS{}
	for name, text := range map[string]string{
		"colour/colour.go": "package colour\ntype Colour int\nconst (\nRed Colour = iota\nBlue\n)\nfunc (c Colour) " +
			"warm() bool { return c == Red }",
		"paint/paint.go": "package paint\nimport \"m/colour\"\nfunc f(c colour.Colour) int {\nswitch c {\ncase " +
			"colour.Red, colour.Blue:\nreturn 1\n}\nreturn 0\n}",
		"paint/named.go": "package paint\nimport c \"m/colour\"\nvar _ = 1 != c.Blue",
		"paint/other.go": "package paint\nimport colour \"m/other\"\nvar _ = 1 == colour.Red\nvar Red int\nvar _ = " +
			"Red == 1",
		"paint/table.go": "package paint\nimport \"m/colour\"\nvar table = map[colour.Colour]int{colour.Red: " +
			"1}\nvar x = colour.Blue",
		"paint/x_test.go": "package paint\nimport \"m/colour\"\nvar _ = 1 == colour.Red",
		"free/free.go":    "package free\nimport \"m/colour\"\nvar _ = 1 == colour.Red",
	} {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	problems, err := checkKinds(root, "m", []kind{{
		pkg: "colour", names: []string{"Red", "Blue"},
		exempt: map[string]string{"free/free.go": "why not", "free/none.go": "gone"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, strings.SplitN(p, ": ask", 2)[0])
	}
	want := []string{
		"colour/colour.go: compares with colour.Red",
		"free/none.go: is exempt, and compares with none",
		"paint/named.go: compares with colour.Blue",
		"paint/paint.go: compares with colour.Blue",
		"paint/paint.go: compares with colour.Red",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
