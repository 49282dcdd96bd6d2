package measure

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
)

// Program is a run of a command that measures, in one process of it:
//
//	in a job of a launcher, or of another process of it      one replica of the job (member.go)
//	by itself                                                what its Task makes of it: all replicas among goroutines,
//	                                                         or none, and Start
type Program struct {
	Name           string
	Args           []string
	Stdout, Stderr io.Writer
}

// Task is what a Program does.
type Task interface {
	// Check checks the flags, and the files where it is given replica 0, and says what is measured. job is the number
	// of replicas in the job of this process, 0 without one.
	Check(job, replica int) (*Settings, error)
	// Alone measures in a program that is in no job, and returns the exit code.
	Alone(ctx context.Context, s *Settings) int
	// Measure measures at one replica of a job.
	Measure(ctx context.Context, s *Settings, c *gcl.Comm) error
	// Finish ends the output after Measure, whose error it is given, and returns the exit code.
	Finish(ctx context.Context, replica int, err error) int
}

// Run carries out the task: as a replica of a job, where this process is one, and else alone. err is what Read has
// found. It returns the exit code.
func (p *Program) Run(ctx context.Context, f *Flags, err error, usage func(io.Writer), task Task) int {
	if errors.Is(err, flag.ErrHelp) {
		usage(p.Stdout)
		return command.OK
	}
	code, joined := p.member(ctx, f, err, task)
	if joined {
		return code
	}
	var s *Settings
	if err == nil {
		s, err = task.Check(0, 0)
	}
	if err == nil {
		err = s.check(ctx, s.N)
	}
	if err != nil {
		p.Complain(err)
		return command.Usage
	}
	s.Beside = true
	return task.Alone(ctx, s)
}

// Complain prints an error.
func (p *Program) Complain(err error) { fmt.Fprintf(p.Stderr, "%s: %v\n", p.Name, err) }

// Ended returns the exit code of a replica after an error, which it prints. A replica other than 0 does not print that
// it was interrupted, nor that another one has aborted, which prints why itself, nor what all find, which is one of the
// errors everywhere. It does print that another one is lost.
func (p *Program) Ended(ctx context.Context, replica int, err error, everywhere ...error) int {
	if ctx.Err() != nil {
		if replica == 0 {
			fmt.Fprintf(p.Stderr, "%s: interrupted\n", p.Name)
		}
		return command.Interrupted
	}
	atAll := errors.Is(err, gcl.ErrAborted)
	for _, e := range everywhere {
		atAll = atAll || errors.Is(err, e)
	}
	if lost := (*gcl.PeerError)(nil); replica == 0 || errors.As(err, &lost) || !atAll {
		p.Complain(err)
	}
	return command.Failed
}
