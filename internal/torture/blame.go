package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"gogcl.dev/internal/command"
)

// blaming is the command line of the mode blame.
type blaming struct {
	runs, jobs   int
	seed         uint64
	signal, code int
	begin        string
	command      []string // of the launcher
}

// endTime is the time for a job to end after one of its replicas has. It is longer than two graces of gclrun.
const endTime = 30 * time.Second

// blame sends a signal to one replica of a job, and looks at what the launcher says about the end.
func blame(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var b blaming
	flags := flag.NewFlagSet("torture blame", flag.ContinueOnError)
	flags.IntVar(&b.runs, "runs", 100, "number of `jobs`, in each of which one replica gets the signal")
	flags.IntVar(&b.jobs, "j", 1, "number of `jobs` at a time")
	flags.Uint64Var(&b.seed, "seed", 1, "`seed` of the first job: it decides on the replica and the moment")
	flags.IntVar(&b.signal, "signal", 9, "`number` of the signal")
	flags.IntVar(&b.code, "code", 0, "exit `code` that the launcher is to have; 0: 128 and the signal")
	flags.StringVar(&b.begin, "begin", "epoch", "how the line of output `begins` that shows that the job is at work")
	err := command.ParseArguments(flags, args, stdout, "[flags] [--] launcher [arguments]", "Has a launcher such as "+
		"gclrun start a job, sends a signal to one of its replicas, and looks at what the launcher says: its last "+
		"line blames that replica, no other line blames one, and its exit code is the replica's.\n\n"+
		"  torture blame -runs 100 ./gclrun -n 4 ./rts -epochs 1000000")
	if errors.Is(err, flag.ErrHelp) {
		return command.OK
	}
	b.command = flags.Args()
	switch {
	case err != nil:
	case b.runs < 1:
		err = fmt.Errorf("-runs %d, want 1 or more", b.runs)
	case b.jobs < 1 || b.jobs > 64:
		err = fmt.Errorf("-j %d, want 1 to 64", b.jobs)
	case b.signal < 1 || b.signal > 31:
		err = fmt.Errorf("-signal %d, want 1 to 31", b.signal)
	case b.code < 0 || b.code > 255:
		err = fmt.Errorf("-code %d, want 1 to 255, or 0", b.code)
	case len(b.command) == 0:
		err = errors.New("the launcher is missing, such as ./gclrun -n 4 ./rts -epochs 1000000")
	}
	if err != nil {
		return command.Mistake("torture", err, stderr)
	}
	if b.code == 0 {
		b.code = 128 + b.signal
	}
	if unsupported != "" {
		fmt.Fprintln(stderr, unsupported)
		return command.Failed
	}
	return b.all(ctx, stdout, stderr)
}

// all carries out the runs, and prints how many went wrong.
func (b *blaming) all(ctx context.Context, stdout, stderr io.Writer) int {
	began := time.Now()
	var mu sync.Mutex // guards what follows
	done, wrong := 0, 0
	faults := map[string]int{}
	first := ""
	failed := each(ctx, b.runs, b.jobs, func(k int) error {
		text, found, err := b.one(ctx, b.seed+uint64(k))
		if err != nil {
			return fmt.Errorf("job %d: %w", k, err)
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		if len(found) > 0 {
			if wrong++; wrong == 1 {
				first = text
			}
		}
		for _, f := range found {
			faults[f]++
		}
		return nil
	})
	for _, f := range slices.Sorted(maps.Keys(faults)) {
		fmt.Fprintf(stdout, "%4d times %s\n", faults[f], f)
	}
	fmt.Fprintf(stdout, "%d jobs with a signal %d, %d blamed wrongly, in %v\n", done, b.signal, wrong,
		time.Since(began).Round(time.Millisecond))
	switch {
	case ctx.Err() != nil:
		return command.Ended(ctx, "torture", ctx.Err(), stderr)
	case failed != nil:
		fmt.Fprintf(stderr, "torture: %v\n", failed)
		return command.Failed
	case wrong > 0:
		fmt.Fprintf(stderr, "torture: the first that was wrong: %s\n", first)
		return command.Failed
	}
	return command.OK
}

// one carries out the run of a seed: what is wrong with it, and all that was said.
func (b *blaming) one(ctx context.Context, seed uint64) (text string, faults []string, err error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	job, err := launch(running, b.command, b.begin)
	if err != nil {
		return "", nil, err
	}
	defer func() {
		stop()
		<-job.ended
	}()
	replicas, err := job.await(ctx)
	if err == nil && len(replicas) == 0 {
		err = fmt.Errorf("%v has no children with a RANK in their environment", job.cmd)
	}
	if err != nil {
		return "", nil, err
	}
	r := rand.New(rand.NewPCG(seed, 27))
	victim := replicas[r.IntN(len(replicas))]
	moment := time.NewTimer(time.Duration(r.IntN(300)) * time.Millisecond)
	defer moment.Stop()
	select {
	case <-moment.C:
	case <-ctx.Done():
		return "", nil, context.Cause(ctx)
	}
	if err := signalTo(victim.pid, b.signal); err != nil {
		return "", nil, fmt.Errorf("replica %d (pid %d): %w", victim.rank, victim.pid, err)
	}
	limit := time.NewTimer(endTime)
	defer limit.Stop()
	select {
	case <-job.ended:
	case <-limit.C:
		return "", nil, fmt.Errorf("%v has not ended %v after replica %d got the signal", job.cmd, endTime, victim.rank)
	case <-ctx.Done():
		return "", nil, context.Cause(ctx)
	}
	said := launcherEnd{name: filepath.Base(b.command[0]), code: job.cmd.ProcessState.ExitCode(),
		stderr: string(job.stderr.text)}
	text = fmt.Sprintf("replica %d (pid %d) got signal %d; exit code %d\n%s", victim.rank, victim.pid, b.signal,
		said.code, said.stderr)
	return text, said.faults(victim, b.signal, b.code), nil
}

// launcherEnd is how a launcher has ended.
type launcherEnd struct {
	name   string // with which its lines begin
	code   int
	stderr string
}

// faults are what is wrong with the end of a launcher whose replica got a signal, and that is to have the exit code.
func (e launcherEnd) faults(victim child, signal, code int) (out []string) {
	if e.code != code {
		out = append(out, fmt.Sprintf("the exit code is %d, want %d", e.code, code))
	}
	lines := strings.Split(strings.TrimSuffix(e.stderr, "\n"), "\n")
	blames := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !e.blames(line) })
	if len(blames) == 0 {
		return append(out, "nobody is blamed")
	}
	// The host may follow the number of the process.
	who := regexp.MustCompile(fmt.Sprintf(`: replica %d \(pid %d[ )]`, victim.rank, victim.pid))
	how := regexp.MustCompile(fmt.Sprintf(`signal %d\b|exit code %d\b`, signal, code))
	if k := slices.IndexFunc(blames, who.MatchString); k < 0 {
		out = append(out, "another replica is blamed")
	} else if !how.MatchString(blames[k]) {
		out = append(out, "neither the signal nor the exit code is named")
	}
	if len(blames) > 1 {
		out = append(out, "more than one line blames")
	}
	if !e.blames(lines[len(lines)-1]) {
		out = append(out, "the last line does not blame")
	}
	return out
}

// blames reports whether a line is the launcher's, and about a replica.
func (e launcherEnd) blames(line string) bool { return strings.HasPrefix(line, e.name+": replica ") }
