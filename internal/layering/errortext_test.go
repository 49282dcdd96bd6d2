package layering

import (
	"go/ast"
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/fstest"
)

// TestErrorTexts: nothing looks for words in the text of an error. Errors say what they are by types and fields.
func TestErrorTexts(t *testing.T) {
	found, err := searchedErrors(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		t.Errorf("%s: package strings is given the text of an error", name)
	}
}

// searchedErrors lists the files, tests aside, in which a function of package strings is given what Error returns.
func searchedErrors(root fs.FS) (found []string, err error) {
	err = eachFile(root, func(name string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok && isOf(call.Fun, "strings") && slices.ContainsFunc(call.Args, isErrorText) {
				found = append(found, name)
			}
			return true
		})
	})
	return found, err
}

// isOf reports whether a function is one of a package.
func isOf(function ast.Expr, pkg string) bool {
	s, ok := function.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// isErrorText reports whether an argument is a call of a method Error.
func isErrorText(argument ast.Expr) bool {
	call, ok := argument.(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Error"
}

// TestSearchedErrors shows that such files are found, and no others.
func TestSearchedErrors(t *testing.T) {
	root := fstest.MapFS{}
	for name, text := range map[string]string{
		"a/search.go": "package a\nimport \"strings\"\nfunc f(err error) bool { return " +
			"strings.Contains(err.Error(), \"mismatch\") }",
		"a/trim.go": "package a\nimport \"strings\"\nfunc f(err error) string { return " +
			"strings.TrimPrefix(err.Error(), \"a: \") }",
		"a/print.go": "package a\nimport \"fmt\"\nfunc f(err error) string { return fmt.Sprint(err.Error()) }",
		"a/words.go": "package a\nimport \"strings\"\nfunc f(s string) bool { return strings.Contains(s, " +
			"\"mismatch\") }",
		"a/some_test.go": "package a\nimport \"strings\"\nfunc f(err error) bool { return " +
			"strings.Contains(err.Error(), \"mismatch\") }",
	} {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if found, err := searchedErrors(root); err != nil || !slices.Equal(found, []string{"a/search.go", "a/trim.go"}) {
		t.Errorf("%q, %v", found, err)
	}
}
