package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
)

// program is a run of gclperf in one process.
type program struct {
	measure.Program
	line   *commandLine
	tamper func(replica int, result []byte) // changes a result before its check; nil, but for tests

	settings *settings
	bench    *bench // of this process
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runTampered(ctx, args, stdout, stderr, nil)
}

// runTampered is run with a result that somebody may change between a collective and its check: nil, but for tests.
func runTampered(ctx context.Context, args []string, stdout, stderr io.Writer,
	tamper func(replica int, result []byte)) int {
	p := &program{Program: measure.Program{Name: "gclperf", Args: args, Stdout: stdout, Stderr: stderr},
		line: read(args), tamper: tamper}
	return p.Run(ctx, &p.line.raw.Flags, p.line.err, usage, p)
}

// Check implements measure.Task.
func (p *program) Check(job, replica int) (*measure.Settings, error) {
	s, err := p.line.raw.settings(p.line.given, job)
	if err == nil && replica == 0 {
		err = s.checkFiles()
	}
	if err != nil {
		return nil, err
	}
	p.settings = s
	return s.Settings, nil
}

// Alone implements measure.Task.
func (p *program) Alone(ctx context.Context, s *measure.Settings) int {
	if len(s.Transports) > 1 {
		return p.overEach(ctx)
	}
	if s.Processes {
		return p.Start(ctx, measure.Job{N: s.N, Transport: s.Transport, Args: p.Args, Stdout: command.File(p.Stdout)})
	}
	if err := p.open(0); err != nil {
		p.Complain(err)
		return command.Usage
	}
	return p.Finish(ctx, 0, s.Run(ctx, p.bench.replica))
}

// Measure implements measure.Task.
func (p *program) Measure(ctx context.Context, _ *measure.Settings, c *gcl.Comm) error {
	if err := p.open(c.Replica()); err != nil {
		return err
	}
	return p.bench.replica(ctx, c)
}

// open makes what measures, in the process of a replica. Replica 0 prints.
func (p *program) open(replica int) error {
	out := several{}
	if s := p.settings; replica == 0 {
		out = append(out, newOutput(s, s.format, p.Stdout, false))
		if s.out != "" {
			file, err := openAppended(s)
			if err != nil {
				return err
			}
			out = append(out, file)
		}
	}
	p.bench = newBench(p.settings, out, p.Stderr, p.tamper)
	return nil
}

// Finish implements measure.Task.
func (p *program) Finish(ctx context.Context, replica int, err error) int {
	b := p.bench
	if b == nil {
		return p.Ended(ctx, replica, err)
	}
	if end := b.out.end(); err == nil {
		err = end
	}
	if err == nil && b.settings.svg != "" && replica == 0 {
		err = writeSVG(b.settings, b.seen)
	}
	switch {
	case err != nil:
		return p.Ended(ctx, replica, err)
	case b.wrong() > 0:
		fmt.Fprintf(p.Stderr, "gclperf: %d wrong values\n", b.wrong())
		return command.Failed
	}
	return command.OK
}

// writeSVG draws what was measured.
func writeSVG(s *settings, seen []measurement) error {
	var b bytes.Buffer
	if err := picture(s, seen).Write(&b); err != nil {
		return err
	}
	return os.WriteFile(s.svg, b.Bytes(), 0o644)
}
