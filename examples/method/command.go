package main

import (
	"context"
	"flag"
	"io"

	"gogcl.dev/internal/command"
	"gogcl.dev/methods"
)

func main() { command.Main("method", run) }

// run looks at the command line, which has nothing but -h, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("method", flag.ContinueOnError)
	code, ok := command.Flags(flags, args, stdout, stderr, "Proves, draws, prices, runs and measures a method.")
	if !ok {
		return code
	}
	err := methods.Register("butterfly", butterfly)
	if err == nil {
		err = show(ctx, stdout)
	}
	if err != nil {
		return command.Ended(ctx, "method", err, stderr)
	}
	return command.OK
}
