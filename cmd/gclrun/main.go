package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"gogcl.dev/internal/command"
)

// The exit codes for a program that cannot be started are those of shells.
const (
	exitCannotStart = 126
	exitNotFound    = 127
)

func main() { os.Exit(run(os.Args[1:], time.After)) }

// run is the program. It returns the exit code. after is time.After, but in tests.
func run(args []string, after func(time.Duration) <-chan time.Time) int {
	if len(args) > 0 {
		if f := subcommands[args[0]]; f != nil {
			return f(args[1:], os.Stdout, os.Stderr)
		}
	}
	signals := listen()
	var help strings.Builder
	s, err := parse(args, &help)
	if errors.Is(err, flag.ErrHelp) {
		if _, err := os.Stdout.WriteString(help.String()); err != nil {
			fmt.Fprintf(os.Stderr, "gclrun: output: %v\n", err)
			return command.Failed
		}
		return command.OK
	}
	var cores []int
	if err == nil && s.bind {
		cores, err = pickCores(s.n)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "gclrun: %v (-h lists the flags)\n", err)
		return command.Usage
	}
	replicas, err := s.start(cores)
	if err != nil {
		fmt.Fprintf(os.Stderr, "gclrun: %v\n", err)
		return startCode(err)
	}
	stdout := newSink(os.Stdout)
	stderr := stdout
	if !sameFile(os.Stdout, os.Stderr) {
		stderr = newSink(os.Stderr)
	}
	pumps := pumpAll(replicas, stdout, stderr, s.prefix)
	j := &job{replicas: replicas, grace: s.grace, after: after, stdout: stdout, stderr: stderr,
		complete: pumps.complete}
	if s.survive {
		j.min, j.restarts = s.min, s.restarts
		j.again = func(rank int) (*replica, error) {
			r, err := s.again(rank)
			if err == nil {
				pumps.add(r)
			}
			return r, err
		}
	}
	return j.wait(signals, pumps.drained())
}

// startCode is the exit code for an error of start.
func startCode(err error) int {
	var failed *startError
	switch {
	case !errors.As(err, &failed):
		return command.Failed
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	}
	return exitCannotStart
}
