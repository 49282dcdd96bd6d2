package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTable: the table can be read, names no test twice, and only tests that there are.
func TestTable(t *testing.T) {
	rows, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.name()] {
			t.Errorf("%s stands there twice", r.name())
		}
		seen[r.name()] = true
		name, _, _ := strings.Cut(r.pattern, "/")
		files, _ := filepath.Glob(filepath.Join("../..", r.pkg, "*_test.go"))
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "\nfunc "+name+"(t *testing.T) {\n")
		}
		if !found {
			t.Errorf("%s has no %s", r.pkg, name)
		}
	}
	for _, bad := range []string{"3 ./gcl", "0 ./gcl TestRun", "x ./gcl TestRun"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// TestGoesOn: a test runs as often as the file does not say that it has run, and one that failed is in the table.
func TestGoesOn(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"go.mod":      "module toy.example\n\ngo 1.26\n",
		"toy_test.go": "package toy\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) {}\n\nfunc TestBad(t *testing.T) { t.Error(\"no\") }\n",
		"log":         "ran . TestGood ok 2ms\nran . TestGood FAILED 2ms\nsomething else\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	const toys = "4 . TestGood\n2 . TestBad # of which one fails\n1 . TestNone\n"
	err := work(t.Context(), &out, toys, "None", 1, 1, "log", false)
	if err == nil || !strings.Contains(err.Error(), "has no test") {
		t.Errorf("a test that there is not: %v", err)
	}
	err = work(t.Context(), &out, toys, "Good|Bad", 2, 1, "log", false)
	log, _ := os.ReadFile("log")
	if err == nil || err.Error() != "2 of 2 tests failed" || strings.Count(string(log), "ran . TestGood ok ") != 3 ||
		strings.Count(string(log), "ran . TestBad FAILED ") != 2 ||
		strings.Count(string(log), "--- FAIL: TestBad") != 2 ||
		!strings.Contains(out.String(), "   4 of    4 runs    1 failed") {
		t.Errorf("%v\n%s\n%s", err, out.String(), log)
	}
	out.Reset()
	again := work(t.Context(), &out, toys, "Good|Bad", 2, 1, "log", true)
	if after, _ := os.ReadFile("log"); again == nil || string(after) != string(log) {
		t.Errorf("%v; the file has changed: %s", again, after)
	}
}
