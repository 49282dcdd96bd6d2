// Command trace runs some collectives on a few replicas and writes what they did to a file that Perfetto
// (https://ui.perfetto.dev) and chrome://tracing open: a row for each replica, in which every collective is a slice
// with its rounds inside, and an arrow from each message's send to its receive.
//
//	go run ./examples/trace -n 4 -o trace.json
//
// Where a launcher has started it, each process is a replica and writes a file of its own. With -join it makes one file
// of several:
//
//	go build -o trace ./examples/trace && go build -o gclrun ./cmd/gclrun
//	./gclrun -n 4 ./trace -o trace.json                              # trace-0.json to trace-3.json
//	./trace -join trace.json trace-0.json trace-1.json trace-2.json trace-3.json
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync/atomic"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/perfetto"
	"gogcl.dev/internal/command"
	"gogcl.dev/methods"
)

func main() { command.Main("trace", run) }

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("trace", flag.ContinueOnError)
	n := flags.Int("n", 4, "number of `replicas`, 1 to 64; in a job, that of its processes")
	out := flags.String("o", "trace.json", "`file` to write; of replica 3 of a job it is trace-3.json")
	into := flags.String("join", "", "`file` to write that has the events of the files named after the flags")
	err := command.ParseArguments(flags, args, stdout, "[flags] [file...]", "Runs some collectives and writes what "+
		"each replica did to a file for Perfetto.")
	if errors.Is(err, flag.ErrHelp) {
		return command.OK
	}
	switch {
	case err != nil:
	case *into != "" && flags.NArg() == 0:
		err = fmt.Errorf("-join %s: there is no file to join", *into)
	case *into == "" && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *n < 1 || *n > maxReplicas:
		err = fmt.Errorf("-n %d, want 1 to %d replicas", *n, maxReplicas)
	}
	if err != nil {
		return command.Mistake("trace", err, stderr)
	}
	if *into != "" {
		err = join(*into, flags.Args(), stdout)
	} else {
		err = trace(ctx, *n, *out, stdout)
	}
	if err == nil {
		return command.OK
	}
	code := command.Ended(ctx, "trace", err, stderr)
	if code == command.Failed {
		fmt.Fprint(stderr, gcl.Dump(err))
	}
	return code
}

// maxReplicas is as many rows as anybody looks at.
const maxReplicas = 64

// trace carries out the collectives and writes the file. The trace of a failure is written too.
func trace(ctx context.Context, n int, file string, w io.Writer) error {
	var timeline perfetto.Timeline
	var started atomic.Int64 // replicas of this process
	err := gcl.RunOrJoin(ctx, n, func(ctx context.Context, c *gcl.Comm) error {
		started.Add(1)
		return work(ctx, c)
	}, gcl.WithOptions(gcl.Options{Trace: timeline.Trace()}))
	if started.Load() == 0 {
		return err // there is nothing to write
	}
	replicas := timeline.Replicas()
	if len(replicas) == 1 && n > 1 {
		file = perfetto.FileName(file, replicas[0])
	}
	if err := errors.Join(err, timeline.WriteFile(file)); err != nil {
		return err
	}
	if len(replicas) == 1 && n > 1 {
		_, err = fmt.Fprintf(w, "%d slices of replica %d in %s: join it with those of the others by -join\n",
			timeline.Slices(), replicas[0], file)
		return err
	}
	_, err = fmt.Fprintf(w, "%d slices of %d replicas in %s: open it at https://ui.perfetto.dev\n",
		timeline.Slices(), len(replicas), file)
	return err
}

// join makes one file of those of a job's processes.
func join(out string, files []string, w io.Writer) error {
	if err := perfetto.JoinFiles(out, files...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d files in %s: open it at https://ui.perfetto.dev\n", len(files), out)
	return err
}

// work is what each replica does: a step of training, more or less, in several ways.
func work(ctx context.Context, c *gcl.Comm) error {
	weights, grads := make([]float32, 1<<16), make([]float32, 1<<16)
	if err := gcl.BroadcastInPlace(ctx, c.Named("weights"), weights, 0); err != nil {
		return err
	}
	for _, way := range []struct {
		name    string
		options gcl.Options
	}{
		{"grads", gcl.Options{}},
		{"grads, messages round a ring", gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncless}},
		{"grads, a ring in step", gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}},
	} {
		way.options.Trace = c.Options().Trace
		how, err := c.With(way.options)
		if err != nil {
			return err
		}
		if err := gcl.AllReduceInPlace(ctx, how.Named(way.name), grads, gcl.Mean); err != nil {
			return err
		}
	}
	loss := []float64{float64(c.Rank())}
	return gcl.AllReduceInPlace(ctx, c.Named("loss"), loss, gcl.Mean)
}
