package layering

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// check reads the imports of every Go file below root, whatever its build tags, and returns one line for each that the
// table forbids and for each package that has no row. Left out are tests, nested modules, what the go tool ignores, and
// files that "//go:build ignore" takes out of their package.
func check(root fs.FS, module string, table []row) (problems []string, err error) {
	unknown := map[string]bool{} // packages reported as missing from the table
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && isSkipped(root, name) {
				return fs.SkipDir
			}
			return nil
		}
		base := path.Base(name)
		if !strings.HasSuffix(base, ".go") || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".") {
			return nil
		}
		pkg := path.Dir(name)
		r, ok := rowOf(table, pkg)
		if !ok {
			if !unknown[pkg] {
				unknown[pkg] = true
				problems = append(problems,
					fmt.Sprintf("%s: package %s is not in the import table: add a row", name, pkg))
			}
			return nil
		}
		if strings.HasSuffix(base, "_test.go") {
			return nil
		}
		file, err := parse(root, name)
		if err != nil || isIgnored(file) {
			return err
		}
		for _, spec := range file.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if why := verdict(table, r, module, imp); why != "" {
				problems = append(problems, fmt.Sprintf("%s: package %s may not import %s: %s", name, pkg, imp, why))
			}
		}
		if r.pure {
			for _, impurity := range impuritiesOf(file) {
				problems = append(problems, fmt.Sprintf("%s: package %s is pure: no %s", name, pkg, impurity))
			}
		}
		return nil
	})
	return problems, err
}

// isSkipped reports whether the packages of directory dir are none of this module's.
func isSkipped(root fs.FS, dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".") {
		return true
	}
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
}

// parse reads one file.
func parse(root fs.FS, name string) (*ast.File, error) {
	return parseInto(token.NewFileSet(), root, name)
}

// parseInto is parse with positions.
func parseInto(set *token.FileSet, root fs.FS, name string) (*ast.File, error) {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	return parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
}

// isIgnored reports whether file has a "//go:build ignore".
func isIgnored(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if comment.Pos() < file.Package && comment.Text == "//go:build ignore" {
				return true
			}
		}
	}
	return false
}

// rowOf finds the row of pkg: its own, or else that of the longest pattern.
func rowOf(table []row, pkg string) (row, bool) {
	var best row
	found := false
	for _, r := range table {
		if r.pkg == pkg {
			return r, true
		}
		if matches(r.pkg, pkg) && len(r.pkg) > len(best.pkg) {
			best, found = r, true
		}
	}
	return best, found
}

// matches reports whether pkg is the package that pattern names, or lies below dir when pattern is "dir/*".
func matches(pattern, pkg string) bool {
	if dir, ok := strings.CutSuffix(pattern, "*"); ok && dir != "" {
		return strings.HasPrefix(pkg, dir)
	}
	return pattern == pkg
}

// verdict says why a package with row r may not import imp, or nothing if it may.
func verdict(table []row, r row, module, imp string) string {
	inside := func(mod string) bool { return imp == mod || strings.HasPrefix(imp, mod+"/") }
	host, _, _ := strings.Cut(imp, "/")
	switch {
	case inside(module):
		if mayImport(table, r, strings.TrimPrefix(imp, module+"/")) {
			return ""
		}
		return fmt.Sprintf("packages of this module that it may import: %s", list(r.imports))
	case imp == "C" || strings.Contains(host, "."): // only paths outside the standard library begin with a host
		if slices.ContainsFunc(r.modules, inside) {
			return ""
		}
		return fmt.Sprintf("modules that it may import: %s", list(r.modules))
	case r.pure && slices.Contains(impureImports(), imp):
		return "it is pure"
	}
	return ""
}

// mayImport reports whether row r allows package pkg of this module.
func mayImport(table []row, r row, pkg string) bool {
	for _, pattern := range r.imports {
		if matches(pattern, pkg) {
			return true
		}
		if pattern == anyAbove {
			if other, ok := rowOf(table, pkg); ok && !slices.Contains(other.imports, anyAbove) {
				return true
			}
		}
	}
	return false
}

// list is names in one line.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
