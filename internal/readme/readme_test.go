// Package readme holds only tests: they keep README.md true.
package readme

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

var update = flag.Bool("update", false, "write anew what the code prints: the picture and the table of methods")

const root = "../.."

// section returns what stands between the marks of a section of README.md.
func section(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), begin(name))
	text, _, ok2 := strings.Cut(rest, end(name))
	if !ok || !ok2 {
		t.Fatalf("README.md has no section %q", name)
	}
	return text
}

func begin(name string) string { return fmt.Sprintf("<!-- %s: begin -->\n", name) }
func end(name string) string   { return fmt.Sprintf("<!-- %s: end -->\n", name) }

// mustHold checks that a section is what the code prints, or writes it.
func mustHold(t *testing.T, name, want string) {
	t.Helper()
	have := section(t, name)
	if *update && have != want {
		file := filepath.Join(root, "README.md")
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fresh := strings.Replace(string(page), begin(name)+have+end(name), begin(name)+want+end(name), 1)
		if err := os.WriteFile(file, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
		have = want
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("section %q of README.md is out of date (-want +have); run with -update:\n%s", name, diff)
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
	mustHold(t, "picture", "```\n"+s.String()+"```\n")
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
	for _, m := range methods.All() {
		fmt.Fprintf(&table, "| `%v` |", m)
		for _, c := range schedule.Collectives() {
			s, report := build(t, m, c, size)
			sent := slices.Max(report.Sent) * size
			if sent%s.Chunks != 0 {
				t.Fatalf("%v %v: %d chunks of %d are not so many eighths", m, c, slices.Max(report.Sent), s.Chunks)
			}
			rounds := fmt.Sprintf("%d rounds", report.Rounds)
			if report.Rounds == 1 {
				rounds = "1 round"
			}
			fmt.Fprintf(&table, " %s, %d |", rounds, sent/s.Chunks)
		}
		table.WriteString("\n")
	}
	mustHold(t, "methods", table.String())
}

// TestPrograms runs the programs, each as a file outside of the module, and compares what they print.
func TestPrograms(t *testing.T) {
	for program, output := range map[string]string{"program": "output", "graph": "graph output"} {
		t.Run(program, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, []byte(block(t, section(t, program), "go")), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "run", file)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			want := strings.Split(block(t, section(t, output), ""), "\n")
			have := strings.Split(string(out), "\n")
			slices.Sort(want) // replicas print in any order
			slices.Sort(have)
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("the program prints something else (-want +have):\n%s", diff)
			}
		})
	}
}

// TestReplace follows the instructions for importing the module: a module with the replace line sees the packages.
func TestReplace(t *testing.T) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	line := block(t, section(t, "replace"), "")
	target, ok := strings.CutPrefix(line, "replace gogcl.dev => ")
	if !ok {
		t.Fatalf("not a replace line: %q", line)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/mine\n\ngo 1.26.0\n\nrequire gogcl.dev v0.0.0\n\n" + strings.Replace(line,
			strings.TrimSpace(target), absolute, 1),
		"main.go": block(t, section(t, "program"), "go"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Module.Path}}", "gogcl.dev/gcl")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "gogcl.dev\n" {
		t.Errorf("go list: %v: %s", err, out)
	}
}

// TestLinks checks that what README.md, and the pages in docs/ and bench/, link to in this repository is there.
func TestLinks(t *testing.T) {
	pages := []string{"README.md", "bench/README.md"}
	docs, err := fs.Glob(os.DirFS(root), "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	found := 0
	for _, page := range append(pages, docs...) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d links found", found)
	}
}

// TestDocsIndex checks that docs/README.md lists every page beside it.
func TestDocsIndex(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(root, "docs/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := fs.Glob(os.DirFS(root), "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range docs {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(string(index), "("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

// TestPackages checks that README.md names every package that users may import.
func TestPackages(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	notForImport := regexp.MustCompile(`^(\..+|(.*/)?internal|bench|examples|cmd|docs|.*/testdata)$`)
	packages := 0
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
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
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("README.md does not name package %s", name)
		}
		return nil
	})
	if err != nil || packages < 8 {
		t.Errorf("%d packages found, %v", packages, err)
	}
}
