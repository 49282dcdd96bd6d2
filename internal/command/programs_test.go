//go:build unix

package command_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/jobtest"
)

// program is a command or example, and how it is run. In arguments DIR is a directory of the test's, SELF the program,
// and ROOT that of the module.
type program struct {
	path string // below the module
	job  string // variables of the job that the runs of short and long are in; "": none

	unknown string // command line with an argument that the program does not take
	short   string // a run that prints something and ends by itself
	long    string // a run that lasts longer than a test may; "": there is none
	prints  string // begins a line of standard output of the long run, at the latest after which signals are sent; "":
	// the run prints nothing, and waits for other replicas
	goesOn bool // the long run prints more lines after that
}

const (
	alone = "WORLD_SIZE=1 RANK=0 GCL_RENDEZVOUS=dir:DIR GCL_JOB=test"
	waits = "WORLD_SIZE=4 RANK=0 GCL_RENDEZVOUS=dir:DIR GCL_JOB=test" // for three that do not come
)

// programs are all of the module. A program has a second row for a run in a job.
var programs = []program{
	{path: "bench/peers/many", job: alone, unknown: "more",
		short: "-transport tcp -tensors 2 -sizes 4 -time 5ms", prints: "auto,1,2xallreduce,", goesOn: true,
		long: "-transport tcp -tensors 2 -time 50ms -sizes 4" + strings.Repeat(",8,4", 2000)},
	{path: "bench/peers/picture", unknown: "more", short: "-o - ROOT/bench/peers/report/testdata/tables.csv"},
	{path: "bench/peers/report", unknown: "-n 2 ROOT/bench/peers/report/testdata/raw.csv more",
		short: "-n 2 ROOT/bench/peers/report/testdata/raw.csv"},
	{path: "cmd/gclperf", unknown: "more", short: "-max 8 -iters 1", long: "-csv -collective all -max 1M", prints: "collective,"},
	{path: "cmd/gclperf", unknown: "more", short: "-transport unix -n 2 -max 8 -iters 1",
		long: "-transport unix -n 2 -csv -collective all -max 1M", prints: "collective,"},
	{path: "cmd/gcltune", unknown: "more", short: "-n 2 -sizes 8 -passes 1 -time 200us -collective broadcast",
		long: "-n 2 -passes 100 -limit 10h", prints: "# A/A"},
	{path: "cmd/gclrun", unknown: "-n 1 -transport more SELF", short: "-n 1 SELF -h",
		long: "-n 2 sh -c echo${IFS}up;exec${IFS}sleep${IFS}600", prints: "up"},
	{path: "cmd/gclsched", unknown: "more", short: "check -method direct -n 2",
		long: "bench -method direct -n 2 -time 1h", prints: "all-reduce, 2 ranks, "},
	{path: "internal/torture", unknown: "more", short: "-runs 1", long: "-runs 1000000 -v", prints: "seed ", goesOn: true},
	{path: "examples/charlm", unknown: "more", short: "-steps 1 -sample 10", long: "-steps 1000000000", prints: "204211 p"},
	{path: "examples/charlm", unknown: "-tokens more", short: "-tokens -n 2 -sample 1", long: "-tokens -minutes 1000",
		prints: "4940859 p"},
	{path: "examples/ddp", unknown: "more", short: "-n 2 -steps 1", long: "-n 2 -steps 1000000000", prints: "step 100:",
		goesOn: true},
	{path: "examples/digits", unknown: "more", short: "-epochs 1", long: "-epochs 1000000", prints: "epoch 1/",
		goesOn: true},
	{path: "examples/embedding", unknown: "more", short: "-epochs 1 -dim 2", long: "-epochs 1000000 -dim 2", prints: "epoch 1/",
		goesOn: true},
	{path: "examples/graphs", unknown: "more"},
	{path: "examples/larger", unknown: "more", short: "-mib 2 -width 512 -dir DIR", long: "-mib 192 -dir DIR",
		prints: "created "},
	{path: "examples/method", unknown: "more"},
	{path: "examples/quickstart", unknown: "more"},
	{path: "examples/quickstart", unknown: "more", job: waits, long: " "},
	{path: "examples/remote", unknown: "more"},
	{path: "examples/rts", unknown: "more", short: "-epochs 1", long: "-epochs 1000000", prints: "epoch 1/",
		goesOn: true},
	{path: "examples/trace", unknown: "more", short: "-n 2 -o DIR/trace.json"},
	{path: "examples/trace", unknown: "more", job: waits, long: "-o DIR/trace.json"},
	{path: "examples/wordcount", unknown: "-top more", short: "ROOT/README.md"},
	{path: "internal/trouble", unknown: "more", job: alone, short: "-kind none -replica 0"},
	{path: "internal/trouble", unknown: "more", job: waits, long: "-kind none"},
	{path: "internal/gen", unknown: "more", short: "-progs 1", long: "-mode disagree -v -progs 1000000 -t 1h -only zero",
		prints: "seed ", goesOn: true},
	{path: "internal/flaky", unknown: "more", short: "-n -progress ROOT/go.mod"},
	{path: "internal/mutants", unknown: "more", short: "-n -dir ROOT"},
}

