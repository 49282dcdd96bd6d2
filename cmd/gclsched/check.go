package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"gogcl.dev/methods/schedule"
)

// checkVerb proves a schedule and prints the report.
func checkVerb(_ *flag.FlagSet, from *source) work {
	return work{func() error { return nil }, func(stdout io.Writer) error {
		f, err := from.read()
		if err != nil {
			return err
		}
		fmt.Fprintln(stdout, title(f.Schedule))
		r, err := schedule.Examine(f.Schedule)
		if err != nil {
			return from.of(err)
		}
		report(stdout, f.Schedule, r)
		return nil
	}}
}

// title is the first line of a drawing.
func title(s *schedule.Schedule) string {
	first, _, _ := strings.Cut(s.Shape(), "\n")
	return first
}

// report prints what the proof has found out.
func report(w io.Writer, s *schedule.Schedule, r schedule.Report) {
	messages := 0
	for _, p := range s.Programs {
		for _, round := range p {
			for _, st := range round.Moves {
				if st.Verb == schedule.Send {
					messages++
				}
			}
		}
	}
	sent := fmt.Sprintf("%d chunks by each rank", r.Sent[0])
	if least, most := slices.Min(r.Sent), slices.Max(r.Sent); least != most {
		sent = fmt.Sprintf("%d to %d chunks by a rank", least, most)
	}
	fmt.Fprintf(w, "proved\n  rounds    %d\n  messages  %d\n  sent      %s, of %d\n", r.Rounds, messages, sent, s.Chunks)
	buffers := "Output may be Input"
	if s.Apart {
		buffers = "Output must not be Input"
	}
	fmt.Fprintf(w, "  buffers   %s\n", buffers)
	if !s.Collective.Contract().Combines {
		return
	}
	order := "ranks combine an element in different orders"
	switch {
	case r.RankOrder:
		order = "every rank combines each element in the order of the ranks"
	case r.OneOrder:
		order = "all ranks combine an element in one order"
	}
	fmt.Fprintf(w, "  order     %s\n", order)
}
