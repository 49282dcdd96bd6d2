package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"gogcl.dev/gcl"
)

// The exit codes.
const (
	exitOK          = 0
	exitWrong       = 1 // a wrong value, or a collective or a process that failed
	exitUsage       = 2
	exitInterrupted = 130 // as a shell has it for SIGINT; of a process after SIGTERM it is exitTerminated
	exitTerminated  = 143
)

// program is a run of gclperf in one process:
//
//	in a job of a launcher, or of another gclperf       one replica of the job (member.go)
//	by itself, with -transport inproc                   all replicas
//	by itself, with another -transport                  no replica: it starts one process for each (processes.go)
type program struct {
	args           []string
	line           *commandLine
	stdout, stderr io.Writer
	tamper         func(replica int, result []byte) // changes a result before its check; nil, but for tests
	since          func(time.Time) time.Duration    // what -limit goes by: time.Since, but for tests
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runTampered(ctx, args, stdout, stderr, nil)
}

// runTampered is run with a result that somebody may change between a collective and its check: nil, but for tests.
func runTampered(ctx context.Context, args []string, stdout, stderr io.Writer,
	tamper func(replica int, result []byte)) int {
	return newProgram(args, stdout, stderr, tamper).run(ctx)
}

func newProgram(args []string, stdout, stderr io.Writer, tamper func(replica int, result []byte)) *program {
	return &program{args: args, line: read(args), stdout: stdout, stderr: stderr, tamper: tamper, since: time.Since}
}

func (p *program) run(ctx context.Context) int {
	if errors.Is(p.line.err, flag.ErrHelp) {
		usage(p.stdout)
		return exitOK
	}
	code, err := p.member(ctx)
	if !errors.Is(err, gcl.ErrNoJob) {
		return code
	}
	s, err := p.line.settings(0)
	if err == nil && s.compares != nil {
		return p.comparison(ctx, s)
	}
	if err == nil {
		err = s.checkFiles()
	}
	if err == nil {
		err = s.check(ctx, s.n)
	}
	switch {
	case err != nil:
		p.complain(err)
		return exitUsage
	case s.processes:
		return p.processes(ctx, s)
	}
	s.beside = true
	b, err := p.bench(s, 0)
	if err != nil {
		p.complain(err)
		return exitUsage
	}
	return p.finish(ctx, b, 0, gcl.Run(ctx, s.n, b.replica))
}

// complain prints an error.
func (p *program) complain(err error) { fmt.Fprintf(p.stderr, "gclperf: %v\n", err) }

// check looks for what the flags alone do not show. local is how many replicas share this host's memory.
func (s *settings) check(ctx context.Context, local int) error {
	if err := s.probe(ctx); err != nil {
		return err
	}
	return s.checkMemory(local)
}

// bench makes what measures, in the process of a replica. Replica 0 prints.
func (p *program) bench(s *settings, replica int) (*bench, error) {
	if replica != 0 {
		return p.newBench(s, several{}), nil
	}
	out := several{newOutput(s, s.format, p.stdout, false)}
	if s.out != "" {
		file, err := openAppended(s)
		if err != nil {
			return nil, err
		}
		out = append(out, file)
	}
	return p.newBench(s, out), nil
}

// finish ends the output after a measurement, and returns the exit code. A replica other than 0 does not print that it
// was interrupted, nor that another one has aborted, which prints why itself. It does print that another one is lost.
func (p *program) finish(ctx context.Context, b *bench, replica int, err error) int {
	if end := b.out.end(); err == nil {
		err = end
	}
	s := b.settings
	if err == nil && s.svg != "" && replica == 0 {
		err = writeSVG(s, b.seen)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		if replica == 0 {
			fmt.Fprintln(p.stderr, "gclperf: interrupted")
		}
		return exitInterrupted
	case err != nil:
		lost := (*gcl.PeerError)(nil)
		atAll := errors.Is(err, gcl.ErrAborted) || errors.Is(err, errLimit)
		if replica == 0 || errors.As(err, &lost) || !atAll {
			p.complain(err)
		}
		return exitWrong
	case b.wrong() > 0:
		fmt.Fprintf(p.stderr, "gclperf: %d wrong values\n", b.wrong())
		return exitWrong
	}
	return exitOK
}

// writeSVG draws what was measured.
func writeSVG(s *settings, seen []measurement) error {
	var b bytes.Buffer
	if err := picture(s, seen).Write(&b); err != nil {
		return err
	}
	return os.WriteFile(s.svg, b.Bytes(), 0o644)
}
