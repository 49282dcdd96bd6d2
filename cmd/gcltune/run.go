package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

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
	file     string // the file of -table, behind links
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
	return p.Run(ctx, &p.raw.Flags, err, usage, p)
}

// Check implements measure.Task.
func (p *program) Check(job, _ int) (*measure.Settings, error) {
	s, err := p.raw.settings(p.given, job)
	if err == nil && s.table != "" && job == 0 {
		p.file, err = checkReplaceable("-table", s.table)
	}
	if err != nil {
		return nil, err
	}
	p.settings = s
	return s.Settings, nil
}

// Alone implements measure.Task: a job for each number of replicas, one after the other, and then the table or the
// comparison.
//
//	-n 2,4      job of 2                 job of 4                  the table
//	            pass 1, pass 2, pass 3   pass 1, pass 2, pass 3
//
// Each job has what is left of -limit, in the proportion of its replicas to those that are still to come.
func (p *program) Alone(ctx context.Context, _ *measure.Settings) int {
	start, s := time.Now(), p.settings
	auto := sweep{to: p.Stdout}
	if s.table == "" {
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
		if points = append(points, measured...); s.table == "" {
			auto.add(measured)
		}
	}
	if s.table == "" {
		auto.end()
		return command.OK
	}
	return p.writeTable(s, p.file, points, start)
}

// writeTable makes a table of the points and puts it into the file. It returns the exit code.
func (p *program) writeTable(s *settings, file string, points []point, start time.Time) int {
	text, err := rulesOf(points, s.heading(p.Args, start))
	if err == nil {
		if err = replaceFile(file, text); err != nil { // minutes of measuring shall not be lost
			fmt.Fprintf(p.Stdout, "%s", text)
		}
	}
	if err != nil {
		p.Complain(err)
		return command.Failed
	}
	n, rules := strings.Count(string(text), "\n")-strings.Count("\n"+string(text), "\n#"), "rules"
	if n == 1 {
		rules = "rule"
	}
	took := p.since(start).Round(time.Second)
	fmt.Fprintf(p.Stdout, "%s has %d %s, measured in %v\n", s.table, n, rules, took)
	return command.OK
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

// writePoints prints points, one on a line.
func writePoints(w io.Writer, points []point) error {
	e := json.NewEncoder(w)
	for _, p := range points {
		if err := e.Encode(p); err != nil {
			return err
		}
	}
	return nil
}

// readPoints reads what writePoints has printed.
func readPoints(r io.Reader) ([]point, error) {
	var out []point
	for d := json.NewDecoder(r); ; {
		var p point
		switch err := d.Decode(&p); err {
		case nil:
			out = append(out, p)
		case io.EOF:
			return out, nil
		default:
			return nil, fmt.Errorf("after %d points: %w", len(out), err)
		}
	}
}

// heading are the comments above the rules: where, when and how they were measured.
func (s *settings) heading(args []string, now time.Time) string {
	at := measure.NewOrigin("", now)
	medians := "One pass"
	if s.passes > 1 {
		medians = fmt.Sprintf("Medians of up to %d passes", s.passes)
	}
	command := "gcltune " + strings.Join(args, " ")
	if text := measure.Overrides(); text != "" {
		command = "GCL_OPTIONS='" + text + "' " + command
	}
	return fmt.Sprintf(`# %s
# %s, %d cores, %s, transport %s, gogcl.dev %s
# %s, %v %v. docs/tuning.md says how the methods were chosen.
`, asComment(command), at.Machine, at.Cores, at.Date, s.Transport, at.Version, medians, s.Op, s.DType)
}

// asComment makes a command line fit for a comment of a table.
func asComment(command string) string {
	const most = 900 // bytes
	line := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, command)
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + " ..."
	}
	return line
}
