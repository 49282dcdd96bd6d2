// Command graphs shows how programs are built out of graphs and run, an idea at a time: a graph that is called, several
// graphs of one function, inputs that a graph makes for itself, a call that changes its input, loops, modules, and code
// that is loaded when it is needed. What came out stands beside what must.
//
//	go run ./examples/graphs
//
// It ends with exit code 1 if anything is not what it must be, and with 2 if it is given arguments, of which it has
// none.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

// example is a program that is built, run, and compared with what it must give.
type example struct {
	title string
	show  func(ctx context.Context, p *page) error
}

// examples are in the order in which they are best read. Each line says in which file its topic is.
var examples = []example{
	{"a graph that is called: x + 1", basic},                                      // call.go
	{"two graphs of one function: x @ w with a matrix, then a vector", twoGraphs}, // call.go
	{"an input of the graph's own, called with 1 and then 2: x + 3", calledTwice}, // call.go
	{"a call that says what it changes: 1 becomes 2", modified},                   // info.go
	{"a loop: x + value, twice", loop},                                            // repeat.go
	{"a loop over a module: x @ W + b, once and twice", moduleLoop},               // repeat.go
	{"code that is loaded before it is called", codeLoading},                      // codeload.go
	{"graphs that load the code of other graphs", nestedLoading},                  // codeload.go
}

// What the program ends with.
const (
	exitOK     = 0
	exitFailed = 1 // an error, or a result that is not the expected one
	exitUsage  = 2 // a mistake in the command line
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// run looks at the command line, shows all examples, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintf(stderr, "graphs: unexpected argument %q: there are none\n", args[0])
		return exitUsage
	}
	return show(ctx, examples, stdout, stderr)
}

// show shows examples and returns the exit code. An error ends it; a wrong result does not.
func show(ctx context.Context, examples []example, stdout, stderr io.Writer) int {
	p := &page{w: stdout}
	for _, e := range examples {
		fmt.Fprintln(p.w, e.title)
		if err := e.show(ctx, p); err != nil {
			fmt.Fprintf(stderr, "graphs: %s: %v\n", e.title, err)
			return exitFailed
		}
		fmt.Fprintln(p.w)
	}
	if p.wrong > 0 {
		fmt.Fprintf(stderr, "graphs: %d of %d results are not what they must be\n", p.wrong, p.compared)
		return exitFailed
	}
	fmt.Fprintf(p.w, "%d results, all as they must be\n", p.compared)
	return exitOK
}
