// Command remote shows tensors that live outside the memory of the replicas: a variable in a remote buffer, and stores
// to and loads from two entries of one. What came out stands beside what must.
//
//	go run ./examples/remote
//	go run ./examples/remote -storage file -dir DIR
//
// With -storage file the entries are in files of a directory, and outlive the program: each run finds what the one
// before has stored, and goes on from there.
//
// It ends with exit code 1 if anything is not what it must be, and with 2 after a mistake in the command line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"gogcl.dev/remote"
)

// What the program ends with.
const (
	exitOK     = 0
	exitFailed = 1 // an error, or a result that is not the expected one
	exitUsage  = 2 // a mistake in the command line
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// run looks at the command line, shows the examples, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	storage, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "remote:", err)
		return exitUsage
	}
	p := &page{w: stdout}
	if err := show(ctx, storage, p); err != nil {
		fmt.Fprintln(stderr, "remote:", err)
		return exitFailed
	}
	if p.wrong > 0 {
		fmt.Fprintf(stderr, "remote: %d of %d results are not what they must be\n", p.wrong, p.compared)
		return exitFailed
	}
	fmt.Fprintf(stdout, "%d results, all as they must be\n", p.compared)
	return exitOK
}

// parseFlags reads the command line: where the buffers are to live. After -h it has written the usage to stdout and
// returns flag.ErrHelp; any other error is a mistake in args, in one line.
func parseFlags(args []string, stdout io.Writer) (remote.Storage, error) {
	flags := flag.NewFlagSet("remote", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the package's own messages take many lines
	storage := flags.String("storage", "memory", "`where` the buffers live: memory or file")
	dir := flags.String("dir", "", "existing `directory` for the files of -storage file")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, "usage: remote [flags]\n\nShows variables and entries of remote buffers.")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, err
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	switch *storage {
	case "memory":
		if *dir != "" {
			return nil, fmt.Errorf("-dir %s is for -storage file", *dir)
		}
		return remote.Memory{}, nil
	case "file":
		if *dir == "" {
			return nil, errors.New("-storage file needs -dir, an existing directory")
		}
		if info, err := os.Stat(*dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("-dir %s is not an existing directory", *dir)
		}
		return remote.Dir(*dir), nil
	}
	return nil, fmt.Errorf("-storage %s, want memory or file", *storage)
}
