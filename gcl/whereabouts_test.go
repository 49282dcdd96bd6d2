package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
)

// timeless is a text in which durations are T.
func timeless(text string) string {
	return regexp.MustCompile(`-?\d+(\.\d+)?(ns|µs|ms|s)\b`).ReplaceAllString(text, "T")
}

// waits are calls of all kinds in which four replicas wait for each other, and what they are called.
func waits(t *testing.T) (out []struct {
	name, what string
	call       func(ctx context.Context, c *gcl.Comm) error
	opts       []gcl.CommOption
}) {
	two, err := topology.New(topology.Config{Replicas: []int{2, 2}})
	if err != nil {
		t.Fatal(err)
	}
	add := func(name, what string, call func(ctx context.Context, c *gcl.Comm) error, opts ...gcl.CommOption) {
		out = append(out, struct {
			name, what string
			call       func(ctx context.Context, c *gcl.Comm) error
			opts       []gcl.CommOption
		}{name, what, call, opts})
	}
	reduce := func(o gcl.Options, size int) func(ctx context.Context, c *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]float32, size), gcl.Add)
		}
	}
	many := func(o gcl.Options, size int) func(ctx context.Context, c *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyInPlace(ctx, withOptions(c, o),
				[][]float32{make([]float32, size), make([]float32, 3)}, gcl.Add)
		}
	}
	ring := gcl.Options{Method: methods.ClockwiseRing}
	add("small", "all-reduce", reduce(gcl.Options{}, 2))
	add("peer memory", "all-reduce", reduce(gcl.Options{}, 70000))
	add("messages", "all-reduce", reduce(ring, 7000))
	add("direct by messages", "all-reduce",
		reduce(gcl.Options{Method: methods.Direct, Implementation: gcl.Syncless}, 7000))
	add("rounds on peer memory", "all-reduce",
		reduce(gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}, 7000))
	add("many, small", "all-reduce", many(gcl.Options{}, 5))
	add("many", "all-reduce", many(gcl.Options{}, 70000))
	add("many by messages", "all-reduce", many(ring, 7000))
	add("barrier", "barrier", func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) })
	add("barrier by messages", "barrier", func(ctx context.Context, c *gcl.Comm) error {
		return with(c, methods.ClockwiseRing).Barrier(ctx)
	})
	add("broadcast", "broadcast", func(ctx context.Context, c *gcl.Comm) error {
		return gcl.BroadcastInPlace(ctx, c, make([]float32, 2), 2) // from who does not come
	})
	add("hybrid", "all-reduce", reduce(gcl.Options{Implementation: gcl.Hybrid}, 7000), gcl.WithTopology(two))
	add("hybrid, many", "all-reduce", many(gcl.Options{Implementation: gcl.Hybrid}, 7000), gcl.WithTopology(two))
	return out
}

// A call that times out says who has not come to it, and what that replica was doing.
func TestTimeoutSaysWhoIsMissing(t *testing.T) {
	const n, late = 4, 2
	others := []struct {
		name string
		does func(ctx context.Context, c *gcl.Comm) error // what the late replica does instead, and
		made func(ctx context.Context, c *gcl.Comm) error // what all have done before
		text string
	}{
		{"nothing", nil, nil, "waiting for replica 2, which has made no call; replicas 0, 1 have come to it"},
		{"nothing since a barrier", nil, func(ctx context.Context, c *gcl.Comm) error { return c.Named("start").Barrier(ctx) },
			`waiting for replica 2, which has made no call for T, since barrier #1 "start" of group {0, 1, 2, 3}; replicas 0, 1 have come to it`},
	}
	for _, w := range waits(t) {
		for _, o := range others {
			synctest.Test(t, func(t *testing.T) {
				errs := untold(t, n, func(ctx context.Context, c *gcl.Comm) error {
					if o.made != nil {
						if err := o.made(ctx, c); err != nil {
							return err
						}
					}
					if c.Rank() == late {
						time.Sleep(2 * time.Second)
						return nil
					}
					if c.Rank() == 3 { // the others' contexts go on
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, time.Second)
						defer cancel()
					}
					return w.call(ctx, c)
				}, w.opts...)
				text := timeless(fmt.Sprint(errs[3]))
				if !errors.Is(errs[3], context.DeadlineExceeded) || !strings.HasPrefix(text, "gcl: "+w.what+" #") ||
					!strings.HasSuffix(text, "context deadline exceeded, "+o.text) {
					t.Errorf("%s, replica 2 does %s: %s", w.name, o.name, text)
				}
			})
		}
	}
}

// All whose context ends at the same time say so, whoever is the first.
func TestTimeoutOfAll(t *testing.T) {
	for _, w := range waits(t) {
		synctest.Test(t, func(t *testing.T) {
			errs := untold(t, 4, func(ctx context.Context, c *gcl.Comm) error {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if c.Rank() == 2 {
					time.Sleep(2 * time.Second)
					return nil
				}
				return w.call(ctx, c)
			}, w.opts...)
			for r, err := range errs {
				if r != 2 && !strings.Contains(fmt.Sprint(err), ", waiting for replica 2, which has made no call; ") {
					t.Errorf("%s, replica %d: %v", w.name, r, err)
				}
			}
		})
	}
}

