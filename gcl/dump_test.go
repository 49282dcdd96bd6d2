package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/transport/inproc"
)

// dumped is what Dump says of an error, without what differs from run to run: times become T.
func dumped(err error) string {
	text := regexp.MustCompile(`-?\d+(\.\d+)?(ns|µs|ms|s)\b`).ReplaceAllString(gcl.Dump(err), "T")
	return regexp.MustCompile(` {2,}`).ReplaceAllString(text, " ")
}

// mustDump checks what Dump says, line by line.
func mustDump(t *testing.T, err error, want ...string) {
	t.Helper()
	text := dumped(err)
	have := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range want { // so that they can stand in columns here
		want[i] = strings.ReplaceAll(want[i], "  ", " ")
	}
	for i := range max(len(have), len(want)) {
		switch {
		case i >= len(have) || i >= len(want):
			t.Errorf("%d lines, want %d, of\n%v\n%s", len(have), len(want), err, text)
			return
		case have[i] != want[i]:
			t.Errorf("line %d is\n%q, want\n%q, in\n%v\n%s", i, have[i], want[i], err, text)
		}
	}
}

const tableHead = "  began took state call"

func TestDumpOfOthersErrors(t *testing.T) {
	_, parsing := gcl.ParseOperator("PLUS")
	for _, err := range []error{nil, errBoom, errors.Join(errBoom, context.Canceled), gcl.ErrAborted, parsing,
		&gcl.PanicError{}, gcl.Run(t.Context(), 0, nil)} {
		if text := gcl.Dump(err); text != "" {
			t.Errorf("%v: %q", err, text)
		}
	}
}

// Replica 1 is in another call: what each was in can be read from the error of any.
func TestDumpMismatch(t *testing.T) {
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		c = with(c.Named("grads"), methods.ClockwiseRing)
		if err := gcl.AllReduceInPlace(ctx, c, make([]float32, 8), gcl.Add); err != nil {
			return err
		}
		if c.Rank() == 1 {
			return gcl.BroadcastInPlace(ctx, c.Named("loss"), make([]float32, 1), 1)
		}
		return gcl.AllReduceInPlace(ctx, c, make([]float32, 9), gcl.Mean)
	})
	mark := func(marked bool) string {
		if marked {
			return ">"
		}
		return " "
	}
	for r, err := range errs {
		if !errors.Is(err, gcl.ErrMismatch) {
			t.Fatal(err)
		}
		first := []string{`all-reduce #2 "grads"`, `broadcast #2 "loss"`}[r]
		for _, err := range []error{err, fmt.Errorf("wrapped: %w", err), errors.Join(errBoom, nil, err)} {
			// An abort holds the error of the replica where it began, so that may be marked too.
			both := strings.Count(dumped(err), ">") == 2
			mustDump(t, err,
				"gcl: flight recorder; times are relative to the failure of "+first+fmt.Sprintf(" on replica %d", r),
				"replica 0, connection 0: 2 collectives",
				tableHead,
				`  T T done all-reduce #1 "grads" (ADD float32 x 8, group {0, 1}), clockwise_ring, messages`,
				mark(both || r == 0)+` T T failed in round 0 all-reduce #2 "grads" (MEAN float32 x 9, group {0, 1}), clockwise_ring, messages`,
				"replica 1, connection 0: 2 collectives",
				tableHead,
				`  T T done all-reduce #1 "grads" (ADD float32 x 8, group {0, 1}), clockwise_ring, messages`,
				mark(both || r == 1)+` T T failed in round 0 broadcast #2 "loss" (float32 x 1, root 1, group {0, 1}), clockwise_ring, messages`,
			)
		}
	}
}

// Replica 1 computes when replica 0's context is done: it is in no call.
func TestDumpCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text error
		errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			if err := gcl.AllReduceInPlace(ctx, c, make([]float32, 1), gcl.Add); err != nil || c.Rank() == 1 {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			text = gcl.AllReduceInPlace(ctx, c, make([]float32, 70000), gcl.Add)
			return text
		})
		mustDump(t, errs[0],
			"gcl: flight recorder; times are relative to the failure of all-reduce #2 on replica 0",
			"replica 0, connection 0: 2 collectives",
			tableHead,
			"  T < T done all-reduce #1 (ADD float32 x 1, group {0, 1}), direct, small",
			"> T T failed all-reduce #2 (ADD float32 x 70000, group {0, 1}), direct, peer memory",
			"replica 1, connection 0: 1 collective",
			tableHead,
			"  T done all-reduce #1 (ADD float32 x 1, group {0, 1}), direct, small",
		)
	})
}

