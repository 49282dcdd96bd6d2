// Command trace runs some collectives on a few replicas and writes what they did to a file that Perfetto
// (https://ui.perfetto.dev) and chrome://tracing open: a row for each replica, in which every collective is a slice
// with its rounds inside.
//
//	go run ./examples/trace -n 4 -o trace.json
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
)

func main() {
	n := flag.Int("n", 4, "number of replicas, 1 to 64")
	out := flag.String("o", "trace.json", "file to write")
	flag.Parse()
	if err := run(context.Background(), *n, *out, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		fmt.Fprint(os.Stderr, gcl.Dump(err))
		os.Exit(1)
	}
}

// maxReplicas is as many rows as anybody looks at.
const maxReplicas = 64

// run carries out the collectives and writes the file. The trace of a failure is written too.
func run(ctx context.Context, n int, file string, rest []string, w io.Writer) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case n < 1 || n > maxReplicas:
		return fmt.Errorf("-n %d, want 1 to %d replicas", n, maxReplicas)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	t := newTimeline(n, time.Now())
	err = gcl.Run(ctx, n, work, gcl.WithOptions(gcl.Options{Trace: t.trace()}))
	if err := errors.Join(err, t.write(f), f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d slices of %d replicas in %s: open it at https://ui.perfetto.dev\n", t.slices(), n, file)
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
		{"grads, peer memory", gcl.Options{}},
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
