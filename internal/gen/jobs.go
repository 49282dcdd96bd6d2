package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// failures finds the name of each failure in the output of a job.
var failures = regexp.MustCompile(`(?m)FAIL (\w+):`)

// launch runs jobs of processes under gclrun, one after the other, and counts those that fail, by the name of the
// failure. A job has the seeds after those of the job before it.
func launch(ctx context.Context, w io.Writer, s *settings) (bad int, err error) {
	if s.mode == "run" {
		s.mode = "job"
	}
	s.transport = cmp.Or(s.transport, "tcp")
	perJob := uint64(s.programs)
	n := s.replicas
	switch s.mode {
	case "job":
		n = cmp.Or(n, 4)
	case "jobdisagree":
		n, perJob = cmp.Or(n, 5), 1
	default:
		return 0, fmt.Errorf("jobs of mode %q: want job or jobdisagree", s.mode)
	}
	gclrun, clean, err := buildLauncher(ctx)
	if err != nil {
		return 0, err
	}
	defer clean()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	began, names := time.Now(), &tally{}
	done := 0
	for ; done < s.jobs && ctx.Err() == nil; done++ {
		seed := s.seed + uint64(done)*perJob
		args := []string{"-n", strconv.Itoa(n), "-transport", s.transport, self, "-mode", s.mode,
			"-seed", strconv.FormatUint(seed, 10), "-progs", strconv.Itoa(s.programs), "-steps", strconv.Itoa(s.steps),
			"-domains", strconv.Itoa(s.domains), "-dealt=" + strconv.FormatBool(s.dealt), "-hang", s.hang.String(), "-only", s.only}
		out, err := oneJob(ctx, gclrun, args, time.Duration(s.programs)*s.hang)
		if s.verbose {
			fmt.Fprintf(w, "%s", out)
		}
		if quiet := bytes.Count(out, []byte(unharmed+"\n")); err == nil && quiet > 0 && quiet < n {
			err = fmt.Errorf("FAIL silence: %d of %d replicas have no error", quiet, n)
			out = append(out, err.Error()...)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		bad++
		found := map[string]bool{} // a job counts once for each name
		for _, m := range failures.FindAllSubmatch(out, -1) {
			found[string(m[1])] = true
		}
		if len(found) == 0 {
			found["unsaid"] = true
		}
		for name := range found {
			names.add(name)
		}
		if !s.verbose {
			fmt.Fprintf(w, "job of seed %d: %v\n%s", seed, err, out)
		}
	}
	fmt.Fprintf(w, "%d jobs of %d processes over %s, mode %s, domains %d, seeds %d-%d: %d failed %v, %v\n", done, n,
		s.transport, s.mode, s.domains, s.seed, s.seed+uint64(done)*perJob-1, bad, names.lines(),
		time.Since(began).Round(time.Millisecond))
	return bad, context.Cause(ctx)
}

// buildLauncher builds gclrun in a folder that clean removes.
func buildLauncher(ctx context.Context) (path string, clean func(), err error) {
	dir, err := os.MkdirTemp("", "gen-")
	if err != nil {
		return "", nil, err
	}
	clean = func() { os.RemoveAll(dir) }
	path = filepath.Join(dir, "gclrun")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "gogcl.dev/cmd/gclrun")
	if out, err := build.CombinedOutput(); err != nil {
		clean()
		return "", nil, fmt.Errorf("%v (run it in the module): %w\n%s", build, err, out)
	}
	return path, clean, nil
}

// oneJob runs a job and returns what its processes print. A job that takes too long is ended.
func oneJob(ctx context.Context, gclrun string, args []string, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("the job hangs"))
	defer cancel()
	var out bytes.Buffer
	run := exec.CommandContext(ctx, gclrun, args...)
	run.Stdout, run.Stderr = &out, &out
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) } // gclrun ends the replicas
	run.WaitDelay = 10 * time.Second
	err := run.Run()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return out.Bytes(), err
}
