package readme

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a page for users may be: see "Pages" in CONTRIBUTING.md.
const (
	mostPages     = 17
	mostPageLines = 150 // without tables that a test makes, between the marks of a section
)

// userPages are the pages in docs/ but its README.
func userPages(t *testing.T) []string {
	t.Helper()
	var pages []string
	for _, page := range pagesIn(t, "docs") {
		if path.Base(page) != "README.md" {
			pages = append(pages, page)
		}
	}
	return pages
}

var (
	madeByTest = regexp.MustCompile("(?s)<!-- made by a test: ([a-z -]+) -->.*?<!-- end -->")
	aProgram   = regexp.MustCompile("(?s)```go\n(// [^\n]*\n|//\n|\n)*package main\n.*?```\n")
	itsOutput  = regexp.MustCompile("(?s)```text\n(.*?)```\n")
	aHeading   = regexp.MustCompile("(?m)^# .*$")
)

// TestUserPages: there are at most sixteen pages, each of at most 150 lines, with one question and a program, and none
// says how something is known.
func TestUserPages(t *testing.T) {
	pages := userPages(t)
	if len(pages) > mostPages {
		t.Errorf("%d pages in docs, want at most %d", len(pages), mostPages)
	}
	notForUsers := regexp.MustCompile("`[a-z./]*\\b(Test|Fuzz|Benchmark)[A-Z]\\w*`|\\b(is|are) tested\\b")
	for _, page := range pages {
		text := read(t, page)
		if lines := strings.Count(madeByTest.ReplaceAllString(text, ""), "\n"); lines > mostPageLines {
			t.Errorf("%s has %d lines, want at most %d", page, lines, mostPageLines)
		}
		if len(aHeading.FindAllString(text, -1)) < 1 || !strings.HasPrefix(text, "# ") {
			t.Errorf("%s does not begin with a heading", page)
		}
		if m := notForUsers.FindString(text); m != "" {
			t.Errorf("%s says %s, which is no matter of users", page, m)
		}
		if !aProgram.MatchString(text) {
			t.Errorf("%s has no program", page)
		}
	}
}

// TestPagePrograms builds and runs every program of the pages for users. A block of text that follows a program is what
// it prints, in any order of lines.
func TestPagePrograms(t *testing.T) {
	dir := t.TempDir()
	type program struct{ page, file, want string }
	var programs []program
	for _, page := range userPages(t) {
		text := read(t, page)
		for i, at := range aProgram.FindAllStringIndex(text, -1) {
			code := strings.TrimSuffix(strings.TrimPrefix(text[at[0]:at[1]], "```go\n"), "```\n")
			name := fmt.Sprintf("%s%d.go", strings.TrimSuffix(path.Base(page), ".md"), i)
			p := program{page: page, file: filepath.Join(dir, name)}
			rest := text[at[1]:]
			if m := itsOutput.FindStringSubmatchIndex(rest); m != nil && !strings.Contains(rest[:m[0]], "```") {
				p.want = rest[m[2]:m[3]]
			}
			if err := os.WriteFile(p.file, []byte(code), 0o666); err != nil {
				t.Fatal(err)
			}
			programs = append(programs, p)
		}
	}
	for _, p := range programs {
		t.Run(filepath.Base(p.file), func(t *testing.T) {
			exe := strings.TrimSuffix(p.file, ".go")
			build := exec.CommandContext(t.Context(), "go", "build", "-o", exe, p.file)
			build.Dir = root
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", p.page, err, out)
			}
			run := exec.CommandContext(t.Context(), exe)
			run.Dir = t.TempDir()
			var stderr strings.Builder
			run.Stderr = &stderr
			out, err := run.Output()
			if err != nil {
				t.Fatalf("%s: %v\n%s%s", p.page, err, out, stderr.String())
			}
			if p.want == "" {
				t.Errorf("%s: no block of text says what the program prints, which is\n%s", p.page, out)
			}
			mustPrint(t, string(out), p.want)
		})
	}
}
