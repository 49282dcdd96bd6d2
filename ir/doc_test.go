package ir_test

import (
	"os"
	"strings"
	"testing"
)

// TestDocExample: the program in the package's documentation is that of Example.
func TestDocExample(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(doc), "//\tp := ir.New(1)\n")
	code, _, _ = strings.Cut(code, "//\n// It prints ")
	code = strings.ReplaceAll(code, "//\n", "\n")
	code = strings.ReplaceAll(code, "//\t", "\t")
	if strings.Count(code, "\n") < 10 || !strings.Contains(string(example), "\tp := ir.New(1)\n"+code+"\t// Output:") {
		t.Errorf("not in Example:\n%s", code)
	}
}
