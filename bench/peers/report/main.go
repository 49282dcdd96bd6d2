// Command report makes of what bench/peers.sh has collected the tables that it prints.
//
//	report -n 8 -best 2 raw.csv               how to repeat the runs of Open MPI that are worth it: collective, sizes
//	report -n 8 [-o table.csv] raw.csv        the tables
//	report -n 8 -mpi [-o table.csv] raw.csv   those of -transport mpi, which has two of ours and two of C
//
// raw.csv has one line for each time that was measured, as the program printed it, with three fields before it: who
// measured (ours, peer, floor), in which round, and the latency between the cores in nanoseconds seen beside it, 0
// where it is not known.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"gogcl.dev/internal/command"
)

func main() { command.Main("report", run) }

// settings are the command line.
type settings struct {
	n, best   int
	overMPI   bool
	table, in string // files; table is empty where none is to be written
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return command.OK
	case err != nil:
		return command.Mistake("report", err, stderr)
	}
	if err := s.report(stdout); err != nil {
		return command.Ended(ctx, "report", err, stderr)
	}
	return command.OK
}

// parseFlags reads the command line.
func parseFlags(args []string, stdout io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("report", flag.ContinueOnError)
	f.IntVar(&s.n, "n", 0, "number of `replicas`; must be given")
	f.IntVar(&s.best, "best", 0, "choose this `number` of ways to run Open MPI for each size")
	f.BoolVar(&s.overMPI, "mpi", false, "tables of bench/peers.sh -transport mpi")
	f.StringVar(&s.table, "o", "", "`file` to write the tables into as CSV too")
	const does = "Makes of what bench/peers.sh has collected the tables that it prints."
	if err := command.ParseArguments(f, args, stdout, "-n replicas [flags] raw.csv", does); err != nil {
		return s, err
	}
	s.in = f.Arg(0)
	switch {
	case f.NArg() == 0:
		return s, errors.New("the file is missing")
	case f.NArg() > 1:
		return s, fmt.Errorf("unexpected argument %q", f.Arg(1))
	case s.n < 1:
		return s, fmt.Errorf("-n %d, want 1 replica or more", s.n)
	case s.best < 0:
		return s, fmt.Errorf("-best %d, want 1 or more, or 0 for tables", s.best)
	}
	return s, nil
}

// report reads the file and writes the choice or the tables.
func (s settings) report(stdout io.Writer) error {
	in, err := os.Open(s.in)
	if err != nil {
		return err
	}
	defer in.Close()
	all, err := read(in, s.n)
	if err != nil {
		return err
	}
	if s.best > 0 {
		return choose(stdout, all, s.best)
	}
	text := func(w io.Writer) error { return writeTables(w, s.n, summarize(all)) }
	table := func(w io.Writer) error { return writeCSV(w, s.n, summarize(all)) }
	if s.overMPI {
		text = func(w io.Writer) error { return writeMPI(w, s.n, summarizeMPI(all)) }
		table = func(w io.Writer) error { return writeMPICSV(w, s.n, summarizeMPI(all)) }
	}
	if s.table != "" {
		out, err := os.Create(s.table)
		if err != nil {
			return err
		}
		if err := errors.Join(table(out), out.Close()); err != nil {
			return err
		}
	}
	return text(stdout)
}
