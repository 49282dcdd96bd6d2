// Command graphs shows how programs are built out of graphs and run, an idea at a time: a graph that is called, several
// graphs of one function, inputs that a graph makes for itself, a call that changes its input, loops, modules, and code
// that is loaded when it is needed. What came out stands beside what must.
//
//	go run ./examples/graphs
//
// It ends with exit code 1 if anything is not what it must be, and with 2 if it is given arguments, of which it has
// none but -h.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"gogcl.dev/internal/command"
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

func main() { command.Main("graphs", run) }

// run looks at the command line, which has nothing but -h, shows all examples, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("graphs", flag.ContinueOnError)
	const does = "Shows how programs are built out of graphs and run."
	if code, ok := command.Flags(flags, args, stdout, stderr, does); !ok {
		return code
	}
	return showAll(ctx, examples, stdout, stderr)
}

// showAll shows examples and returns the exit code. An error ends it; a wrong result does not.
func showAll(ctx context.Context, examples []example, stdout, stderr io.Writer) int {
	p := &page{w: stdout}
	for _, e := range examples {
		fmt.Fprintln(p.w, e.title)
		if err := e.show(ctx, p); err != nil {
			return command.Ended(ctx, "graphs", fmt.Errorf("%s: %w", e.title, err), stderr)
		}
		fmt.Fprintln(p.w)
	}
	if p.wrong > 0 {
		fmt.Fprintf(stderr, "graphs: %d of %d results are not what they must be\n", p.wrong, p.compared)
		return command.Failed
	}
	fmt.Fprintf(p.w, "%d results, all as they must be\n", p.compared)
	return command.OK
}
