package member

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
)

// Run has a program of that name run in the job in which a launcher has started the process, or in none. It says on
// stderr which error has ended the program, which the others of the job then have too, and returns the exit code:
//
//	error of the program       exit code
//	nil, any flag.ErrHelp      command.OK
//	a Mistake                  command.Usage; the line says that -h lists the flags
//	one that is ErrInterrupted command.Interrupted
//	any other                  command.Failed, but that of a context which a signal has ended is as ErrInterrupted
//
// After a standard output that cannot be written the line names that in the place of an interruption. The options are
// those of the job.
func Run(ctx context.Context, name string, stdout, stderr io.Writer,
	program func(me *Member, stdout io.Writer) error, options ...gcl.CommOption) int {
	me, err := Join(ctx, options...)
	if err != nil {
		return failed(name, err, stderr)
	}
	err = program(me, me.Output(stdout))
	if errors.Is(err, flag.ErrHelp) {
		err = nil
	}
	code := ended(ctx, name, err, me.Output(stderr))
	if err := me.Leave(err); err != nil && code == command.OK {
		return failed(name, err, stderr)
	}
	return code
}

// ended says how a program has ended, and returns its exit code.
func ended(ctx context.Context, name string, err error, stderr io.Writer) int {
	interrupted := errors.Is(err, ErrInterrupted)
	switch {
	case err == nil:
		return command.OK
	case errors.As(err, new(Mistake)):
		return command.Mistake(name, err, stderr)
	case interrupted && !errors.As(context.Cause(ctx), new(*command.OutputError)):
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return command.Interrupted
	case interrupted, errors.Is(err, context.Canceled):
		return command.Ended(ctx, name, err, stderr)
	}
	return failed(name, err, stderr)
}

func failed(name string, err error, stderr io.Writer) int {
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return command.Failed
}
