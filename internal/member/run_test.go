package member

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// TestRun has each way in which a program ends: only what Ctrl-C has ended is said to be interrupted.
func TestRun(t *testing.T) {
	inNoJob(t)
	broken := errors.New("broken")
	lost := &command.OutputError{Err: broken}
	canceled := fmt.Errorf("replica 1: %w", context.Canceled)
	saved := fmt.Errorf("%w after step 5", ErrInterrupted)
	for _, tt := range []struct {
		err, cause error // of the program, and of the end of its context; nil: it has not ended
		code       int
		want       string
	}{
		{nil, nil, command.OK, ""},
		{nil, context.Canceled, command.OK, ""},
		{Mistake{flag.ErrHelp}, nil, command.OK, ""},
		{fmt.Errorf("flags: %w", Mistake{broken}), nil, command.Usage, "learn: flags: broken (-h lists the flags)\n"},
		{broken, nil, command.Failed, "learn: broken\n"},
		{broken, context.Canceled, command.Failed, "learn: broken\n"},
		{lost, nil, command.Failed, "learn: standard output: broken\n"},
		{canceled, context.Canceled, command.Interrupted, "learn: interrupted\n"},
		{canceled, nil, command.Failed, "learn: replica 1: context canceled\n"},
		{canceled, lost, command.Failed, "learn: standard output: broken\n"},
		{saved, context.Canceled, command.Interrupted, "learn: interrupted after step 5\n"},
		{saved, nil, command.Interrupted, "learn: interrupted after step 5\n"}, // another replica was told to stop
		{saved, lost, command.Failed, "learn: standard output: broken\n"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var stdout, stderr strings.Builder
		code := Run(ctx, "learn", &stdout, &stderr, func(me *Member, stdout io.Writer) error {
			if tt.cause != nil {
				cancel(tt.cause)
			}
			fmt.Fprint(stdout, me.InJob())
			return tt.err
		})
		if code != tt.code || stderr.String() != tt.want || stdout.String() != "false" {
			t.Errorf("%v, %v: exit code %d, %q, want %d, %q, and %q", tt.err, tt.cause, code, stderr.String(), tt.code,
				tt.want, stdout.String())
		}
		cancel(nil)
	}
}

// TestRunWithoutJob: what a launcher has said and makes no sense is a failure.
func TestRunWithoutJob(t *testing.T) {
	inNoJob(t)
	t.Setenv("RANK", "7")
	t.Setenv("WORLD_SIZE", "2")
	t.Setenv("MASTER_ADDR", "127.0.0.1")
	t.Setenv("MASTER_PORT", "1")
	var stderr strings.Builder
	code := Run(t.Context(), "learn", io.Discard, &stderr, func(*Member, io.Writer) error {
		t.Error("the program has run")
		return nil
	})
	if code != command.Failed || !strings.HasPrefix(stderr.String(), "learn: ") {
		t.Errorf("exit code %d, %q", code, stderr.String())
	}
}
