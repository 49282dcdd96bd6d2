package gcl_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/transport/tcp"
)

// logLines is a slog.Handler that keeps the attributes of warnings.
type logLines struct {
	lines chan map[string]string // a bounded number: what is more is lost
}

func (l logLines) Enabled(context.Context, slog.Level) bool { return true }
func (l logLines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l logLines) WithGroup(string) slog.Handler            { return l }

func (l logLines) Handle(_ context.Context, r slog.Record) error {
	line := map[string]string{"": r.Message}
	r.Attrs(func(a slog.Attr) bool { line[a.Key] = a.Value.String(); return true })
	select {
	case l.lines <- line:
	default:
	}
	return nil
}

// listenToLog has lines of the log of this process sent to a channel, until the test ends.
func listenToLog(t *testing.T) chan map[string]string {
	l := logLines{make(chan map[string]string, 100)}
	before := slog.Default()
	slog.SetDefault(slog.New(l))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l.lines
}

const (
	stallLine = "gcl: a call has waited for long"
	awayLine  = "gcl: the context of Run is done, and bodies have not returned"
)

// next is the next line with a text.
func next(t *testing.T, lines chan map[string]string, text string) map[string]string {
	t.Helper()
	for limit := time.After(time.Minute); ; {
		select {
		case line := <-lines:
			if line[""] == text {
				return line
			}
		case <-limit:
			t.Fatalf("no line %q in a minute", text)
		}
	}
}

// TestStall: a call that waits for long is logged with those who are in it, and with who has not come and what that one
// does; again when it has waited twice as long, and so on. The log of one call is of one line, whoever waits.
func TestStall(t *testing.T) {
	const after = 20 * time.Millisecond
	lines, free := listenToLog(t), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- gcl.Run(context.Background(), 4, func(ctx context.Context, c *gcl.Comm) error {
			if err := c.Named("first").Barrier(ctx); err != nil {
				return err
			}
			if c.Rank() == 2 {
				<-free
			}
			return c.Named("second").Barrier(ctx)
		}, gcl.WithStallAfter(after))
	}()
	for least := time.Duration(after); least <= 8*after; least *= 2 {
		line := next(t, lines, stallLine)
		if replicas := line["replicas"]; replicas != "0, 1, 3" { // all are there before 20 ms are over, or come then
			t.Logf("replicas %s are in it", replicas)
		}
		waited, err := time.ParseDuration(line["waited"])
		if err != nil || waited < least {
			t.Errorf("waited %v, want %v at least: %v", waited, least, err)
		}
		if line["call"] != `barrier #2 "second" of group {0, 1, 2, 3}` {
			t.Errorf("call %q", line["call"])
		}
		if why := timeless(line["why"]); !strings.HasPrefix(why,
			`waiting for replica 2, which has made no call for T, since barrier #1 "first" of group {0, 1, 2, 3}`) &&
			!strings.Contains(why, "and for") {
			t.Errorf("why: %s", why)
		}
	}
	close(free)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestStallOff: who asks for no log has none.
func TestStallOff(t *testing.T) {
	lines := listenToLog(t)
	err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 0 {
			time.Sleep(50 * time.Millisecond)
		}
		return c.Barrier(ctx)
	}, gcl.WithStallAfter(0))
	if err != nil || len(lines) > 0 {
		t.Errorf("%v, and %d lines", err, len(lines))
	}
}

// TestStallOfProcesses: the others are asked what they do, wherever they are: one in the code of the program, one in
// another call.
func TestStallOfProcesses(t *testing.T) {
	lines, free := listenToLog(t), make(chan struct{})
	endpoints, err := tcp.New(3, tcp.Unix)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the test is over")
	var replicas sync.WaitGroup
	for rank, e := range endpoints {
		after := time.Duration(0)
		if rank == 0 {
			after = 20 * time.Millisecond
		}
		c, err := gcl.New(e, gcl.WithStallAfter(after))
		if err != nil {
			t.Fatal(err)
		}
		replicas.Go(func() {
			defer c.Close()
			if err := c.Named("first").Barrier(ctx); err != nil {
				t.Error(err)
				return
			}
			switch rank {
			case 1:
				<-free
			case 2:
				d, err := c.Dup(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				d.Named("elsewhere").Barrier(ctx)
			default:
				c.Named("second").Barrier(ctx)
			}
		})
	}
	for {
		line := next(t, lines, stallLine)
		why := timeless(line["why"])
		t.Log(line["replicas"], line["call"], why)
		if line["replicas"] == "0" && line["call"] == `barrier #2 "second" of group {0, 1, 2} on connection 0` && why ==
			`waiting for replica 1, which has made no call on connection 0 for T, since barrier #1 "first" of group {0, 1, 2}, `+
				`and for replica 2, which is in barrier #1 "elsewhere" of group {0, 1, 2} on connection 1 `+
				`and has made no call on connection 0 for T, since barrier #1 "first" of group {0, 1, 2}` {
			break
		}
	}
	close(free)
	cancel(over)
	replicas.Wait()
}

// TestAway: a body that does not return when the context is done is logLines, with what its replica does.
func TestAway(t *testing.T) {
	lines, free := listenToLog(t), make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("it takes too long")
	done := make(chan error)
	go func() {
		done <- gcl.Run(ctx, 3, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				cancel(over)
				<-free
			}
			return c.Barrier(ctx)
		})
	}()
	line := next(t, lines, awayLine)
	if line["replicas"] != "1" || line["doing"] != "replica 1 has made no call" || line["cause"] != over.Error() {
		t.Errorf("%v", line)
	}
	close(free)
	if err := <-done; !errors.Is(err, over) {
		t.Error(err)
	}
}
