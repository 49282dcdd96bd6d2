// Package commandtest is for tests of programs that internal/command starts: their mistakes and their Ctrl-C.
package commandtest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// Mistake fails the test unless a program has ended as after a mistake on its command line: with exit code 2, nothing
// on standard output, and one line on standard error. The line begins with the program's name and want, and ends with a
// hint at -h.
func Mistake(t testing.TB, program, want string, code int, stdout, stderr string) {
	t.Helper()
	if code != command.Usage || stdout != "" || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, standard output %q, standard error %q; want 2, nothing, one line", code, stdout, stderr)
	}
	if !strings.HasPrefix(stderr, program+": "+want) || !strings.HasSuffix(stderr, " (-h lists the flags)\n") {
		t.Errorf("standard error is %q, want %q", stderr, want)
	}
}

// StopAt returns a standard output that calls stop, as Ctrl-C would, before it passes on a write that has words in it.
func StopAt(words string, stop context.CancelFunc, stdout io.Writer) io.Writer {
	return &stopper{stdout, words, stop}
}

type stopper struct {
	io.Writer
	words string
	stop  context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.words)) {
		s.stop()
	}
	return s.Writer.Write(p)
}
