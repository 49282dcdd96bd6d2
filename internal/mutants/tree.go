package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// tree is a copy of a module, for one worker.
type tree string

// copyTree copies the files of a module, but for what version control keeps there.
func copyTree(from string) (tree, error) {
	to, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return "", err
	}
	return tree(to), filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" { // a file in a worktree
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(at, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(at, data, 0o644)
	})
}

// The verdicts.
const (
	killed   = "killed"
	timeout  = "timeout"
	survived = "SURVIVED"
	invalid  = "INVALID"
)

// result is what came of a mutant.
type result struct {
	mutant
	verdict string
	by      string // the test that found it, or what is wrong
	took    time.Duration
}

// try puts a mutant into the tree, runs its tests, and takes it out. A mutant without a file is the tree as it is.
func (t tree) try(ctx context.Context, m mutant) result {
	r, began := result{mutant: m}, time.Now()
	if m.file != "" {
		restore, err := t.put(&m)
		if err != nil {
			r.verdict, r.by = invalid, err.Error()
			return r
		}
		defer restore()
	}
	args := append([]string{"test", "-vet=off", "-short", "-failfast", "-count=1", "-timeout=120s"}, m.tests...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = string(t)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // which go test passes on
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	r.took = time.Since(began)
	r.verdict, r.by = judge(string(out), err)
	return r
}

// read returns the text of a mutant's file as it is, and with the fault in it.
func (t tree) read(m *mutant) (text, changed string, err error) {
	data, err := os.ReadFile(t.path(m))
	if err != nil {
		return "", "", err
	}
	changed, err = m.apply(string(data))
	return string(data), changed, err
}

// put writes a mutant, and returns what writes the file as it was.
func (t tree) put(m *mutant) (restore func(), err error) {
	text, changed, err := t.read(m)
	if err != nil {
		return nil, err
	}
	return func() { os.WriteFile(t.path(m), []byte(text), 0o644) }, os.WriteFile(t.path(m), []byte(changed), 0o644)
}

// path is where a mutant's file is.
func (t tree) path(m *mutant) string { return filepath.Join(string(t), filepath.FromSlash(m.file)) }

var (
	ranLine     = regexp.MustCompile(`(?m)^ok\s.*s( \(cached\))?$`) // of a package in which a test ran
	failLine    = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
	crashLine   = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*`)
	runningLine = regexp.MustCompile(`(?m)^\s*running tests:\n\s+(\S+)`)
)

// judge reads the output of go test, and how it ended.
func judge(out string, err error) (verdict, by string) {
	var exit *exec.ExitError
	switch {
	case err == nil && !ranLine.MatchString(out):
		return invalid, "no test has such a name"
	case err == nil:
		return survived, ""
	case !errors.As(err, &exit):
		return invalid, err.Error()
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return invalid, "does not compile: " + firstLine(out, ".go:")
	case strings.Contains(out, "panic: test timed out"):
		verdict = timeout
		if running := runningLine.FindStringSubmatch(out); running != nil {
			by = running[1]
		}
		return verdict, by
	}
	for _, fail := range failLine.FindAllStringSubmatch(out, -1) {
		if by == "" || strings.HasPrefix(fail[1], by+"/") {
			by = fail[1]
		}
	}
	if by == "" {
		by = crashLine.FindString(out)
	}
	if by == "" {
		by = firstLine(out, "")
	}
	return killed, by
}

// firstLine is the first line that contains a text.
func firstLine(out, text string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
