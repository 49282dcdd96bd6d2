package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/watch"
)

const explainDoes = `Says what became of a job, from the files that its processes have written to the directory GCL_DUMP_DIR when it failed
or when calls waited long: who was first, and where the others were.
`

// explain says what became of a job.
func explain(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("gclrun explain", flag.ContinueOnError)
	if err := command.ParseArguments(flags, args, stdout, "directory", explainDoes); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return command.OK
		}
		return command.Mistake("gclrun explain", err, stderr)
	}
	if flags.NArg() != 1 {
		return command.Mistake("gclrun explain", errors.New("want one directory, that of GCL_DUMP_DIR"), stderr)
	}
	dir := flags.Arg(0)
	job, complaints, err := watch.ReadDir(dir)
	if err == nil && len(job.Processes) == 0 {
		err = fmt.Errorf("%s has no file of a process (gcl-*.json)", dir)
		for _, c := range complaints {
			err = fmt.Errorf("%w; %s", err, c)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "gclrun explain: %v\n", err)
		return command.Failed
	}
	for _, line := range job.Explain(complaints) {
		if _, err := fmt.Fprintln(stdout, line); err != nil {
			fmt.Fprintf(stderr, "gclrun explain: %v\n", err)
			return command.Failed
		}
	}
	return command.OK
}
