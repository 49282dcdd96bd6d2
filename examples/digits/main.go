// Command digits trains a perceptron on hand-written digits, data parallel: every replica keeps a whole copy of the
// net, works through its share of each batch, and one all-reduce gives all of them the mean gradient.
//
//	            replica 0            replica 1            ...
//	start       weights ──broadcast──▶ weights
//	each step   share of the batch     share of the batch
//	            gradient ◀─all-reduce─▶ gradient            Mean: the gradient of the whole batch
//	            Adam                   Adam                same numbers in, same bits out
//	at the end  weights ◀─all-gather─▶ weights             compared bit for bit
//
// Usage:
//
//	go run ./examples/digits [-n replicas] [-epochs passes] [-batch images] [-lr rate] [-seed number] [-method name]
//
// The same flags give the same weights on every run. The exit code is 0 when the weights of all replicas agree, 1 when
// something failed, 2 for a mistake on the command line and 130 after Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/progress"
)

func main() { command.Main(run) }

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return command.OK
	}
	if err != nil {
		fmt.Fprintf(stderr, "digits: %v (-h lists the flags)\n", err)
		return command.Usage
	}
	train, test, err := perceptron.Load()
	if err != nil {
		fmt.Fprintf(stderr, "digits: %v\n", err)
		return command.Failed
	}
	if err := cfg.check(train.Len()); err != nil {
		fmt.Fprintf(stderr, "digits: %v (-h lists the flags)\n", err)
		return command.Usage
	}

	out := progress.New(stdout)
	err = trainAll(ctx, cfg, train, test, out)
	out.Close()
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(stderr, "digits: interrupted")
		return command.Interrupted
	case err != nil:
		fmt.Fprintf(stderr, "digits: %v\n", err)
		return command.Failed
	case out.Err() != nil:
		fmt.Fprintf(stderr, "digits: standard output: %v\n", out.Err())
		return command.Failed
	}
	return command.OK
}

// trainAll runs the replicas to the end. What there is to say, rank 0 says.
func trainAll(ctx context.Context, cfg config, train, test perceptron.Images, out *progress.Printer) error {
	out.Line(fmt.Sprintf("%d digits to learn, %d held out; replicas: %d, batch: %d, method: %v",
		train.Len(), test.Len(), cfg.replicas, cfg.batch, cfg.method))
	return gcl.Run(ctx, cfg.replicas, func(ctx context.Context, comm *gcl.Comm) error {
		out := out
		if comm.Rank() != 0 {
			out = progress.New(io.Discard)
		}
		t, err := newTrainer(ctx, comm, cfg, train, test)
		if err != nil {
			return err
		}
		var last pass
		for epoch := range cfg.epochs {
			if last, err = t.pass(ctx, test.Len()); err != nil {
				return err
			}
			out.Status(fmt.Sprintf("epoch %d/%d  %v", epoch+1, cfg.epochs, last))
		}
		out.Line(fmt.Sprintf("test accuracy %.4f", last.accuracy()))

		checksum, err := t.verify(ctx)
		if err != nil {
			return err
		}
		if cfg.replicas == 1 {
			out.Line(fmt.Sprintf("weights: one replica, nothing to compare (crc32 %08x)", checksum))
		} else {
			out.Line(fmt.Sprintf("weights: the same to the bit on all %d replicas (crc32 %08x)",
				cfg.replicas, checksum))
		}
		return nil
	})
}
