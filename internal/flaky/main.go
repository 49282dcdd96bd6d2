package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/internal/command"
)

//go:embed flaky.txt
var table string

func main() { command.Main("flaky", run) }

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("flaky", flag.ContinueOnError)
	match := flags.String("run", "", "only tests whose package and name match this `regexp`")
	loops := flags.Int("loops", 6, "number of busy `loops` beside")
	side := flags.Int("j", 3, "number of different `tests` at a time")
	progress := flags.String("progress", "flaky.log", "the `file` that says how often each test has run")
	look := flags.Bool("n", false, "run nothing, and print what the file says")
	if code, ok := command.Flags(flags, args, stdout, stderr, "Runs the tests whose outcome could hang on chance, "+
		"again and again, on a busy machine."); !ok {
		return code
	}
	if err := work(ctx, stdout, table, *match, *side, *loops, *progress, *look); err != nil {
		return command.Ended(ctx, "flaky", err, stderr)
	}
	return command.OK
}

// row is a test of the table, and what became of it.
type row struct {
	times    int // that it is to run
	pkg      string
	pattern  string // of one test: its name, and perhaps those of subtests, with / between
	ran, bad int
	took     time.Duration // by all runs
}

func (r *row) name() string { return r.pkg + " " + r.pattern }

// parse reads the table: a line for each test, of how often, the package and the pattern. # begins a comment.
func parse(table string) (rows []*row, err error) {
	for i, line := range strings.Split(table, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 3 {
			return nil, fmt.Errorf("line %d has %d words, want how often, a package and a test", i+1, len(words))
		}
		times, err := strconv.Atoi(words[0])
		if err != nil || times < 1 {
			return nil, fmt.Errorf("line %d: %q is no number of runs", i+1, words[0])
		}
		rows = append(rows, &row{times: times, pkg: words[1], pattern: words[2]})
	}
	return rows, nil
}

// work runs what is left of the tests that match, and prints what came of all that do.
func work(ctx context.Context, w io.Writer, table, match string, side, loops int, progress string, look bool) error {
	matches, err := regexp.Compile(match)
	if err != nil {
		return err
	}
	all, err := parse(table)
	if err != nil {
		return err
	}
	var rows []*row
	for _, r := range all {
		if matches.MatchString(r.name()) {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 || loops < 0 || side < 1 {
		return fmt.Errorf("%d tests match %q, %d at a time beside %d loops; want at least one test, one at a time, and no "+
			"less than no loop", len(rows), match, side, loops)
	}
	flags := os.O_RDWR | os.O_CREATE | os.O_APPEND
	if look {
		flags = os.O_RDONLY
	}
	log, err := os.OpenFile(progress, flags, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := resume(log, rows); err != nil {
		return err
	}
	if !look {
		defer busy(loops)()
		if err := runAll(ctx, log, rows, side); err != nil {
			return err
		}
	}
	return print(w, rows)
}

// resume reads from the file what has run already. Lines of another form are what tests have said.
func resume(log io.Reader, rows []*row) error {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) != 5 || words[0] != "ran" {
			continue
		}
		took, err := time.ParseDuration(words[4])
		if err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		for _, r := range rows {
			if r.pkg == words[1] && r.pattern == words[2] {
				r.note(words[3] == "ok", took)
			}
		}
	}
	return lines.Err()
}

func (r *row) note(ok bool, took time.Duration) {
	r.ran++
	r.took += took
	if !ok {
		r.bad++
	}
}

// busy starts loops that take a processor each. The function returned ends them.
func busy(loops int) (end func()) {
	var over atomic.Bool
	runtime.GOMAXPROCS(loops + 2) // the loops are to compete with the tests, not with each other
	var all sync.WaitGroup
	for range loops {
		all.Go(func() {
			for !over.Load() {
			}
		})
	}
	return func() {
		over.Store(true)
		all.Wait()
	}
}

// runAll runs each test as often as it has not run yet, some tests at a time. Of each package the tests are built once.
func runAll(ctx context.Context, log io.Writer, rows []*row, side int) error {
	dir, err := os.MkdirTemp("", "flaky")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	built := map[string]string{}
	for _, r := range rows {
		if r.ran >= r.times || built[r.pkg] != "" {
			continue
		}
		program := filepath.Join(dir, fmt.Sprintf("%d.test", len(built)))
		out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, r.pkg).CombinedOutput()
		if err != nil {
			return fmt.Errorf("building the tests of %s: %w\n%s", r.pkg, err, out)
		}
		built[r.pkg] = program
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(side)
	for _, r := range rows {
		all.Go(func() error {
			for r.ran < r.times {
				if err := r.once(ctx, log, built[r.pkg]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// once runs a test, and notes it.
func (r *row) once(ctx context.Context, log io.Writer, program string) error {
	began := time.Now()
	cmd := exec.CommandContext(ctx, program, "-test.run=^"+strings.ReplaceAll(r.pattern, "/", "$/^")+"$", "-test.v",
		"-test.count=1", "-test.timeout=10m")
	cmd.Dir = r.pkg
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	took := time.Since(began).Round(time.Millisecond)
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return err
	}
	if name, _, _ := strings.Cut(r.pattern, "/"); !strings.Contains(string(out), "=== RUN   "+name+"\n") {
		return fmt.Errorf("%s has no test %s", r.pkg, r.pattern)
	}
	r.note(err == nil, took)
	line := fmt.Sprintf("ran %s %s ok %v\n", r.pkg, r.pattern, took)
	if err != nil {
		line = fmt.Sprintf("%s\nran %s %s FAILED %v\n", out, r.pkg, r.pattern, took)
	}
	_, err = io.WriteString(log, line) // in one piece, beside other tests
	return err
}

// print prints a line for each test. The error says that some failed.
func print(w io.Writer, rows []*row) error {
	failed := 0
	for _, r := range rows {
		verdict := ""
		if r.bad > 0 {
			failed++
			verdict = "  FAILED"
		}
		each := time.Duration(0)
		if r.ran > 0 {
			each = r.took / time.Duration(r.ran)
		}
		fmt.Fprintf(w, "%4d of %4d runs %4d failed %10v each  %s%s\n", r.ran, r.times, r.bad,
			each.Round(time.Millisecond), r.name(), verdict)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tests failed", failed, len(rows))
	}
	return nil
}