func TestDumpAbort(t *testing.T) {
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 1 {
			c.Abort(errBoom)
			return nil
		}
		return c.Barrier(ctx)
	})
	mustDump(t, errs[0],
		"gcl: flight recorder; times are relative to the failure of barrier #1 on replica 0",
		"replica 0, connection 0: 1 collective",
		tableHead,
		"> T T failed barrier #1 (group {0, 1}), broadcast, small",
		"replica 1, connection 0: 0 collectives",
	)
}

// Run's errors are about no collective, or hold one.
func TestDumpOfRun(t *testing.T) {
	fail := map[string]func() error{
		"error":  func() error { return errBoom },
		"panic":  func() error { panicHere("boom"); return nil },
		"goexit": nil,
	}
	for name, f := range fail {
		err := gcl.Run(watched(t), 2, func(ctx context.Context, c *gcl.Comm) error {
			if err := c.Barrier(ctx); err != nil || c.Rank() == 1 {
				return errors.Join(err, c.Barrier(ctx))
			}
			if f == nil {
				runtime.Goexit()
			}
			return f()
		})
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		text := dumped(err)
		for _, want := range []string{
			"replica 0, connection 0: 1 collective\n", "done barrier #1 (group {0, 1}), broadcast, small\n",
			"replica 1, connection 0: 2 collectives\n", "barrier #2 (group {0, 1}), broadcast, small\n",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in\n%v\n%s", name, want, err, text)
			}
		}
	}
}

// A call that waits for its turn, and one that gave up waiting.
func TestDumpWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
			bad := gcl.BroadcastInPlace(ctx, c, []int8{1}, 3)
			release := make(chan struct{})
			w := c.Start(ctx, func(context.Context, *gcl.Comm) error { <-release; return nil })
			var calls sync.WaitGroup
			calls.Go(func() { c.Named("patient").Barrier(ctx) })
			synctest.Wait()
			mustDump(t, bad,
				"gcl: flight recorder; times are relative to the failure of broadcast #1 on replica 0",
				"replica 0, connection 0: 1 collective",
				tableHead,
				"> T T failed broadcast #1 (int8 x 1, root 3, group {0})",
				`  T waiting for its turn barrier "patient" (group {0})`,
			)
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			late := c.Named("hasty").Barrier(short)
			close(release)
			calls.Wait()
			mustDump(t, late,
				`gcl: flight recorder; times are relative to the failure of barrier #2 "hasty" on replica 0`,
				"replica 0, connection 0: 2 collectives",
				tableHead,
				"  T T failed broadcast #1 (int8 x 1, root 3, group {0})",
				`  T T failed barrier #3 "patient" (group {0}), local`, // which the hasty one has aborted
				`> T T failed barrier #2 "hasty" (group {0})`,
			)
			for range 40 {
				w := c.Start(ctx, func(context.Context, *gcl.Comm) error {
					<-short.Done()
					c.Barrier(short)
					return nil
				})
				c.Barrier(short)
				w.Wait()
			}
			if n := strings.Count(gcl.Dump(late), "failed barrier"); n > 40 {
				t.Errorf("%d failures are kept", n)
			}
			return w.Wait()
		})
	})
}

// After 1,024 calls the oldest are overwritten, and Dump says so.
func TestDumpWrapsAround(t *testing.T) {
	for _, calls := range []int{1023, 1024, 1025, 1026, 2049, 5000} {
		failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
			first := gcl.BroadcastInPlace(ctx, c, []int8{1}, 3)
			for i := range calls - 2 {
				if err := gcl.AllReduceInPlace(ctx, c, make([]int8, i), gcl.Add); err != nil {
					return err
				}
			}
			last := gcl.BroadcastInPlace(ctx, c, []int8{1}, 4)
			rows := []string{tableHead, fmt.Sprintf("  %d more before", calls-9)}
			for n := calls - 8; n < calls; n++ {
				rows = append(rows, fmt.Sprintf("  T T done all-reduce #%d (ADD int8 x %d, group {0}), local", n, n-2))
			}
			rows = append(rows, fmt.Sprintf("> T T failed broadcast #%d (int8 x 1, root 4, group {0})", calls))
			head := fmt.Sprintf("replica 0, connection 0: %d collectives", calls)
			mustDump(t, last, append([]string{fmt.Sprintf("gcl: flight recorder; times are relative to the failure "+
				"of broadcast #%d on replica 0", calls), head}, rows...)...)
			if calls > 1024 {
				rows[len(rows)-1] = " " + rows[len(rows)-1][1:]
				mustDump(t, first, append([]string{"gcl: flight recorder; times are relative to now",
					head + "; #1 of group {0} has been overwritten"}, rows...)...)
				return nil
			}
			mustDump(t, first, "gcl: flight recorder; times are relative to the failure of broadcast #1 on replica 0",
				head, tableHead,
				"> T T failed broadcast #1 (int8 x 1, root 3, group {0})",
				"  T < T done all-reduce #2 (ADD int8 x 0, group {0}), local",
				"  T < T done all-reduce #3 (ADD int8 x 1, group {0}), local",
				"  T < T done all-reduce #4 (ADD int8 x 2, group {0}), local",
				"  T < T done all-reduce #5 (ADD int8 x 3, group {0}), local",
				fmt.Sprintf("  %d more between", calls-6),
				fmt.Sprintf("  T T failed broadcast #%d (int8 x 1, root 4, group {0})", calls))
			return nil
		})
	}
}

