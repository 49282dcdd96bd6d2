package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"time"

	"gogcl.dev/internal/command"
)

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // methods at random: gcl warns of calls that they do not do
	command.Main("gen", run)
}

// settings are what the flags say.
type settings struct {
	mode      string
	seed      uint64
	programs  int
	limit     time.Duration // of the programs, or of the scenarios
	steps     int
	replicas  int // 0: the mode's own number
	hang      time.Duration
	domains   int
	dealt     bool
	jobs      int // 0: this process is no launcher
	transport string
	only      string
	detail    bool
	verbose   bool
}

// mode is one of the modes: it prints what it finds, and counts what should not be.
type mode struct {
	name string
	run  func(ctx context.Context, w io.Writer, s *settings) (bad int, err error)
}

var modes = []mode{
	{"run", inProcess},
	{"goroutines", goroutines},
	{"job", job},
	{"disagree", disagree},
	{"jobdisagree", jobDisagree},
	{"numerics", numerics},
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s settings
	flags := flag.NewFlagSet("gen", flag.ContinueOnError)
	flags.StringVar(&s.mode, "mode", "run", "run and numerics: in this process; job: one replica of a job of processes; "+
		"goroutines: the programs of such a job, in this process; disagree and jobdisagree: one rank calls something else")
	flags.Uint64Var(&s.seed, "seed", 1, "first seed")
	flags.IntVar(&s.programs, "progs", 1000, "programs at most")
	flags.DurationVar(&s.limit, "t", time.Minute, "time at most, but of a job")
	flags.IntVar(&s.steps, "steps", 24, "steps of a program")
	flags.IntVar(&s.replicas, "n", 0, "replicas at most; in -jobs, replicas (default 17; -jobs 4; jobdisagree 5)")
	flags.DurationVar(&s.hang, "hang", time.Minute, "what counts as a hang")
	flags.IntVar(&s.domains, "domains", 1, "job, goroutines: link domains, so that there is Hybrid")
	flags.BoolVar(&s.dealt, "dealt", false, "with -domains, deal replicas out to them in turn")
	flags.IntVar(&s.jobs, "jobs", 0, "start so many jobs of processes, one after the other, with seeds that ascend")
	flags.StringVar(&s.transport, "transport", "", "job, jobdisagree: JoinConfig.Transport; with -jobs tcp if not given")
	flags.StringVar(&s.only, "only", "", "disagree, jobdisagree: this kind of disagreement only")
	flags.BoolVar(&s.detail, "detail", false, "list methods and forms, or the texts of disagreements")
	flags.BoolVar(&s.verbose, "v", false, "disagree: print each scenario; jobs: print each job's output")
	if code, ok := command.Flags(flags, args, stdout, stderr, "Runs random programs of collectives against an oracle "+
		"of its own."); !ok {
		return code
	}
	bad, err := s.run(ctx, stdout)
	switch {
	case err != nil:
		return command.Ended(ctx, "gen", err, stderr)
	case bad > 0:
		return command.Failed
	}
	return command.OK
}

// run runs the mode, or the jobs of it.
func (s *settings) run(ctx context.Context, w io.Writer) (bad int, err error) {
	if s.dealt && s.domains < 2 {
		return 0, errors.New("-dealt: there is one link domain, want -domains 2 or more")
	}
	if s.programs < 1 || s.steps < 1 || s.domains < 1 || s.replicas < 0 || s.jobs < 0 {
		return 0, fmt.Errorf("%d programs of %d steps, %d domains: want at least one of each; %d replicas, %d jobs: "+
			"want no less than 0", s.programs, s.steps, s.domains, s.replicas, s.jobs)
	}
	if s.jobs > 0 {
		return launch(ctx, w, s)
	}
	if s.replicas == 0 {
		s.replicas = 17
	}
	for _, m := range modes {
		if m.name == s.mode {
			return m.run(ctx, w, s)
		}
	}
	var names []string
	for _, m := range modes {
		names = append(names, m.name)
	}
	return 0, fmt.Errorf("no mode %q: want one of %v", s.mode, names)
}
