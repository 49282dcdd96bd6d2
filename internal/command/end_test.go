package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestEnded has what may end a program, and the exit code that Main makes of it.
func TestEnded(t *testing.T) {
	boom, full := errors.New("boom"), &OutputError{syscall.ENOSPC}
	lost := "learn: standard output: " + syscall.ENOSPC.Error() + "\n"
	for _, c := range []struct {
		cause    error // of the context; nil: it is not done
		err      error
		code     int
		exitCode int
		says     string
	}{
		{nil, boom, Failed, Failed, "learn: boom\n"},
		{Signal{syscall.SIGINT}, Signal{syscall.SIGINT}, Interrupted, 130, "learn: interrupted\n"},
		{Signal{syscall.SIGTERM}, fmt.Errorf("round 1: %w", context.Canceled), Interrupted, 143, "learn: interrupted\n"},
		{context.Canceled, context.Canceled, Interrupted, Interrupted, "learn: interrupted\n"},
		{full, context.Canceled, Failed, Failed, lost},
		{full, nil, OK, Failed, lost}, // it did not see the end of its context
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var outputErr error
		if errors.Is(c.cause, full) {
			outputErr = full
		}
		if c.cause != nil {
			cancel(c.cause)
		}
		var stderr strings.Builder
		code := OK
		if c.err != nil {
			code = Ended(ctx, "learn", c.err, &stderr)
		}
		if exitCode := finish(ctx, "learn", code, outputErr, &stderr); code != c.code || exitCode != c.exitCode ||
			stderr.String() != c.says {
			t.Errorf("%v after %v: code %d, exit code %d, %q; want %d, %d, %q", c.err, c.cause, code, exitCode,
				stderr.String(), c.code, c.exitCode, c.says)
		}
		cancel(nil)
	}
	if !errors.Is(Signal{syscall.SIGTERM}, context.Canceled) {
		t.Error("a signal is no context.Canceled")
	}
}

// TestOutput writes to a file that takes nothing.
func TestOutput(t *testing.T) {
	file, err := os.Open(os.DevNull) // for reading
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	o := &output{file: file, lost: cancel}
	for range 2 {
		if _, err := io.WriteString(o, "text"); err == nil {
			t.Error("no error")
		}
	}
	for _, err := range []error{o.error(), context.Cause(ctx)} {
		var lost *OutputError
		if !errors.As(err, &lost) || !errors.Is(lost, syscall.EBADF) {
			t.Errorf("error %v", err)
		}
	}
}
