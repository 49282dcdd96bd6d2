// Package command is what the commands and example programs have in common: how they begin, how they read their flags,
// how they end, and what their exit codes are.
//
//	func main() { command.Main("learn", run) }
//
//	func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
//		flags := flag.NewFlagSet("learn", flag.ContinueOnError)
//		n := flags.Int("n", 4, "number of `replicas`")
//		if code, ok := command.Flags(flags, args, stdout, stderr, "Learns."); !ok {
//			return code
//		}
//		if err := learn(ctx, *n, stdout); err != nil {
//			return command.Ended(ctx, "learn", err, stderr)
//		}
//		return command.OK
//	}
//
// A program ends so:
//
//	exit code
//	0     all is well, or -h was asked for
//	1     something failed, standard output among it; one line on standard error says what
//	2     a mistake on the command line; one line names it
//	130   ended by Ctrl-C (128 + 2)
//	143   ended by SIGTERM (128 + 15)
//
// A standard output that was closed before the program began is no failure. The Go runtime opens /dev/null in its
// place, for reading and writing, as Python does for subprocess.DEVNULL. So nothing tells it from a /dev/null that was
// meant.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// The exit codes.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2   // a mistake on the command line
	Interrupted = 130 // ended from outside; Main makes it 128 + n after signal n
)

// Signal is the cause of a context that a signal has ended.
type Signal struct{ syscall.Signal }

func (s Signal) Error() string { return s.String() }

// Is has the error count as a context.Canceled.
func (s Signal) Is(target error) bool { return target == context.Canceled }

// Code is the exit code that shells report for a program that the signal has ended.
func (s Signal) Code() int { return 128 + int(s.Signal) }

// OutputError is the error of a standard output that cannot be written, and the cause of the context that it has ended.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return fmt.Sprintf("standard output: %v", e.Err) }
func (e *OutputError) Unwrap() error { return e.Err }

// Main is the main function of the program of that name. It ends the process with the exit code that run returns.
//
// The context of run is done after Ctrl-C, SIGTERM and the given signals. A Ctrl-C after that ends the process at once;
// a second SIGTERM does not, since timeout(1) sends two.
// It is also done when a write to stdout has failed, a closed pipe included, which then is the end of the program with
// Failed and a line on stderr. Programs need not look at the errors of their writes to stdout.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) int, ends ...os.Signal) {
	// Nobody receives: the error of the write says it. Ignore would pass on to the processes that the program starts.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, append([]os.Signal{os.Interrupt, syscall.SIGTERM}, ends...)...)
	go func() {
		s := <-signals
		signal.Reset(os.Interrupt)
		cancel(Signal{s.(syscall.Signal)})
	}()
	stdout := &output{file: os.Stdout, lost: cancel}
	os.Exit(finish(ctx, name, run(ctx, os.Args[1:], stdout, os.Stderr), stdout.error(), os.Stderr))
}

// finish is the exit code of a program whose run has returned code. lost is the error of its standard output.
func finish(ctx context.Context, name string, code int, lost error, stderr io.Writer) int {
	if lost != nil && (code == OK || code == Interrupted) { // else run has said what failed
		fmt.Fprintf(stderr, "%s: %v\n", name, lost)
		return Failed
	}
	var s Signal
	if code == Interrupted && errors.As(context.Cause(ctx), &s) {
		return s.Code()
	}
	return code
}

// Ended says on stderr which error has ended the program of that name, and returns its exit code. After the end of ctx
// the cause is what it says: a signal, or standard output.
func Ended(ctx context.Context, name string, err error, stderr io.Writer) int {
	var lost *OutputError
	switch {
	case errors.As(context.Cause(ctx), &lost):
		err = lost
	case ctx.Err() != nil:
		fmt.Fprintf(stderr, "%s: interrupted\n", name)
		return Interrupted
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return Failed
}

// output is the standard output of a program.
type output struct {
	file *os.File
	lost context.CancelCauseFunc // is called with the first error

	mu  sync.Mutex // guards err
	err error      // the first of a write; nil: none has failed
}

// File is the file that w writes to, for a process that is to write there itself; w if there is none. What is lost then
// is for the exit code of that process to say.
func File(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.file
	}
	return w
}

// Write writes to the file, unless an earlier write has failed.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.file.Write(p)
	if err != nil {
		o.err = err
		o.lost(&OutputError{err})
	}
	return n, err
}

// error is an OutputError if a write has failed.
func (o *output) error() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return &OutputError{o.err}
}
