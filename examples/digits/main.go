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
// The replicas are goroutines. Under a launcher each is a process, and replica 0 prints:
//
//	go build ./cmd/gclrun ./examples/digits
//	./gclrun -n 4 ./digits
//	mpirun -np 4 ./digits
//
// The same flags give the same weights on every run, to the bit, however the replicas are started. The exit code is 0
// when the weights of all replicas agree, 1 when something failed, 2 for a mistake on the command line, 130 after
// Ctrl-C and 143 after SIGTERM.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/member"
	"gogcl.dev/internal/progress"
)

func main() { command.Main("digits", run) }

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return member.Run(ctx, "digits", stdout, stderr, func(me *member.Member, stdout io.Writer) error {
		return runMember(ctx, me, args, stdout)
	})
}

// runMember is the program in a job, or in none.
func runMember(ctx context.Context, me *member.Member, args []string, stdout io.Writer) error {
	cfg, err := parseFlags(args, stdout)
	if err == nil {
		cfg.replicas, err = me.Replicas(cfg.replicas, cfg.given)
	}
	if err != nil {
		return member.Mistake{Err: err}
	}
	train, test, err := perceptron.Load()
	if err != nil {
		return err
	}
	if err := cfg.check(train.Len()); err != nil {
		return member.Mistake{Err: err}
	}

	out := progress.New(stdout)
	err = trainAll(ctx, me, cfg, train, test, out)
	out.Close()
	if err == nil && out.Err() != nil {
		return &command.OutputError{Err: out.Err()}
	}
	return err
}

// trainAll runs the replicas to the end. What there is to say, rank 0 says.
func trainAll(ctx context.Context, me *member.Member, cfg config, train, test perceptron.Images,
	out *progress.Printer) error {
	out.Line(fmt.Sprintf("%d digits to learn, %d held out; replicas: %d, batch: %d, method: %v",
		train.Len(), test.Len(), cfg.replicas, cfg.batch, cfg.method))
	told := ctx
	replica := func(ctx context.Context, comm *gcl.Comm) error {
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
			if stop, _, err := me.Agree(ctx, told.Err() != nil, 0); err != nil || stop {
				return cmp.Or(err, member.ErrInterrupted)
			}
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
	}
	if me.InJob() {
		return replica(context.WithoutCancel(ctx), me.Comm()) // all replicas end after the same pass
	}
	err := gcl.Run(ctx, cfg.replicas, replica)
	if errors.Is(err, member.ErrInterrupted) {
		return member.ErrInterrupted // whichever replica was first
	}
	return err
}
