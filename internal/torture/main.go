package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"gogcl.dev/internal/command"
)

func main() {
	if text, ok := os.LookupEnv(orderVariable); ok {
		os.Exit(replica(text))
	}
	command.Main("torture", run)
}

// networks are those of the flag -transport.
var networks = []string{"", "tcp", "unix", "shm"}

// settings are the command line of a run without the name of a mode.
type settings struct {
	runs, processes, jobs int
	seed                  uint64
	network               string // "": the seed decides
	verbose               bool

	corrupt func(p *plan) int // in tests: the step of which the victim spoils the result, or -1
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	for _, m := range modes {
		if len(args) > 0 && args[0] == m.name {
			return m.run(ctx, args[1:], stdout, stderr)
		}
	}
	return events(ctx, args, stdout, stderr)
}

// events has something happen at random moments of random programs.
func events(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s := settings{corrupt: func(*plan) int { return -1 }}
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.IntVar(&s.runs, "runs", 200, "number of `runs`")
	flags.Uint64Var(&s.seed, "seed", 1, "`seed` of the first run")
	flags.IntVar(&s.processes, "n", 0, "number of `processes`; 0: the seed decides, 2 to 5")
	flags.StringVar(&s.network, "transport", "", "tcp, unix or shm; default: the seed decides, tcp or unix")
	flags.IntVar(&s.jobs, "j", 2, "number of `runs` at a time")
	flags.BoolVar(&s.verbose, "v", false, "print a line for each run")
	var does strings.Builder
	does.WriteString("Runs jobs of processes in which something happens, and looks at how they end: \"go doc " +
		"gogcl.dev/internal/torture\".\n")
	for _, m := range modes {
		fmt.Fprintf(&does, "\n  torture %-7s  %s", m.name, m.does)
	}
	err := command.Parse(flags, args, stdout, does.String()+"\n\nEach of these lists its own flags: torture blame -h.")
	if errors.Is(err, flag.ErrHelp) {
		return command.OK
	}
	switch {
	case err != nil:
	case s.runs < 1:
		err = fmt.Errorf("-runs %d, want 1 or more", s.runs)
	case s.processes < 0 || s.processes == 1 || s.processes > 64:
		err = fmt.Errorf("-n %d, want 2 to 64, or 0", s.processes)
	case !slices.Contains(networks, s.network):
		err = fmt.Errorf("-transport %s, want tcp, unix or shm", s.network)
	case s.jobs < 1 || s.jobs > 64:
		err = fmt.Errorf("-j %d, want 1 to 64", s.jobs)
	}
	if err != nil {
		return command.Mistake("torture", err, stderr)
	}
	if unsupported != "" {
		fmt.Fprintln(stderr, unsupported)
		return command.Failed
	}
	return s.torture(ctx, stdout, stderr)
}

// tally is how the runs have gone.
type tally struct {
	mu     sync.Mutex // guards what follows
	counts map[event]*[endings]int
	total  int
	wrong  int

	firstSeed uint64
	firstText string
}

// torture carries out the runs and prints the table.
func (s *settings) torture(ctx context.Context, stdout, stderr io.Writer) int {
	t := &tally{counts: map[event]*[endings]int{}}
	for _, w := range weights {
		t.counts[w.event] = new([endings]int)
	}
	began := time.Now()
	failed := each(ctx, s.runs, s.jobs, func(k int) error { return s.one(ctx, t, s.seed+uint64(k), stdout) })
	t.print(stdout, time.Since(began))
	switch {
	case t.wrong > 0:
		again := fmt.Sprintf("go run ./internal/torture -runs 1 -seed %d", t.firstSeed)
		if s.processes > 0 {
			again += fmt.Sprintf(" -n %d", s.processes)
		}
		if s.network != "" {
			again += " -transport " + s.network
		}
		fmt.Fprintf(stderr, "torture: %s\ntorture: to repeat this run: %s -v\n", t.firstText, again)
		return command.Failed
	case ctx.Err() != nil:
		return command.Ended(ctx, "torture", ctx.Err(), stderr)
	case failed != nil:
		fmt.Fprintf(stderr, "torture: %v\n", failed)
		return command.Failed
	}
	return command.OK
}

// one carries out the run of a seed. The error is one of the operating system, or that the run was wrong.
func (s *settings) one(ctx context.Context, t *tally, seed uint64, stdout io.Writer) error {
	p := newPlan(seed, s.processes, s.network)
	began := time.Now()
	how, wrong, err := carryOut(ctx, &p, s.processes, s.network, s.corrupt(&p))
	took := time.Since(began)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
		return err
	case wrong != "":
		if t.wrong++; t.wrong == 1 || seed < t.firstSeed {
			t.firstSeed, t.firstText = seed, fmt.Sprintf("%v: %s", &p, wrong)
		}
	default:
		t.counts[p.event][how]++
		t.total++
	}
	if s.verbose {
		verdict := how.String()
		if wrong != "" {
			verdict = "WRONG"
		}
		fmt.Fprintf(stdout, "%v: %s in %v\n", &p, verdict, took.Round(time.Millisecond))
	}
	if wrong != "" {
		return errors.New(wrong)
	}
	return nil
}

// print prints the table.
func (t *tally) print(w io.Writer, took time.Duration) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "event\t")
	for e := range endings {
		fmt.Fprintf(table, "%v\t", e)
	}
	fmt.Fprintln(table, "runs\t")
	for _, row := range weights {
		counts := t.counts[row.event]
		fmt.Fprintf(table, "%s\t", row.event)
		sum := 0
		for e := range endings {
			fmt.Fprintf(table, "%d\t", counts[e])
			sum += counts[e]
		}
		fmt.Fprintf(table, "%d\t\n", sum)
	}
	table.Flush()
	fmt.Fprintf(w, "%d runs right, %d wrong, in %v\n", t.total, t.wrong, took.Round(time.Millisecond))
}
