package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/topology"
)

// join joins a job of processes, on the machine that the flags ask for.
func join(ctx context.Context, s *settings) (*gcl.Comm, *topology.Config, error) {
	size := 1
	if text, ok := os.LookupEnv("WORLD_SIZE"); ok {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			return nil, nil, fmt.Errorf("WORLD_SIZE: %w", err)
		}
	}
	topo, options, err := machine(size, s.domains, s.dealt)
	if err != nil {
		return nil, nil, err
	}
	c, err := gcl.Join(ctx, gcl.JoinConfig{Transport: s.transport}, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("join: %w", err)
	}
	return c, topo, nil
}

// job is one replica of a job of processes. It ends with its first failure.
func job(ctx context.Context, w io.Writer, s *settings) (bad int, err error) {
	began, done := time.Now(), 0
	base, topo, err := join(ctx, s)
	if err != nil {
		return 0, err
	}
	last := s.seed
	for i := 0; i < s.programs && bad == 0; i++ {
		last = s.seed + uint64(i)
		p := newProg(last, base.Replicas(), topo, true, s.steps)
		ctx, cancel := context.WithTimeout(ctx, s.hang)
		err := p.body(ctx, base)
		late := ctx.Err() != nil
		cancel()
		done++
		if err != nil {
			bad++
			fmt.Fprintf(w, "FAIL %s: seed %d n=%d replica %d: %.1500v\n", nameOf(err, late), last, base.Replicas(),
				base.Replica(), err)
		}
	}
	if err := base.Close(); err != nil && bad == 0 {
		bad++
		fmt.Fprintf(w, "FAIL %s: replica %d: close: %v\n", nameOf(err, false), base.Replica(), err)
	}
	if base.Replica() == 0 {
		report(w, fmt.Sprintf("job of %d processes, seeds %d-%d", base.Replicas(), s.seed, last), done, bad, began,
			s.detail)
	} else {
		fmt.Fprintf(w, "replica %d: %d collective calls counted here, %d calls of this rank\n", base.Replica(),
			made.calls.Load(), made.byRanks.Load())
	}
	return bad, context.Cause(ctx)
}

// nameOf is one word for a failure, by which failures are counted.
func nameOf(err error, late bool) string {
	var bits *wrong
	var panicked *gcl.PanicError
	switch {
	case errors.As(err, &panicked):
		return "panic"
	case errors.As(err, &bits):
		return "wrong"
	case errors.Is(err, gcl.ErrMismatch):
		return "mismatch"
	case late:
		return "hang"
	}
	return "error"
}
