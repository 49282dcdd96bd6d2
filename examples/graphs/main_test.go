package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// Example is all that the program prints.
func Example() {
	fmt.Println("exit code", run(context.Background(), nil, os.Stdout, os.Stderr))
	// Output:
	// a graph that is called: x + 1
	//   x + 1                    float32(2, 2)[[2 3] [4 5]]  expected float32(2, 2)[[2 3] [4 5]]: ok
	//
	// two graphs of one function: x @ w with a matrix, then a vector
	//   matMul                   float32(2, 2)[[3 3] [7 7]]  expected float32(2, 2)[[3 3] [7 7]]: ok
	//   matMul_2                 float32(2,)[6 14]           expected float32(2,)[6 14]: ok
	//
	// an input of the graph's own, called with 1 and then 2: x + 3
	//   x + 1 + 2                float32(2, 2)[[4 5] [6 7]]  expected float32(2, 2)[[4 5] [6 7]]: ok
	//
	// a call that says what it changes: 1 becomes 2
	//   marked                   float32()[2]                expected float32()[2]: ok
	//   called graph             update                      expected update: ok
	//   value is the one         true                        expected true: ok
	//   so is input 1            true                        expected true: ok
	//   unmarked                 float32()[1]                expected float32()[1]: ok
	//
	// a loop: x + value, twice
	//   twice                    float32(2, 2)[[3 3] [3 3]]  expected float32(2, 2)[[3 3] [3 3]]: ok
	//
	// a loop over a module: x @ W + b, once and twice
	//   once                     float32(2, 2)[[3 3] [3 3]]  expected float32(2, 2)[[3 3] [3 3]]: ok
	//   twice                    float32(2, 2)[[7 7] [7 7]]  expected float32(2, 2)[[7 7] [7 7]]: ok
	//
	// code that is loaded before it is called
	//   | code, estimated: 2560 bytes at most
	//   |   main       1536  always live
	//   |   expensive  1024
	//   | host load "in"                                 1536  main
	//   | add scalar 1                                   1536  main
	//   | remote code load of expensive to "executable"  2560  main expensive
	//   | call expensive                                 2560  main expensive
	//   |   transpose                                    2560  main expensive
	//   |   transpose                                    2560  main expensive
	//   | add scalar 1                                   2560  main expensive
	//   | call expensive                                 2560  main expensive
	//   |   transpose                                    2560  main expensive
	//   |   transpose                                    2560  main expensive
	//   | host store "out"                               1536  main
	//   loads seen               [expensive]                 expected [expensive]: ok
	//   live                     [false false true true true true false] expected [false false true true true true false]: ok
	//   x + 2                    float32(2, 2)[[3 4] [5 6]]  expected float32(2, 2)[[3 4] [5 6]]: ok
	//
	// graphs that load the code of other graphs
	//   g1, by main and by g2    [g1 g1]                     expected [g1 g1]: ok
	//   loaders that are loaded  [g3 g1 g4 g2]               expected [g3 g1 g4 g2]: ok
	//
	// 17 results, all as they must be
	// exit code 0
}

// TestRunIsRepeatable: no result and no report depends on chance.
func TestRunIsRepeatable(t *testing.T) {
	var first string
	for i := range 5 {
		var out, errs strings.Builder
		if code := run(t.Context(), nil, &out, &errs); code != command.OK || errs.Len() > 0 {
			t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
		}
		if i == 0 {
			first = out.String()
		} else if out.String() != first {
			t.Fatalf("run %d printed\n%s\nthe first\n%s", i, out.String(), first)
		}
	}
}

// TestWrongResult: what is not as it must be is marked, and the program fails.
func TestWrongResult(t *testing.T) {
	var out, errs strings.Builder
	code := showAll(t.Context(), []example{
		{"wrong", func(_ context.Context, p *page) error { p.compare("sum", 2, 3); return nil }},
		{"right", func(_ context.Context, p *page) error { p.compare("sum", 3, 3); return nil }},
	}, &out, &errs)
	if code != command.Failed || errs.String() != "graphs: 1 of 2 results are not what they must be\n" {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if strings.Count(out.String(), ": WRONG\n") != 1 || strings.Count(out.String(), ": ok\n") != 1 {
		t.Errorf("printed\n%s", out.String())
	}
}

// TestErrors: an error of an example, and a context that is done, end the program with one line.
func TestErrors(t *testing.T) {
	var out, errs strings.Builder
	failing := []example{{"broken", func(context.Context, *page) error { return errors.New("no more") }}}
	if code := showAll(t.Context(), failing, &out, &errs); code != command.Failed ||
		errs.String() != "graphs: broken: no more\n" {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errs.Reset()
	if code := run(ctx, nil, &out, &errs); code != command.Interrupted ||
		errs.String() != "graphs: interrupted\n" {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}

func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		"all": "graphs: unexpected argument \"all\"\n",
		"-v":  "graphs: flag provided but not defined: -v\n",
		"a b": "graphs: unexpected argument \"a\"\n",
	} {
		var out, errs strings.Builder
		if code := run(t.Context(), strings.Fields(args), &out, &errs); code != command.Usage ||
			errs.String() != want || out.Len() > 0 {
			t.Errorf("%q: exit code %d, printed %q, %q", args, code, out.String(), errs.String())
		}
	}
}
