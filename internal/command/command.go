// Package command is what the example programs have in common: how they begin, how they read their flags, and what
// their exit codes are.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// The exit codes.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2   // a mistake on the command line
	Interrupted = 130 // what shells report for a program that Ctrl-C ended
)

// Main is a program's main function: it ends the process with the exit code that run returns. The context of run is
// done after Ctrl-C, and after the given signals; the second ends the process at once.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int, ends ...os.Signal) {
	ctx, stop := signal.NotifyContext(context.Background(), append([]os.Signal{os.Interrupt}, ends...)...)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Parse reads a command line of flags only. After -h it has written the usage and what the program does to stdout, and
// returns flag.ErrHelp; any other error is a mistake in args, in one line.
func Parse(flags *flag.FlagSet, args []string, stdout io.Writer, does string) error {
	flags.Init(flags.Name(), flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the package's own messages take many lines
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stdout, "usage: %s [flags]\n\n%s\n", flags.Name(), does)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return err
	case err == nil && flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return err
}
