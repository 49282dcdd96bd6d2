package meeting

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// modelledFuncs are the functions that the models stand for, by file.
var modelledFuncs = []struct{ file, funcs string }{
	{"gather.go", "Gather"},
	{"visit.go", "assemble announce count synchronise Arrive release meetSpread compare Present Met Vacate"},
	{"share.go", "Share Forget enter workInRounds workApart workTogether"},
	{"broadcast.go", "Broadcast compareQueues"},
	{"discord.go", "Ahead"},
	{"seat.go", "seat look"},
	{"check.go", "Check ownWrong doneWrong wrong hallWrong"},
	{"../../inproc/fail.go", "fail"},
	{"../../inproc/wait.go", "pause rouseFrom"},
	{"../segment/ring.go", "room Send publish wait done Changed End look Peek Skip Done"},
	{"../segment/layout.go", "find enter strike"},
	{"../segment/own.go", "release Free Ended"},
	{"../../tcp/memory.go", "answers wake Close"},
	{"../../tcp/generation.go", "Aborting setAborted"}, // of one generation, as the models have it
	{"../../tcp/memory_linux.go", "Look come Park"},
	{"../../tcp/meet.go", "newVisit seat Ring Proclaim Wait Interruption reason Fail vacate Stuck Show Views view"},
	{"../stream/node.go", "stop"},
	{"../stream/await.go", "Await await"},
	{"../stream/wait.go", "sleep"},
	{"../stream/lane.go", "wake"},
}

// modelledCalls are the calls that matter for the order in which members see what others do.
var modelledCalls = strings.Fields("Load Store Add Swap CompareAndSwap copy clear Wait Interruption Fail Piece Show Views " +
	"Combine Ring Proclaim Vacate abort RingBell Park changed stop published punch strike done found wake room look wait " +
	"announce count counts synchronise Arrive release meetSpread compare compareQueues enter End Done Ended Deserted Changed Free Lane " +
	"Attend Look come Receiver find assemble Met Seat seat Tell Aborting Aborted Await interruption fail vacate gone Retire Wake Lock " +
	"close PutUint64 Bytes view ownWrong doneWrong wrong hallWrong")

// TestModelled compares what the functions do in their order with testdata/modelled.txt, by which the models have been
// written: who changes one has to look at its model as well.
func TestModelled(t *testing.T) {
	var text strings.Builder
	for _, m := range modelledFuncs {
		names := strings.Fields(m.funcs)
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, m.file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !slices.Contains(names, fn.Name.Name) {
				continue
			}
			found[fn.Name.Name] = true
			text.WriteString(filepath.Base(m.file) + " " + fn.Name.Name)
			if fn.Recv != nil {
				text.WriteString(" of " + source(fset, fn.Recv.List[0].Type))
			}
			text.WriteString("\n")
			for _, line := range accesses(fset, fn.Body) {
				text.WriteString("\t" + line + "\n")
			}
		}
		if len(found) != len(names) {
			t.Errorf("%s has %v, want %v", m.file, found, names)
		}
	}
	want, err := os.ReadFile("testdata/modelled.txt")
	if err != nil {
		t.Error(err)
	}
	if got := text.String(); got != string(want) {
		t.Errorf("the code is another one than the models stand for. Change them, and then testdata/modelled.txt to:\n%s", got)
	}
}

// accesses are the calls of a function that matter, and the plain words of others that it names, in the order of the
// source.
func accesses(fset *token.FileSet, body *ast.BlockStmt) (lines []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			fun := source(fset, n.Fun)
			if slices.Contains(modelledCalls, fun[strings.LastIndex(fun, ".")+1:]) {
				lines = append(lines, source(fset, n))
				return false
			}
		case *ast.SelectorExpr: // plain words, stored or read; v.call is the member's own
			switch n.Sel.Name {
			case "call", "combined":
				if text := source(fset, n); text != "v.call" {
					lines = append(lines, text)
				}
			}
		}
		return true
	})
	return lines
}

// source is the text of a node.
func source(fset *token.FileSet, n ast.Node) string {
	var b strings.Builder
	printer.Fprint(&b, fset, n)
	return b.String()
}