// A call that times out says in which call of another group, or on another connection, a member is instead.
func TestTimeoutSaysWhichCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := untold(t, 4, func(ctx context.Context, c *gcl.Comm) error {
			switch c.Rank() {
			case 2: // with replica 3
				pairs := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2})
				return gcl.AllReduceInPlace(ctx, pairs.Named("pairs"), make([]float32, 2), gcl.Add)
			case 3:
				time.Sleep(2 * time.Second)
				return nil
			case 0:
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
			}
			return c.Barrier(ctx)
		})
		want := `gcl: barrier #1: replica 0 round 0: context deadline exceeded, waiting for replica 2, which is in all-reduce #1 "pairs" of group {2, 3}, and for replica 3, which has made no call; replica 1 has come to it`
		if text := timeless(fmt.Sprint(errs[0])); text != want {
			t.Errorf("%s, want\n%s", text, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		errs := untold(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			switch c.Rank() {
			case 0:
				return d.Named("second").Barrier(ctx)
			case 1:
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return c.Barrier(ctx)
			}
			time.Sleep(2 * time.Second)
			return nil
		})
		want := `gcl: barrier #1: replica 1 round 0: context deadline exceeded, waiting for replica 0, which is in barrier #1 "second" of group {0, 1, 2} on connection 1 and has made no call on connection 0, and for replica 2, which has made no call on connection 0`
		if text := timeless(fmt.Sprint(errs[1])); text != want {
			t.Errorf("%s, want\n%s", text, want)
		}
	})
}

// A call that does not get its turn says what has it.
func TestTimeoutForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := untold(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				time.Sleep(2 * time.Second)
				return nil
			}
			go c.Named("slow").Barrier(ctx)
			time.Sleep(time.Millisecond)
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return gcl.AllReduceInPlace(ctx, c, make([]float32, 2), gcl.Add)
		})
		want := `gcl: all-reduce #2: replica 0: waiting for what was asked of the connection before (barrier #1 "slow" of group {0, 1}): context deadline exceeded`
		if text := fmt.Sprint(errs[0]); text != want {
			t.Errorf("%s, want\n%s", text, want)
		}
	})
}

// A mismatch has both calls with the names that their Comms have.
func TestMismatchNamesBoth(t *testing.T) {
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 1 {
			return c.Named("end").Barrier(ctx)
		}
		return gcl.AllReduceInPlace(ctx, c.Named("grads"), make([]float32, 8), gcl.Add)
	})
	for r, err := range errs {
		for _, want := range []string{"collectives differ: replica 0 calls all-reduce, replica 1 calls barrier; ",
			`; all-reduce #1 "grads" (ADD float32 x 8, `, ` and barrier #1 "end" (round 0, `} {
			if text := fmt.Sprint(err); !strings.Contains(text, want) {
				t.Errorf("replica %d: %s, want %s", r, text, want)
			}
		}
	}
}

// Two connections used in opposite orders: Dump says so while both wait, and the errors when the context ends.
func TestDumpOfWaitingComms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(watched(t))
		var dumped string
		errs := untold(t, 2, func(_ context.Context, c *gcl.Comm) error {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			first, second := c, d
			if c.Rank() == 1 {
				first, second = d, c
			} else {
				go func() {
					synctest.Wait()
					dumped = c.Dump()
					cancel()
				}()
			}
			if err := first.Barrier(ctx); err != nil {
				return err
			}
			return second.Barrier(ctx)
		})
		wantLines(t, timeless(dumped),
			"replica 0 is in barrier #1 of group {0, 1} on connection 0 for T, waiting for replica 1, which is in "+
				"barrier #1 of group {0, 1} on connection 1 and has made no call on connection 0",
			"replica 1 is in barrier #1 of group {0, 1} on connection 1 for T, waiting for replica 0, which is in "+
				"barrier #1 of group {0, 1} on connection 0 and has made no call on connection 1",
			"gcl: flight recorder; times are relative to now",
			"replica 0, connection 0: 1 collective",
			tableHead,
			"  T running barrier #1 (group {0, 1})",
			"replica 0, connection 1: 0 collectives",
			"replica 1, connection 0: 0 collectives",
			"replica 1, connection 1: 1 collective",
			tableHead,
			"  T running barrier #1 (group {0, 1})",
		)
		for r, err := range errs {
			want := fmt.Sprintf("waiting for replica %d, which is in barrier #1 of group {0, 1} on connection %d and "+
				"has made no call on connection %d", 1-r, 1-r, r)
			if !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("replica %d: %v, want %s", r, err, want)
			}
		}
	})
	if text := (*gcl.Comm)(nil).Dump() + new(gcl.Comm).Dump(); text != "" {
		t.Errorf("of no Comm: %q", text)
	}
}

// wantLines compares a text with lines, all spaces being one.
func wantLines(t *testing.T, text string, want ...string) {
	t.Helper()
	spaces := regexp.MustCompile(` {2,}`)
	have := strings.Split(strings.TrimSuffix(spaces.ReplaceAllString(text, " "), "\n"), "\n")
	for i := range max(len(have), len(want)) {
		if i >= len(have) || i >= len(want) || have[i] != spaces.ReplaceAllString(want[i], " ") {
			t.Fatalf("line %d of\n%s\nwant\n%s", i, strings.Join(have, "\n"), strings.Join(want, "\n"))
		}
	}
}

// Dump of a Comm may be called while collectives run: the race detector looks at this.
func TestDumpOfCommWhileRunning(t *testing.T) {
	stop := make(chan struct{})
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 0 {
			go func() {
				defer close(stop)
				for range 100 {
					if text := c.Dump(); !strings.Contains(text, "flight recorder") {
						t.Errorf("%q", text)
					}
				}
			}()
		}
		for over := []uint8{0}; over[0] == 0; {
			if c.Rank() == 0 {
				select {
				case <-stop:
					over[0] = 1
				default:
				}
			}
			if err := errors.Join(gcl.AllReduceInPlace(ctx, c, over, gcl.Max),
				gcl.AllReduceInPlace(ctx, with(c, methods.ClockwiseRing), make([]float32, 100), gcl.Add)); err != nil {
				return err
			}
		}
		return nil
	})
}