// The oldest of the last 1,024 collectives is on record, and the one before it is not.
func TestDumpOfTheOldest(t *testing.T) {
	failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		first := gcl.BroadcastInPlace(ctx, c, []int8{1}, 3)
		second := gcl.BroadcastInPlace(ctx, c, []int8{1}, 4)
		for range 1023 {
			if err := c.Barrier(ctx); err != nil {
				return err
			}
		}
		if text := gcl.Dump(first); !strings.Contains(text, "#1 of group {0} has been overwritten") {
			t.Errorf("the first of 1,025:\n%s", text)
		}
		if text := gcl.Dump(second); strings.Contains(text, "overwritten") ||
			!strings.Contains(text, "failed  broadcast #2 (int8 x 1, root 4, group {0})") {
			t.Errorf("the second of 1,025:\n%s", text)
		}
		return nil
	})
}

// Comms made by New on endpoints of one network share their recorders, and Dups have their own.
func TestDumpOfNew(t *testing.T) {
	endpoints, err := inproc.New(2)
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 2)
	var all sync.WaitGroup
	for i, e := range endpoints {
		all.Go(func() {
			c, err := gcl.New(e)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for range 30 {
				d, err := c.Dup(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				d.Close()
			}
			d, err := c.Dup(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			g := grouped(d, commgroup.Group{Type: commgroup.Consecutive, Size: 1})
			errs[i] = errors.Join(g.Barrier(t.Context()), gcl.BroadcastInPlace(t.Context(), g, []int8{1}, i+1))
		})
	}
	all.Wait()
	text := dumped(errs[1])
	for r := range 2 {
		if !strings.Contains(text, fmt.Sprintf("replica %d, connection 31: 2 collectives\n", r)) ||
			!strings.Contains(text, fmt.Sprintf("replica %d, connection 0: 0 collectives\n", r)) {
			t.Errorf("replica %d is missing in\n%s", r, text)
		}
	}
	if n := strings.Count(text, "connection"); n > 2*11 {
		t.Errorf("%d recorders are kept", n)
	}
}

// Dump reads while others call: what it reads is whole. The race detector looks on.
func TestDumpWhileRunning(t *testing.T) {
	calls := 5000
	if underRace || testing.Short() {
		calls = 1500
	}
	line := regexp.MustCompile(`(?m)^. +(-?[0-9.µmns]+) .* (?:all-reduce|broadcast) #(\d+) "(\d+)" \((?:ADD )?int32 x (\d+),`)
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		bad := gcl.BroadcastInPlace(ctx, c.Named("1"), make([]int32, 1), 9) // which leaves the communicator as it is
		stop, begun := make(chan struct{}), make(chan struct{})
		var reader sync.WaitGroup
		reader.Go(func() {
			for reads := range 200 { // not for ever: on one processor the others would hardly get to call
				select {
				case <-stop:
					return
				default:
				}
				if reads == 1 {
					close(begun)
				}
				found := line.FindAllStringSubmatch(gcl.Dump(bad), -1)
				if len(found) == 0 && reads < 100 {
					t.Error("no call is found")
				}
				for _, m := range found {
					seq, _ := strconv.Atoi(m[2])
					if name, _ := strconv.Atoi(m[3]); name != seq%10 && seq > 1 ||
						m[4] != fmt.Sprint(seq%7) && seq > 1 {
						t.Errorf("a record that is mixed up: %q", m[0])
					}
				}
			}
		})
		defer reader.Wait()
		defer close(stop)
		var named [10]*gcl.Comm
		for i := range named {
			o := gcl.Options{}
			if i%3 == 0 {
				o.Method, o.Implementation = methods.ClockwiseRing, gcl.Syncless
			}
			named[i] = withOptions(c, o).Named(fmt.Sprint(i))
		}
		<-begun // the reader is at it
		data := make([]int32, 7)
		for seq := 2; seq < calls; seq++ {
			if err := gcl.AllReduceInPlace(ctx, named[seq%10], data[:seq%7], gcl.Add); err != nil {
				return err
			}
		}
		return nil
	})
}
