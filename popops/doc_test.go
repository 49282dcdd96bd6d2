package popops_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFiles: the package comment names each file once, and no other.
func TestFiles(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	must(t, err)
	_, table, _ := strings.Cut(string(doc), "// # Files\n")
	var said []string
	for _, row := range regexp.MustCompile(`(?m)^//\t.{12}(\w+) +\w`).FindAllStringSubmatch(table, -1) {
		said = append(said, row[1]+".go")
	}
	files, err := filepath.Glob("*.go")
	must(t, err)
	files = slices.DeleteFunc(files, func(f string) bool { return f == "doc.go" || strings.HasSuffix(f, "_test.go") })
	slices.Sort(said)
	if !slices.Equal(said, files) {
		t.Errorf("doc.go has files %v, want %v", said, files)
	}
}
