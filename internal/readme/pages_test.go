package readme

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxBlock is by which column blocks of code and tables of package documentation end. A page of pkg.go.dev is narrower
// than the 120 columns of the sources.
const maxBlock = 110

// TestPackagePages reads the documentation of every package for import as pkg.go.dev does: blocks are no wider than its
// page, and what stands in brackets is a link to a symbol that there is.
func TestPackagePages(t *testing.T) {
	packages, links := 0, map[string]int{}
	for dir := range parsedDirs(t) {
		packages++
		p := documentation(t, dir)
		texts := map[string]string{"the overview": p.Doc}
		for _, f := range p.Funcs {
			texts[f.Name] = f.Doc
		}
		for _, typ := range p.Types {
			texts[typ.Name] = typ.Doc
			for _, f := range append(typ.Funcs, typ.Methods...) {
				texts[typ.Name+"."+f.Name] = f.Doc
			}
		}
		for name, text := range texts {
			faults, found := pageFaults(p, text)
			for _, fault := range faults {
				t.Errorf("%s, %s: %s", dir, name, fault)
			}
			if name == "the overview" {
				links[dir] = found
			}
		}
	}
	if packages < 20 || links["gcl"] < 20 {
		t.Errorf("%d packages, %d links in the overview of gcl", packages, links["gcl"])
	}
}

// parsedDirs are the directories of packages for import.
func parsedDirs(t *testing.T) map[string]bool {
	t.Helper()
	dirs := map[string]bool{}
	files, err := fs.Glob(os.DirFS(root), "doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*/doc.go", "*/*/doc.go"} {
		more, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
		if !regexp.MustCompile(`^(bench|examples|cmd|docs|internal)/|internal/`).MatchString(file) {
			dirs[path.Dir(file)] = true
		}
	}
	return dirs
}

// documentation is that of the package in a directory.
func documentation(t *testing.T, dir string) *doc.Package {
	t.Helper()
	names, err := fs.Glob(os.DirFS(filepath.Join(root, dir)), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, filepath.Join(root, dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(set, files, path.Join("gogcl.dev", dir))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A name in brackets, which is no index of a slice and nothing of mathematics.
var bracketed = regexp.MustCompile(`(?:^|[\s(])\[(\*?(?:[a-z]+\.)?[A-Z]\w+(?:\.[A-Z]\w*)?)\]`)

// pageFaults lists the blocks of a comment that are too wide, and the brackets that are no links, and counts the links.
func pageFaults(p *doc.Package, text string) (faults []string, links int) {
	prose := func(text []comment.Text) {
		for _, part := range text {
			switch part := part.(type) {
			case *comment.DocLink:
				links++
			case comment.Plain:
				for _, m := range bracketed.FindAllStringSubmatch(string(part), -1) {
					faults = append(faults, "no symbol ["+m[1]+"]")
				}
			}
		}
	}
	var blocks func(content []comment.Block)
	blocks = func(content []comment.Block) {
		for _, block := range content {
			switch block := block.(type) {
			case *comment.Code:
				for line := range strings.Lines(block.Text) {
					line = strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "        ")
					if utf8.RuneCountInString(line) > maxBlock {
						faults = append(faults, "a block of more columns than a page: "+line)
					}
				}
			case *comment.Paragraph:
				prose(block.Text)
			case *comment.List:
				for _, item := range block.Items {
					blocks(item.Content)
				}
			}
		}
	}
	blocks(p.Parser().Parse(text).Content)
	return faults, links
}

// TestPageFaults: a comment of each kind.
func TestPageFaults(t *testing.T) {
	p := documentation(t, "gcl")
	for _, c := range []struct {
		text  string
		fault string // how the one fault begins, or nothing
		links int
	}{
		{"[AllReduce] and [Comm.Group] and [*PeerError]", "", 3},
		{"[AllReduced]", "no symbol [AllReduced]", 0},
		{"  - in a list [Comm.Nothing]", "no symbol [Comm.Nothing]", 0},
		{"[gogcl.dev/methods] and data[j]", "", 1},
		{"A block:\n\n\t" + strings.Repeat("x", maxBlock) + "\n", "", 0},
		{"A block:\n\n\t" + strings.Repeat("é", maxBlock+1) + "\n", "a block of more columns", 0},
	} {
		faults, links := pageFaults(p, c.text)
		if got := strings.Join(faults, ", "); links != c.links || (got == "") != (c.fault == "") ||
			!strings.HasPrefix(got, c.fault) {
			t.Errorf("%.40q: %d links, faults %q", c.text, links, got)
		}
	}
}
