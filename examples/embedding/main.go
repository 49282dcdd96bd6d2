// Command embedding learns what the words of a book are like, with the table of what it knows of each word split over
// replicas. It guesses a word by the two before and the two after it, of which it looks up a row of the table each.
//
// Row r is with replica r mod n. Words are numbered by how frequent they are, so each replica has as much to do as any.
//
//	            replica 0                              replica 1            ...
//	            rows 0 n 2n ...                        rows 1 n+1 2n+1 ...
//	each step   which rows it wants ◀─ all-to-all ─▶ which rows it wants    as many places for each pair of replicas
//	            Slice of its rows                      Slice of its rows
//	            the rows it wanted  ◀─ all-to-all ─▶ the rows it wanted
//	            a guess, and gradients                 a guess, and gradients
//	            gradients of rows   ◀─ all-to-all ─▶ gradients of rows      the gradient of the second all-to-all
//	            UpdateAdd                              UpdateAdd            gradient descent, of the rows touched only
//	            weights             ◀─ all-reduce ─▶ weights                all that is not the table: Adam
//
// A replica asks for a word once a step, however often it needs it. Shapes are fixed, so there are as many places as
// the worst step needs; those left over ask for a row that is not there, which gives zeros and is never updated.
//
// Usage:
//
//	go run ./examples/embedding [-n replicas] [-epochs passes] [-batch words] [-dim numbers] [-lr rate] [-seed number]
//		[-near words] [-verify]
//
// With -verify the same is learnt on one replica with the whole table, without any collective: words are taken from the
// book and rows looked up and changed by plain loops. Tables, weights and losses are compared, to the bit. The
// exit code is 0 at the end, 1 when something failed or differs, 2 for a mistake on the command line, 130 after
// Ctrl-C and 143 after SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"io"

	"gogcl.dev/examples/charlm/opticks"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/progress"
)

func main() {
	command.Main("embedding", func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return run(ctx, args, opticks.Text, stdout, stderr)
	})
}

// run is the program on the text that load gives: it returns the exit code.
func run(ctx context.Context, args []string, load func() ([]byte, error), stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return command.OK
	}
	if err != nil {
		return command.Mistake("embedding", err, stderr)
	}
	text, err := load()
	if err != nil {
		return command.Ended(ctx, "embedding", err, stderr)
	}
	book, err := newBook(text)
	if err != nil {
		return command.Ended(ctx, "embedding", err, stderr)
	}
	if err := cfg.check(book); err != nil {
		return command.Mistake("embedding", err, stderr)
	}
	out := progress.New(stdout)
	err = learn(ctx, cfg, book, out)
	out.Close()
	if err == nil && out.Err() != nil {
		err = &command.OutputError{Err: out.Err()}
	}
	if err != nil {
		return command.Ended(ctx, "embedding", err, stderr)
	}
	return command.OK
}
