// Package layering holds only tests: they compare the imports of every package of the module with a table.
package layering

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestImports(t *testing.T) {
	root := os.DirFS("../..")
	if _, err := root.Open("go.mod"); err != nil {
		t.Fatalf("the root of the module has moved: %v", err)
	}
	problems, err := check(root, module, table())
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// TestTable looks for misspelt and doubled rows.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range table() {
		if seen[r.pkg] {
			t.Errorf("%s has two rows", r.pkg)
		}
		seen[r.pkg] = true
	}
	for _, r := range table() {
		for _, imp := range r.imports {
			_, known := rowOf(table(), imp)
			below := slices.ContainsFunc(table(), func(other row) bool { return matches(imp, other.pkg) })
			if imp != anyAbove && !known && !below {
				t.Errorf("%s may import %s, which has no row", r.pkg, imp)
			}
		}
	}
}

// TestCheck runs the checker on made-up trees with a made-up table.
func TestCheck(t *testing.T) {
	table := []row{
		{pkg: "leaf", pure: true},
		{pkg: "wire"},
		{pkg: "wire/*", imports: []string{"wire"}, modules: []string{"example.org/sys"}},
		{pkg: "wire/special", imports: []string{"wire", "leaf"}, modules: []string{"C"}},
		{pkg: "core", imports: []string{"leaf", "wire", "wire/*"}},
		{pkg: "cmd/*", imports: []string{anyAbove}},
	}
	tests := []struct {
		name, file, imports string
		want                string // the one problem, or nothing
	}{
		{"standard library", "core/a.go", "fmt", ""},
		{"listed", "core/a.go", "m.dev/leaf", ""},
		{"listed by pattern", "core/a.go", "m.dev/wire/tcp", ""},
		{"not listed", "wire/a.go", "m.dev/leaf",
			"wire/a.go: package wire may not import m.dev/leaf: packages of this module that it may import: none"},
		{"upwards", "leaf/a.go", "m.dev/core",
			"leaf/a.go: package leaf may not import m.dev/core: packages of this module that it may import: none"},
		{"sibling", "wire/tcp/a.go", "m.dev/wire/special",
			"wire/tcp/a.go: package wire/tcp may not import m.dev/wire/special: packages of this module that it may " +
				"import: wire"},
		{"own row before pattern", "wire/special/a.go", "m.dev/leaf", ""},
		{"own row replaces pattern", "wire/special/a.go", "example.org/sys",
			"wire/special/a.go: package wire/special may not import example.org/sys: modules that it may import: C"},
		{"name that only begins alike", "core/a.go", "m.dev/leafy",
			"core/a.go: package core may not import m.dev/leafy: packages of this module that it may import: leaf, " +
				"wire, wire/*"},
		{"second import", "leaf/a.go", "fmt m.dev/wire",
			"leaf/a.go: package leaf may not import m.dev/wire: packages of this module that it may import: none"},
		{"module listed", "wire/tcp/a.go", "example.org/sys/unix", ""},
		{"module not listed", "core/a.go", "example.org/sys/unix",
			"core/a.go: package core may not import example.org/sys/unix: modules that it may import: none"},
		{"cgo listed", "wire/special/a.go", "C", ""},
		{"cgo", "wire/tcp/a.go", "C", "wire/tcp/a.go: package wire/tcp may not import C: modules that it may import: example.org/sys"},
		{"randomness in a pure package", "leaf/a.go", "math/rand/v2", "leaf/a.go: package leaf may not import math/rand/v2: it is pure"},
		{"randomness elsewhere", "wire/a.go", "math/rand/v2", ""},
		{"program", "cmd/x/a.go", "m.dev/core", ""},
		{"program in a program", "cmd/x/a.go", "m.dev/cmd/y",
			"cmd/x/a.go: package cmd/x may not import m.dev/cmd/y: packages of this module that it may import: *"},
		{"unknown in a program", "cmd/x/a.go", "m.dev/new",
			"cmd/x/a.go: package cmd/x may not import m.dev/new: packages of this module that it may import: *"},
		{"no row", "new/a.go", "", "new/a.go: package new is not in the import table: add a row"},
		{"no row, only tests", "new/a_test.go", "", "new/a_test.go: package new is not in the import table: add a row"},
		{"no row below a leaf", "leaf/sub/a.go", "", "leaf/sub/a.go: package leaf/sub is not in the import table: add a row"},
		{"root", "a.go", "", "a.go: package . is not in the import table: add a row"},
		{"test", "leaf/a_test.go", "m.dev/core example.org/cmp os", ""},
		{"other system", "leaf/a_plan9.go", "m.dev/core",
			"leaf/a_plan9.go: package leaf may not import m.dev/core: packages of this module that it may import: none"},
		{"testdata", "leaf/testdata/a.go", "m.dev/core", ""},
		{"hidden", ".new/a.go", "m.dev/core", ""},
		{"underscore", "leaf/_a.go", "m.dev/core", ""},
		{"nested module", "nested/sub/a.go", "m.dev/core", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := fstest.MapFS{
				"go.mod":        {Data: []byte("module m.dev\n")},
				"nested/go.mod": {Data: []byte("module m.dev/nested\n")},
				"README.md":     {Data: []byte("no Go\n")},
				tt.file:         source("", tt.imports),
			}
			var want []string
			if tt.want != "" {
				want = []string{tt.want}
			}
			if got, err := check(tree, "m.dev", table); err != nil || !slices.Equal(got, want) {
				t.Errorf("problems %q, error %v, want %q", got, err, want)
			}
		})
	}
}

