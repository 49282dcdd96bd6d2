package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"gogcl.dev/gcl"
)

// comparison carries out -tune and -sweep, and returns the exit code: a job for each number of replicas, one after the
// other, and then the table or the comparison.
//
//	-n 2,4      job of 2                 job of 4                  the table
//	            pass 1, pass 2, pass 3   pass 1, pass 2, pass 3
//
// Each job has what is left of -limit, in the proportion of its replicas to those that are still to come.
func (p *program) comparison(ctx context.Context, s *settings) int {
	start := time.Now()
	file, err := "", s.check(ctx, s.n)
	if err == nil && s.compares.file != "" {
		file, err = checkReplaceable("-tune", s.compares.file)
	}
	if err != nil {
		p.complain(err)
		return exitUsage
	}
	var points []point
	for i, n := range s.compares.counts {
		left, replicas := s.compares.limit-p.since(start), 0
		for _, later := range s.compares.counts[i:] {
			replicas += later
		}
		share := max(left*time.Duration(n)/time.Duration(replicas), 1)
		measured, code := p.comparePart(ctx, s, n, share)
		if code != exitOK {
			return code
		}
		points = append(points, measured...)
	}
	if s.compares.file == "" {
		printSweep(p.stdout, points)
		return exitOK
	}
	return p.writeTable(s, file, points, start)
}

// writeTable makes a table of the points and puts it into the file. It returns the exit code.
func (p *program) writeTable(s *settings, file string, points []point, start time.Time) int {
	text, err := rulesOf(points, s.heading(p.args, start))
	if err == nil {
		if err = replaceFile(file, text); err != nil { // minutes of measuring shall not be lost
			fmt.Fprintf(p.stdout, "%s", text)
		}
	}
	if err != nil {
		p.complain(err)
		return exitWrong
	}
	n, rules := strings.Count(string(text), "\n")-strings.Count("\n"+string(text), "\n#"), "rules"
	if n == 1 {
		rules = "rule"
	}
	took := p.since(start).Round(time.Second)
	fmt.Fprintf(p.stdout, "%s has %d %s, measured in %v\n", s.compares.file, n, rules, took)
	return exitOK
}

// comparePart measures over one number of replicas.
func (p *program) comparePart(ctx context.Context, whole *settings, n int, limit time.Duration) ([]point, int) {
	if whole.processes {
		return p.compareProcesses(ctx, whole, n, limit)
	}
	s, c := *whole, *whole.compares
	s.n, s.beside, s.compares, c.limit = n, true, &c, limit
	b := p.newBench(&s, several{})
	if err := gcl.Run(ctx, n, b.replica); err != nil {
		return nil, p.finish(ctx, b, 0, err)
	}
	return b.compared, exitOK
}

// compareProcesses is comparePart with a process for each replica. Replica 0 prints what it has measured.
func (p *program) compareProcesses(ctx context.Context, s *settings, n int, limit time.Duration) ([]point, int) {
	runtime.LockOSThread() // see spawn.Own
	defer runtime.UnlockOSThread()
	var out bytes.Buffer
	children, err := p.start(s, part{n: n, args: append(slices.Clone(p.args), "-n", fmt.Sprint(n)),
		env: []string{partOf + "=" + limit.String()}, stdout: &out})
	if err != nil {
		signalAll(children, os.Kill)
		for _, c := range children {
			_ = c.Wait() // killed, as asked for
		}
		p.complain(err)
		return nil, exitWrong
	}
	if code := p.wait(ctx, children); code != exitOK {
		return nil, code
	}
	if ctx.Err() != nil {
		fmt.Fprintln(p.stderr, "gclperf: interrupted")
		return nil, exitInterrupted
	}
	points, err := readPoints(&out)
	if err == nil && len(points) == 0 {
		err = errors.New("replica 0 has printed nothing")
	}
	if err != nil {
		p.complain(fmt.Errorf("%d replicas: %w", n, err))
		return nil, exitWrong
	}
	return points, exitOK
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
	at := newOrigin(s, now)
	medians := "One pass"
	if s.compares.passes > 1 {
		medians = fmt.Sprintf("Medians of up to %d passes", s.compares.passes)
	}
	command := "gclperf " + strings.Join(args, " ")
	if text := overrides(); text != "" {
		command = "GCL_OPTIONS='" + text + "' " + command
	}
	return fmt.Sprintf(`# %s
# %s, %d cores, %s, transport %s, gogcl.dev %s
# %s, %v %v. docs/tuning.md says how the methods were chosen.
`, asComment(command), at.Machine, at.Cores, at.Date, s.transport, at.Version, medians, s.op, s.dtype)
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

// tempFile makes a file beside another, whose place it may take.
func tempFile(name string) (*os.File, error) { return os.CreateTemp(filepath.Dir(name), ".gclperf-*") }

// checkReplaceable finds out whether a file can be written and take the place of another, rather than minutes later. It
// returns the name of the file that a link leads to.
func checkReplaceable(flag, name string) (target string, err error) {
	target = name
	if at, err := os.Lstat(name); err == nil && at.Mode()&fs.ModeSymlink != 0 {
		if target, err = filepath.EvalSymlinks(name); err != nil {
			return "", fmt.Errorf("%s %s is a link that leads nowhere: %w", flag, name, err)
		}
	}
	if err := checkWritable(flag, target); err != nil {
		return "", err
	}
	if file, err := os.Stat(target); err == nil && !file.Mode().IsRegular() {
		return "", fmt.Errorf("%s %s is no file, want one", flag, name)
	}
	f, err := tempFile(target)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	return target, errors.Join(f.Close(), os.Remove(f.Name()))
}

// replaceFile writes a file whole or not at all.
func replaceFile(name string, text []byte) (err error) {
	mode := fs.FileMode(0o644)
	if file, err := os.Stat(name); err == nil {
		mode = file.Mode().Perm()
	}
	f, err := tempFile(name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
