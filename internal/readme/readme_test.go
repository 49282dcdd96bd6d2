// Package readme holds only tests. They keep README.md, and what the pages beside it say of the code, true.
package readme

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

var update = flag.Bool("update", false, "write anew what the code prints: the picture and the table of methods")

const root = "../.."

// read returns a page of the repository.
func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns what stands between the marks of a section of a page.
func section(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, page), begin(name))
	text, _, ok2 := strings.Cut(rest, end(name))
	if !ok || !ok2 {
		t.Fatalf("%s has no section %q", page, name)
	}
	return text
}

func begin(name string) string { return fmt.Sprintf("<!-- %s: begin -->\n", name) }
func end(name string) string   { return fmt.Sprintf("<!-- %s: end -->\n", name) }

// mustHold checks that a section of a page is what the code prints, or writes it.
func mustHold(t *testing.T, page, name, want string) {
	t.Helper()
	have := section(t, page, name)
	if *update && have != want {
		fresh := strings.Replace(read(t, page), begin(name)+have+end(name), begin(name)+want+end(name), 1)
		if err := os.WriteFile(filepath.Join(root, page), []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
		have = want
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("section %q of %s is out of date (-want +have); run with -update:\n%s", name, page, diff)
	}
}

// block takes the fence off a block of code.
func block(t *testing.T, text, language string) string {
	t.Helper()
	text, ok := strings.CutPrefix(text, "```"+language+"\n")
	text, ok2 := strings.CutSuffix(text, "```\n")
	if !ok || !ok2 {
		t.Fatalf("not a block of %q: %q", language, text)
	}
	return text
}

// build makes and proves the schedule of a method over size ranks in order.
func build(t *testing.T, m methods.Method, c schedule.Collective, size int) (*schedule.Schedule, schedule.Report) {
	t.Helper()
	ring := make([]int, size)
	for i := range ring {
		ring[i] = i
	}
	s, err := methods.Build(methods.Spec{Method: m, Collective: c, Size: size, Ring: ring, Second: ring})
	if err != nil {
		t.Fatal(err)
	}
	report, err := schedule.Examine(s)
	if err != nil {
		t.Fatal(err)
	}
	return s, report
}

func TestPicture(t *testing.T) {
	s, _ := build(t, methods.ClockwiseRing, schedule.AllReduce, 3)
	mustHold(t, "README.md", "picture", "```\n"+s.String()+"```\n")
}

// TestMismatch makes two replicas give different lengths, and compares the error with the one in README.md, but for who
// has found it.
func TestMismatch(t *testing.T) {
	err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, c.Named("grads"), make([]float32, 3+c.Rank()), gcl.Mean)
	})
	if err == nil {
		t.Fatal("no error")
	}
	have, _, _ := strings.Cut(err.Error(), "; on replica")
	want, _, _ := strings.Cut(block(t, section(t, "README.md", "mismatch"), ""), "; on replica")
	if have != want {
		t.Errorf("the error begins\n%s\nand in README.md\n%s", have, want)
	}
}

// TestMethods makes the table of collectives and methods from the schedules.
func TestMethods(t *testing.T) {
	const size = 8
	var table strings.Builder
	table.WriteString("| method |")
	for _, c := range schedule.Collectives() {
		fmt.Fprintf(&table, " %v |", c)
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(schedule.Collectives())) + "\n")
	for _, m := range thinned.Constants() {
		fmt.Fprintf(&table, "| `%v` |", m)
		for _, c := range schedule.Collectives() {
			s, report := build(t, m, c, size)
			rounds := fmt.Sprintf("%d rounds", report.Rounds)
			if report.Rounds == 1 {
				rounds = "1 round"
			}
			sent := float64(slices.Max(report.Sent)) / float64(s.Chunks)
			fmt.Fprintf(&table, " %s, %g |", rounds, sent)
		}
		table.WriteString("\n")
	}
	mustHold(t, "docs/design/schedules.md", "methods", table.String())
}

// TestPrograms runs the programs, each as a file outside of the module, and compares what they print.
func TestPrograms(t *testing.T) {
	for _, c := range []struct{ page, program, output string }{
		{"README.md", "program", "output"},
		{"docs/design/ir.md", "graph", "graph output"},
	} {
		t.Run(c.program, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, []byte(block(t, section(t, c.page, c.program), "go")), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "run", file)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			mustPrint(t, string(out), block(t, section(t, c.page, c.output), ""))
		})
	}
}

// mustPrint compares the lines that a program printed with those of a page, in any order as the replicas print them.
func mustPrint(t *testing.T, have, want string) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(strings.Lines(want)), slices.Sorted(strings.Lines(have))); diff != "" {
		t.Errorf("the program prints something else (-want +have):\n%s", diff)
	}
}