// limit is how long a process may take. On an idle machine each takes a few seconds.
const limit = 2 * time.Minute

// TestPrograms runs every program of the module as a process: with -h, with what it does not know, with an output that
// cannot be written, and until a signal ends it.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs all programs")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := build(t, root)
	for _, p := range programs {
		name := path.Base(p.path)
		run := func(t *testing.T, line string) *process {
			return newProcess(t, root, filepath.Join(bin, name), p.job, line)
		}
		t.Run(strings.TrimSpace(p.path+" "+strings.SplitN(p.job, " ", 2)[0]), func(t *testing.T) {
			t.Parallel()
			if p.job != waits {
				t.Run("help", func(t *testing.T) { help(t, name, run(t, "-h")) })
				t.Run("flag", func(t *testing.T) { mistake(t, name, "-no-such-flag", run(t, "-no-such-flag")) })
				t.Run("argument", func(t *testing.T) { mistake(t, name, "more", run(t, p.unknown)) })
				for _, line := range []string{"-h", p.short} {
					t.Run("output of "+line, func(t *testing.T) { lost(t, name, line, run) })
				}
			}
			if p.long != "" {
				t.Run("signals", func(t *testing.T) { signals(t, p, name, run) })
			}
			if p.goesOn {
				t.Run("reader gone", func(t *testing.T) { readerGone(t, p, name, run) })
			}
		})
	}
}

