package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
)

// program is a run of gcltune in one process.
type program struct {
	measure.Program
	raw    raw
	given  measure.Given
	tamper func(replica int, result []byte) // changes a result before its check; nil, but for tests
	since  func(time.Time) time.Duration    // what -limit goes by: time.Since, but for tests

	settings *settings
	table    string // the file of -table, behind links
	samples  string // that of -samples
}

func newProgram(args []string, stdout, stderr io.Writer) *program {
	return &program{since: time.Since,
		Program: measure.Program{Name: "gcltune", Args: args, Stdout: stdout, Stderr: stderr}}
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return newProgram(args, stdout, stderr).run(ctx)
}

func (p *program) run(ctx context.Context) int {
	var err error
	p.given, err = measure.Read(flags(&p.raw), p.Args)
	if err == nil && p.given.Has("from") {
		return p.fromSamples()
	}
	return p.Run(ctx, &p.raw.Flags, err, usage, p)
}

// Check implements measure.Task.
func (p *program) Check(job, _ int) (*measure.Settings, error) {
	s, err := p.raw.settings(p.given, job)
	if err == nil && s.table != "" && job == 0 {
		p.table, err = checkReplaceable("-table", s.table)
	}
	if err == nil && s.samples != "" && job == 0 {
		p.samples, err = checkReplaceable("-samples", s.samples)
	}
	if err == nil && p.samples != "" && p.samples == p.table {
		err = fmt.Errorf("-samples and -table are one file, %s: want two", p.table)
	}
	if err != nil {
		return nil, err
	}
	p.settings = s
	return s.Settings, nil
}

// Alone implements measure.Task: a job for each number of replicas, one after the other, and then the files or the
// comparison.
//
//	-n 2,4      job of 2                 job of 4                  the table
//	            pass 1, pass 2, pass 3   pass 1, pass 2, pass 3
//
// Each job has what is left of -limit, in the proportion of its replicas to those that are still to come.
func (p *program) Alone(ctx context.Context, _ *measure.Settings) int {
	start, s := time.Now(), p.settings
	auto := sweep{to: p.Stdout}
	if s.sweeps() {
		auto.begin()
	}
	var points []point
	for i, n := range s.counts {
		left, replicas := s.limit-p.since(start), 0
		for _, later := range s.counts[i:] {
			replicas += later
		}
		share := max(left*time.Duration(n)/time.Duration(replicas), 1)
		measured, code := p.part(ctx, n, share)
		if code != command.OK {
			return code
		}
		if points = append(points, measured...); s.sweeps() {
			auto.add(measured)
		}
	}
	if s.sweeps() {
		auto.end()
		return command.OK
	}
	took := p.since(start).Round(time.Second)
	return p.write(samples{s.origin(p.Args, start), points}, fmt.Sprint("measured in ", took))
}

// write writes the files that were asked for. It returns the exit code.
func (p *program) write(all samples, how string) int {
	if p.samples != "" {
		text, err := all.encode()
		if err == nil {
			err = p.put(p.samples, text)
		}
		if err != nil {
			p.Complain(err)
			return command.Failed
		}
		fmt.Fprintf(p.Stdout, "%s has %d points, %s\n", p.settings.samples, len(all.points), how)
	}
	if p.table == "" {
		return command.OK
	}
	text, err := rulesOf(all.points, all.heading())
	return p.writeTable(p.settings.table, p.table, text, err, how)
}

// part measures over one number of replicas.
func (p *program) part(ctx context.Context, n int, limit time.Duration) ([]point, int) {
	if p.settings.Processes {
		return p.processes(ctx, n, limit)
	}
	s, common := *p.settings, *p.settings.Settings
	common.N = n
	s.Settings, s.limit = &common, limit
	c := p.newComparison(&s)
	if err := gcl.Run(ctx, n, c.replica); err != nil {
		return nil, p.Ended(ctx, 0, err)
	}
	return c.points, command.OK
}

// processes is part with a process for each replica. Replica 0 prints what it has measured.
func (p *program) processes(ctx context.Context, n int, limit time.Duration) ([]point, int) {
	var out bytes.Buffer
	code := p.Start(ctx, measure.Job{N: n, Transport: p.settings.Transport, Stdout: &out,
		Args: append(slices.Clone(p.Args), "-n", fmt.Sprint(n)), Env: []string{partOf + "=" + limit.String()}})
	if code != command.OK {
		return nil, code
	}
	if ctx.Err() != nil {
		return nil, p.Ended(ctx, 0, ctx.Err())
	}
	points, err := readPoints(&out)
	if err == nil && len(points) == 0 {
		err = errors.New("replica 0 has printed nothing")
	}
	if err != nil {
		p.Complain(fmt.Errorf("%d replicas: %w", n, err))
		return nil, command.Failed
	}
	return points, command.OK
}

// Measure implements measure.Task.
func (p *program) Measure(ctx context.Context, _ *measure.Settings, c *gcl.Comm) error {
	of := p.newComparison(p.settings)
	if err := of.replica(ctx, c); err != nil {
		return err
	}
	return writePoints(p.Stdout, of.points) // none but at replica 0
}

// Finish implements measure.Task.
func (p *program) Finish(ctx context.Context, replica int, err error) int {
	if err != nil {
		return p.Ended(ctx, replica, err, errLimit)
	}
	return command.OK
}
