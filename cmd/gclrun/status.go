package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/watch"
)

// subcommands are what gclrun does beside starting a job, by the first argument, which no program's can be: it takes
// -n.
var subcommands = map[string]func(args []string, stdout, stderr io.Writer) int{
	"status":  status,
	"explain": explain,
}

// statusDoes is what -h of status says.
const statusDoes = `Says what the replicas of this user's jobs do that have a process on this host: who waits for whom, and first for whom
the job waits in the end. It answers within a second, whatever the replicas do.
`

// status prints what jobs do.
func status(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("gclrun status", flag.ContinueOnError)
	job := flags.String("job", "", "only the job of this `name`")
	asJSON := flags.Bool("json", false, "as JSON: an array of jobs, each with its processes and who waits for whom")
	again := flags.Bool("watch", false, "print it again every second, on a terminal in place, until Ctrl-C")
	code, ok := command.Flags(flags, args, stdout, stderr, statusDoes)
	if !ok {
		return code
	}
	fail := func(err error) int {
		fmt.Fprintf(stderr, "gclrun status: %v\n", err)
		return command.Failed
	}
	dir, err := watch.Dir()
	if err != nil {
		return fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	terminal := command.TerminalOf(stdout) != nil
	for {
		text, err := statusText(ctx, dir, *job, *asJSON)
		if ctx.Err() != nil { // nobody was asked to the end
			return command.OK
		}
		if err != nil && !*again {
			return fail(err)
		}
		if err != nil {
			text = []byte(err.Error() + "\n")
		}
		if *again && terminal {
			text = slices.Concat([]byte(clear), text)
		}
		if _, err := stdout.Write(text); err != nil {
			return fail(&command.OutputError{Err: err})
		}
		if !*again {
			return command.OK
		}
		select {
		case <-ctx.Done():
			return command.OK
		case <-time.After(time.Second):
		}
	}
}

// clear has a terminal go to its first line, and wipes out what is there (ECMA-48: CUP, ED).
const clear = "\x1b[H\x1b[2J"

// statusText is what there is to say of jobs, all or the one of a name.
func statusText(ctx context.Context, dir, name string, asJSON bool) ([]byte, error) {
	jobs, err := watch.Ask(ctx, dir)
	if err != nil {
		return nil, err
	}
	if name != "" {
		var names []string
		for _, j := range jobs {
			names = append(names, j.Name)
		}
		jobs = slices.DeleteFunc(jobs, func(j watch.Job) bool { return j.Name != name })
		if len(jobs) == 0 {
			return nil, fmt.Errorf("no job %q has a process on this host; there are: %s", name, list(names))
		}
	}
	if len(jobs) == 0 && !asJSON {
		return nil, errors.New("no job of this user has a process on this host")
	}
	var b bytes.Buffer
	if asJSON {
		type judged struct {
			watch.Job
			watch.Verdict
			Lateness []watch.Late `json:"lateness"`
		}
		all := []judged{}
		for _, j := range jobs {
			late := watch.Lateness(j.Processes)
			for _, p := range j.Processes { // which Lateness has in words
				for i := range p.Replicas {
					p.Replicas[i].Times = nil
				}
			}
			all = append(all, judged{j, j.Judge(), late})
		}
		text, err := json.MarshalIndent(all, "", "\t")
		return append(text, '\n'), err
	}
	for i, j := range jobs {
		if i > 0 {
			b.WriteString("\n")
		}
		if err := j.WriteTable(&b); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
