package main

import (
	"context"
	"flag"
	"fmt"
	"slices"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
)

// overEach measures over one transport after the other:
//
//	inproc    in this process, and sim
//	others    in a job for each, replica 0 of which prints CSV, which this process reads
//
// A transport that fails is the last one.
func (p *program) overEach(ctx context.Context) int {
	if err := p.open(0); err != nil {
		p.Complain(err)
		return command.Usage
	}
	all := *p.bench.settings
	for _, name := range all.Transports {
		one := all
		one.Settings = all.Over(name)
		if !one.Processes {
			p.bench.settings = &one
			err := one.Run(ctx, p.bench.replica)
			p.bench.settings = &all
			if err != nil {
				return p.Finish(ctx, 0, err)
			}
			continue
		}
		read := &reader{take: p.bench.note, rest: p.Stderr}
		code := p.Start(ctx, measure.Job{N: one.N, Transport: name, Args: p.line.over(name), Stdout: read})
		if read.err != nil { // the output's; the job has ended since nobody reads it
			return p.Finish(ctx, 0, read.err)
		}
		if code != command.OK { // it has said why
			if err := p.bench.out.end(); err != nil {
				p.Complain(err)
			}
			return code
		}
	}
	return p.Finish(ctx, 0, nil)
}

// ofOutput are the flags that say what this process prints.
var ofOutput = []string{"transport", "network", "overhead", "csv", "json", "v", "cpu", "out", "svg", "floor"}

// over is the command line of a job over one of the transports.
func (l *commandLine) over(transport string) []string {
	args := []string{"-transport=" + transport, "-csv"}
	l.flags.Visit(func(f *flag.Flag) {
		if !slices.Contains(ofOutput, f.Name) {
			args = append(args, fmt.Sprintf("-%s=%v", f.Name, f.Value))
		}
	})
	return args
}
