package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// toy is a module with a function and its tests. Only TestSum is for the sum.
var toy = map[string]string{
	"go.mod": "module toy.example\n\ngo 1.26\n",
	"toy.go": "package toy\n\nfunc Sum(a, b int) int {\n\treturn a + b\n}\n\nfunc Unused() int { return 1 }\n",
	"toy_test.go": `package toy

import "testing"

func TestSum(t *testing.T) {
	t.Run("of=2", func(t *testing.T) {
		if Sum(2, 3) != 5 {
			t.Error("wrong")
		}
	})
}

func TestOther(t *testing.T) {}

func TestBroken(t *testing.T) { t.Error("broken in any case") }
`,
	".git": "gitdir: elsewhere\n",
}

func write(t *testing.T) (dir string) {
	dir = t.TempDir()
	for name, text := range toy {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestVerdicts(t *testing.T) {
	pad := strings.Repeat(" ", 36) // of the column of names
	for _, c := range []struct {
		name, table, want string
		fails             bool
	}{
		{"killed", "\ttest . -run Sum\n\t-{\n\t-\treturn a + b\n\t+{\n\t+\treturn 0",
			"killed    m " + pad + "TestSum/of=2", false},
		{"hang", "\ttest . -run Sum -timeout 1s\n\t-return a + b\n\t+select {}", "timeout   m " + pad + "TestSum", false},
		{"survivor", "\ttest . -run Other\n\t-a + b\n\t+a - b", "SURVIVED  m ", true},
		{"no Go", "\ttest . -run Sum\n\t-a + b\n\t+a +* b", "INVALID   m " + pad + "does not compile: ", true},
		{"gone", "\ttest . -run Sum\n\t-a * b\n\t+b", "no longer applies: its text is in toy.go 0 times", true},
		{"twice", "\ttest . -run Sum\n\t-int\n\t+int64", "no longer applies: its text is in toy.go 3 times", true},
		{"no such test", "\ttest . -run Nobody\n\t-a + b\n\t+a - b", "without a mutant: no test has such a name", true},
		{"broken test", "\ttest . -run Broken\n\t-a + b\n\t+a - b", "without a mutant: TestBroken", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := write(t)
			var out strings.Builder
			trust := !strings.HasPrefix(c.want, "without")
			err := work(t.Context(), &out, "# a table\n\nm toy.go\n"+c.table+"\n", "", 1, dir, trust, false)
			if !strings.Contains(out.String(), c.want) || (err != nil) != c.fails {
				t.Errorf("error %v, and\n%swant %q", err, out.String(), c.want)
			}
			for name, text := range toy {
				if have, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(have) != text {
					t.Errorf("%s has changed: %q, %v", name, have, err)
				}
			}
		})
	}
}

// A mutant is out of the tree when the next one goes in, and -run says which.
func TestOneAtATime(t *testing.T) {
	const mutants = "a toy.go\n\ttest . -run Sum\n\t-a + b\n\t+b\n" +
		"b toy.go\n\ttest . -run Sum\n\t-return 1\n\t+return 2\n" +
		"c toy.go\n\ttest . -run None\n\t-x\n"
	var out strings.Builder
	err := work(t.Context(), &out, mutants, "a|b", 1, write(t), true, false)
	if err == nil || !strings.Contains(out.String(), "2 mutants: 1 killed, 0 by the timeout, 1 survived; 0 invalid") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// With -n the command says which mutants still apply, and runs no test.
func TestLook(t *testing.T) {
	const mutants = "good toy.go\n\ttest . -run Broken\n\t-a + b\n" +
		"gone toy.go\n\ttest . -run Sum\n\t-a * b\n" +
		"moved elsewhere.go\n\ttest . -run Sum\n\t-a + b\n"
	for match, want := range map[string]string{"good": "1 of 1 mutants apply\n", "": "1 of 3 mutants apply\n"} {
		var out strings.Builder
		err := work(t.Context(), &out, mutants, match, 1, write(t), false, true)
		if !strings.HasSuffix(out.String(), want) || (err != nil) != (match == "") {
			t.Errorf("%q: %v\n%s", match, err, out.String())
		}
	}
}

func TestTableErrors(t *testing.T) {
	for table, want := range map[string]string{
		"a":                                  "want a new name and a file",
		"a b\n\ttest .\n\t-x\na b":           "line 4: want a new name and a file",
		"\t-x":                               "before the first name",
		"a b\n\tx":                           "want test, - or +",
		"a b\n\ttest .":                      "a: want a line with test, and one with -",
		"a b\n\t-x":                          "a: want a line with test, and one with -",
		"a b\n\ttest .\n\t-x\n # no comment": "want a new name and a file",
	} {
		if _, err := parse(table); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", table, err, want)
		}
	}
}

// The table can be read. Whether its mutants still apply is for the command to say.
func TestTable(t *testing.T) {
	if mutants, err := parse(table); err != nil || len(mutants) < 50 {
		t.Errorf("%d mutants, %v", len(mutants), err)
	}
}
