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

	"gogcl.dev/internal/command"
	"gogcl.dev/remote"
)

func main() { command.Main("remote", run) }

// run looks at the command line, shows the examples, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	storage, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return command.OK
	case err != nil:
		return command.Mistake("remote", err, stderr)
	}
	p := &page{w: stdout}
	if err := show(ctx, storage, p); err != nil {
		return command.Ended(ctx, "remote", err, stderr)
	}
	if p.wrong > 0 {
		fmt.Fprintf(stderr, "remote: %d of %d results are not what they must be\n", p.wrong, p.compared)
		return command.Failed
	}
	fmt.Fprintf(stdout, "%d results, all as they must be\n", p.compared)
	return command.OK
}

// parseFlags reads the command line: where the buffers are to live. After -h it has written the usage to stdout and
// returns flag.ErrHelp; any other error is a mistake in args, in one line.
func parseFlags(args []string, stdout io.Writer) (remote.Storage, error) {
	flags := flag.NewFlagSet("remote", flag.ContinueOnError)
	storage := flags.String("storage", "memory", "`where` the buffers live: memory or file")
	dir := flags.String("dir", "", "existing `directory` for the files of -storage file")
	if err := command.Parse(flags, args, stdout, "Shows variables and entries of remote buffers."); err != nil {
		return nil, err
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