func TestCheckPure(t *testing.T) {
	const text = `package p

import "time"

const slow = 3 * time.Second

func f() {
	go f()
	func() { defer time.Sleep(slow) }()
	clock := time.Now
	_ = clock
}
`
	for _, pkg := range []string{"leaf/a.go", "leaf/a_test.go", "wire/a.go"} {
		var want []string
		if pkg == "leaf/a.go" {
			want = []string{
				"leaf/a.go: package leaf is pure: no go statement",
				"leaf/a.go: package leaf is pure: no time.Sleep",
				"leaf/a.go: package leaf is pure: no time.Now",
			}
		}
		tree := fstest.MapFS{pkg: {Data: []byte(text)}}
		got, err := check(tree, "m.dev", []row{{pkg: "leaf", pure: true}, {pkg: "wire"}})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: problems %q, error %v, want %q", pkg, got, err, want)
		}
	}
}

func TestCheckBuildTags(t *testing.T) {
	table := []row{{pkg: "leaf"}}
	tree := fstest.MapFS{
		"leaf/generate.go": source("//go:build ignore\n\n", "example.org/generator"),
		"leaf/tagged.go":   source("//go:build mpi\n\n", "C"),
	}
	got, err := check(tree, "m.dev", table)
	want := []string{"leaf/tagged.go: package leaf may not import C: modules that it may import: none"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("problems %q, error %v, want %q", got, err, want)
	}
}

// TestCheckReportsPackageOnce adds a package of three files without a row.
func TestCheckReportsPackageOnce(t *testing.T) {
	tree := fstest.MapFS{"new/a.go": source("", ""), "new/b.go": source("", ""), "new/c_test.go": source("", "")}
	if got, err := check(tree, "m.dev", nil); err != nil || len(got) != 1 {
		t.Errorf("problems %q, error %v, want one", got, err)
	}
}

func TestCheckSyntaxError(t *testing.T) {
	tree := fstest.MapFS{"leaf/a.go": {Data: []byte("package")}}
	if _, err := check(tree, "m.dev", []row{{pkg: "leaf"}}); err == nil || !strings.Contains(err.Error(), "leaf/a.go") {
		t.Errorf("error %v, want one that names leaf/a.go", err)
	}
}

// source is a Go file with these imports, given with spaces between them.
func source(head, imports string) *fstest.MapFile {
	var text strings.Builder
	text.WriteString(head + "package p\n")
	for imp := range strings.FieldsSeq(imports) {
		text.WriteString("import \"" + imp + "\"\n")
	}
	return &fstest.MapFile{Data: []byte(text.String())}
}