// TestImport follows the instructions for importing the module, in a new directory beside a link to this checkout. The
// module proxy refuses everything, as a company's may refuse a module that is not served: no command may ask it.
func TestImport(t *testing.T) {
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	beside := t.TempDir()
	if err := os.Symlink(checkout, filepath.Join(beside, "gogcl")); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	// What gcl stands on gets into the module cache, unless it is there. A new module's needs are the same.
	fetch := exec.CommandContext(t.Context(), "go", "list", "-deps", "gogcl.dev/gcl")
	fetch.Dir = root
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the module proxy is asked for %s", r.URL)
		http.Error(w, "this proxy has nothing", http.StatusForbidden)
	}))
	defer proxy.Close()
	// shell runs commands and fails the test unless all succeed.
	shell := func(dir, commands string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", commands)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath", "GOPROXY="+proxy.URL, "GONOSUMDB=*",
			"GONOPROXY=none", "GOTOOLCHAIN=local")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s\n%v:\n%s%s", commands, err, out, stderr.String())
		}
		return string(out)
	}
	shell(beside, block(t, section(t, "README.md", "import"), "sh"))
	mine := filepath.Join(beside, "mine")
	program := block(t, section(t, "README.md", "program"), "go")
	if err := os.WriteFile(filepath.Join(mine, "main.go"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"go mod tidy", "go run ."} {
		if !strings.Contains(read(t, "README.md"), "`"+command+"`") {
			t.Errorf("README.md does not name %s", command)
		}
	}
	shell(mine, "go mod tidy")
	// With this version, and without the place of the module, its packages are compiled once for this test, for
	// TestInstall of internal/command and for bench/first_hour.sh.
	shell(mine, "go mod edit -require=gogcl.dev@v0.1.0")
	mustPrint(t, shell(mine, "go run ."), block(t, section(t, "README.md", "output"), ""))
}

// TestInterop checks that the lines of code in docs/design/interop.md stand in the examples, one after the other.
func TestInterop(t *testing.T) {
	examples, err := filepath.Glob(filepath.Join(root, "examples/interop/*_test.go"))
	if err != nil || len(examples) < 3 {
		t.Fatalf("%d examples, %v", len(examples), err)
	}
	straight := func(text string) string { return regexp.MustCompile(`\n\s*`).ReplaceAllString("\n"+text, "\n") }
	var code strings.Builder
	for _, file := range examples {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.WriteString(straight(string(text)))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, "docs/design/interop.md"), -1)
	if len(blocks) != 3 {
		t.Errorf("%d blocks of code, want one for each library", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(code.String(), straight(block[1])) {
			t.Errorf("no example has these lines:\n%s", block[1])
		}
	}
}

// TestLinks checks that files of this repository are there to which the pages of the root and those in docs/, bench/
// and examples/cluster/ link, and headings where a link names one.
func TestLinks(t *testing.T) {
	pages := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "bench/README.md",
		"examples/cluster/README.md"}
	docs := pagesIn(t, "docs")
	docs = append(docs, pagesIn(t, "docs/design")...)
	link := regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
	program := regexp.MustCompile("(?s)```go\n.*?```") // what looks like a link in it is a call
	found, headings := 0, 0
	for _, page := range append(pages, docs...) {
		for _, m := range link.FindAllStringSubmatch(program.ReplaceAllString(read(t, page), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			target := page
			if m[1] != "" {
				target = path.Join(path.Dir(page), m[1])
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if m[2] != "" {
				headings++
				if !slices.Contains(anchors(read(t, target)), m[2]) {
					t.Errorf("%s: %s has no heading #%s", page, target, m[2])
				}
			}
		}
	}
	if found < 100 || headings < 3 {
		t.Errorf("only %d links and %d of them to headings found", found, headings)
	}
}

var (
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noAnchor = regexp.MustCompile(`[^\pL\pN _-]`)
	named    = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
)

// anchors lists the headings of a page as links name them, in lower case, without punctuation, with dashes for spaces,
// and the anchors that the page names itself.
func anchors(page string) (all []string) {
	for _, m := range named.FindAllStringSubmatch(page, -1) {
		all = append(all, m[1])
	}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// pagesIn lists the pages of a directory.
func pagesIn(t *testing.T, dir string) []string {
	t.Helper()
	pages, err := fs.Glob(os.DirFS(root), dir+"/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages in %s, %v", len(pages), dir, err)
	}
	return pages
}

// TestDocsIndex checks that the README.md of docs and of docs/design lists every page beside it.
func TestDocsIndex(t *testing.T) {
	for _, dir := range []string{"docs", "docs/design"} {
		index := read(t, dir+"/README.md")
		for _, page := range pagesIn(t, dir) {
			if name := path.Base(page); name != "README.md" && !strings.Contains(index, "("+name+")") {
				t.Errorf("%s/README.md does not list %s", dir, name)
			}
		}
	}
}

// TestPackages checks that the table of docs/design/architecture.md has every package that users may import in its
// first column, and no other.
func TestPackages(t *testing.T) {
	listed := map[string]bool{}
	for row := range strings.SplitSeq(section(t, "docs/design/architecture.md", "packages"), "\n") {
		if cells := strings.Split(row, "|"); len(cells) > 1 {
			for _, code := range mentionedCode.FindAllString(cells[1], -1) {
				listed[strings.Trim(code, "`")] = true
			}
		}
	}
	notForImport := regexp.MustCompile(`^(\..+|(.*/)?internal|bench|examples|cmd|docs|.*/testdata)$`)
	packages := 0
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		if notForImport.MatchString(name) {
			return fs.SkipDir
		}
		if doc, err := fs.Stat(os.DirFS(root), path.Join(name, "doc.go")); err != nil || doc.IsDir() {
			return nil
		}
		packages++
		if name == "." {
			name = "gogcl.dev"
		}
		if !listed[name] {
			t.Errorf("docs/design/architecture.md does not list package %s", name)
		}
		delete(listed, name)
		return nil
	})
	if err != nil || packages < 8 {
		t.Errorf("%d packages found, %v", packages, err)
	}
	for name := range listed {
		t.Errorf("docs/design/architecture.md lists package %s, which is not there", name)
	}
}