// build builds all programs that the module has into a directory. One that the table does not have is an error.
func build(t *testing.T, root string) string {
	t.Helper()
	const mains = `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`
	list := exec.CommandContext(t.Context(), "go", "list", "-f", mains, "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Fields(string(out))
	for _, pkg := range found {
		if !slices.ContainsFunc(programs, func(p program) bool { return "gogcl.dev/"+p.path == pkg }) {
			t.Errorf("%s is not in the table", pkg)
		}
	}
	bin := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-o", bin + "/"}, found...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// process is one of a program.
type process struct {
	*exec.Cmd
	dir    string
	stderr strings.Builder
}

// newProcess prepares a process, in a job if there is one.
func newProcess(t *testing.T, root, program, job, line string) *process {
	t.Helper()
	p := &process{dir: t.TempDir()}
	fill := strings.NewReplacer("DIR", p.dir, "ROOT", root, "SELF", program, "${IFS}", " ")
	var args []string
	for arg := range strings.FieldsSeq(line) {
		args = append(args, fill.Replace(arg))
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	p.Cmd = exec.CommandContext(ctx, program, args...)
	p.WaitDelay = 10 * time.Second // for what holds the pipes after the process has been killed
	p.Cmd.Dir = p.dir
	p.Cmd.Stderr = &p.stderr
	p.Env = append(jobtest.Environment(), "TMPDIR="+p.dir)
	for v := range strings.FieldsSeq(job) {
		p.Env = append(p.Env, fill.Replace(v))
	}
	return p
}

// ends waits for the process and looks at its exit code, and whether all lines on standard error are the program's own.
func (p *process) ends(t *testing.T, name string, code int) {
	t.Helper()
	_ = p.Wait() // the exit code says it
	if got := p.ProcessState.ExitCode(); got != code {
		t.Errorf("%v: %v, want exit code %d; standard error: %s", p.Args, p.ProcessState, code, &p.stderr)
	}
	if s := p.stderr.String(); s != "" && !strings.HasPrefix(s, name+": ") {
		t.Errorf("%v: standard error does not begin with the program's name: %s", p.Args, s)
	}
}

// help looks at -h: usage on standard output, and a sentence on what the program does.
func help(t *testing.T, name string, p *process) {
	out, err := p.Output()
	text := string(out)
	if err != nil || p.stderr.Len() > 0 {
		t.Errorf("%v, standard error: %s", err, &p.stderr)
	}
	if first, rest, _ := strings.Cut(text, "\n"); !strings.Contains(first, name) || !strings.Contains(rest, "\n") ||
		!strings.Contains(text, ".\n") {
		t.Errorf("printed\n%s", text)
	}
	for line := range strings.Lines(strings.ReplaceAll(text, "\t", "    ")) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > command.Columns {
			t.Errorf("-h has a line of %d columns: %s", n, line)
		}
	}
}

// mistake has a command line that is wrong: exit code 2, and one line that names the mistake.
func mistake(t *testing.T, name, names string, p *process) {
	var stdout strings.Builder
	p.Stdout = &stdout
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.ends(t, name, 2)
	if s := p.stderr.String(); stdout.Len() > 0 || !strings.Contains(s, names) || strings.Count(s, "\n") != 1 {
		t.Errorf("standard output: %s\nstandard error: %s", &stdout, s)
	}
}

// lost has outputs that cannot be written: a full one, one for reading, and a pipe that nobody reads. It also has one
// that was closed before the program began.
func lost(t *testing.T, name, line string, run func(*testing.T, string) *process) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("only Linux has it: ", err)
	}
	defer full.Close()
	reads, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer reads.Close()
	reader, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	reader.Close()
	if line == "-h" {
		p := run(t, line)
		p.Path, p.Args = "/bin/sh", append([]string{"sh", "-c", `exec "$0" "$@" >&-`}, p.Args...)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		p.ends(t, name, 0) // the runtime has opened /dev/null: see the package comment
	}
	for output, want := range map[*os.File]error{full: syscall.ENOSPC, reads: syscall.EBADF, pipe: syscall.EPIPE} {
		p := run(t, line)
		p.Stdout = output
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		p.ends(t, name, 1)
		if s := p.stderr.String(); !strings.Contains(s, want.Error()) {
			t.Errorf("%v: standard error: %q, want %v", p.Args, s, want)
		}
	}
}

// start starts the long run and waits until signals may be sent.
func start(t *testing.T, p program, run func(*testing.T, string) *process) (*process, io.ReadCloser) {
	t.Helper()
	q := run(t, p.long)
	stdout, err := q.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(); err != nil {
		t.Fatal(err)
	}
	if p.prints == "" {
		for { // until it has written where the others meet it
			if files, err := os.ReadDir(q.dir); err != nil || len(files) > 0 {
				return q, stdout
			}
			if q.Process.Signal(syscall.Signal(0)) != nil {
				t.Fatalf("%v has ended: %s", q.Args, &q.stderr)
			}
			time.Sleep(time.Millisecond)
		}
	}
	for lines := bufio.NewReader(stdout); ; {
		line, err := lines.ReadString('\n')
		if strings.HasPrefix(line, p.prints) {
			return q, stdout
		}
		if err != nil {
			_ = q.Wait()
			t.Fatalf("%v: %v: no line begins with %q: %v, %s", q.Args, err, p.prints, q.ProcessState, &q.stderr)
		}
	}
}

// signals ends the long run by Ctrl-C, and by SIGTERM twice, as timeout(1) sends it.
func signals(t *testing.T, p program, name string, run func(*testing.T, string) *process) {
	for s, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		q, stdout := start(t, p, run)
		if err := q.Process.Signal(s); err != nil {
			t.Error(err)
		}
		if s == syscall.SIGTERM {
			_ = q.Process.Signal(s) // fails if it has ended
		}
		if _, err := io.Copy(io.Discard, stdout); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
		q.ends(t, name, code)
		if !strings.Contains(q.stderr.String(), "interrupted") && name != "gclrun" {
			t.Errorf("%v: standard error: %q", s, &q.stderr)
		}
	}
}

// readerGone closes the pipe in the middle of the long run: the program does not go on for nobody.
func readerGone(t *testing.T, p program, name string, run func(*testing.T, string) *process) {
	q, stdout := start(t, p, run)
	stdout.Close()
	q.ends(t, name, 1)
	if s := q.stderr.String(); !strings.Contains(s, syscall.EPIPE.Error()) {
		t.Errorf("standard error: %q", s)
	}
}
