// Command report makes of what bench/peers.sh has collected the tables that it prints.
//
//	report -n 8 -best 2 raw.csv          prints, for each run of Open MPI that is worth repeating: how to run it, the collective, and the sizes
//	report -n 8 [-o table.csv] raw.csv   prints the tables
//
// raw.csv has one line for each time that was measured, as the program printed it, with three fields before it: who
// measured (ours, peer, floor), in which round, and the latency between the cores in nanoseconds seen beside it, 0
// where it is not known.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	f := flag.NewFlagSet("report", flag.ContinueOnError)
	n := f.Int("n", 0, "replicas")
	best := f.Int("best", 0, "choose so many ways to run Open MPI for each size")
	file := f.String("o", "", "write the tables as CSV into this file too")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 || *n < 1 {
		return errors.New("want -n and a file")
	}
	in, err := os.Open(f.Arg(0))
	if err != nil {
		return err
	}
	defer in.Close()
	all, err := read(in, *n)
	if err != nil {
		return err
	}
	if *best > 0 {
		return choose(stdout, all, *best)
	}
	tables := summarize(all)
	if *file != "" {
		out, err := os.Create(*file)
		if err != nil {
			return err
		}
		if err := errors.Join(writeCSV(out, *n, tables), out.Close()); err != nil {
			return err
		}
	}
	return writeTables(stdout, *n, tables)
}
