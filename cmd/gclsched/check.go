package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"

	"gogcl.dev/methods/schedule"
)

// checkVerb proves a schedule and prints the report.
func checkVerb(f *flag.FlagSet, from *source) work {
	strict := f.Bool("strict", false, "data that moves for nothing, the report's waste, is an error")
	return work{func() error { return nil }, func(_ context.Context, stdout io.Writer) error {
		f, err := from.read()
		if err != nil {
			return err
		}
		r, err := schedule.Examine(f.Schedule)
		if err != nil {
			return from.of(err)
		}
		if err := r.CheckOrder(); err != nil {
			return from.of(fmt.Errorf("gcl does not carry the schedule out: %w", err))
		}
		if *strict {
			if err := r.CheckWaste(); err != nil {
				return from.of(err)
			}
		}
		buffers := "may be the input"
		if f.Schedule.NeedsApart() {
			buffers = "must not be the input"
		}
		fmt.Fprintf(stdout, "proved\n%v%-24s %s\n", r, "output", buffers)
		return nil
	}}
}

// title is the first line of a drawing.
func title(s *schedule.Schedule) string {
	first, _, _ := strings.Cut(s.Shape(), "\n")
	return first
}
