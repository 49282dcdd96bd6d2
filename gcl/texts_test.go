package gcl_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

var update = flag.Bool("update", false, "write testdata/errors.txt and trace.txt anew")

// texts is what testdata/errors.txt holds: situations, and what users read in them.
type texts struct{ strings.Builder }

// add adds one text. All of a stack but its existence is left out.
func (x *texts) add(situation string, err error) {
	text := "no error"
	if err != nil {
		text = err.Error()
	}
	if first, stack, found := strings.Cut(text, "\n\ngoroutine "); found && strings.Contains(stack, "panicHere") {
		text = first + "\n<the stack>"
	}
	fmt.Fprintf(x, "-- %s\n%s\n\n", situation, strings.TrimSpace(text))
}

// ownOperators are the operators of other tests, where a list has all of this process.
var ownOperators = regexp.MustCompile(`LOCAL(, [a-z]\w*)+`)

// TestErrorTexts compares what users read with testdata/errors.txt. With -update it writes the file: look at what
// changed before you commit it.
func TestErrorTexts(t *testing.T) {
	var x texts
	x.arguments(t)
	x.failures(t)
	x.mismatches()
	if twice := regexp.MustCompile(`gcl: .*gcl: .*`).FindString(x.String()); twice != "" {
		t.Errorf("a text names the package twice: %s", twice)
	}
	for text := range strings.SplitSeq(x.String(), "\n") {
		if lead, _, ok := strings.Cut(text, "; "); ok && strings.Contains(lead, " differ") && len(lead) > 160 {
			t.Errorf("%d characters before the calls, want at most 160: %s", len(lead), lead)
		}
		// What others have wrapped stays as it is.
		if strings.Contains(text, "call mismatch: ") && !strings.Contains(text, "wrapped: ") {
			t.Errorf("does not say what differs: %s", text)
		}
	}
	told := ownOperators.ReplaceAllString(x.String(), "LOCAL")
	golden := filepath.Join("testdata", "errors.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(told), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	have, wants := strings.Split(told, "\n\n-- "), strings.Split(string(want), "\n\n-- ")
	for i := range max(len(have), len(wants)) {
		switch {
		case i >= len(have):
			t.Errorf("missing:\n%s", wants[i])
		case i >= len(wants):
			t.Errorf("new:\n%s", have[i])
		case have[i] != wants[i]:
			t.Errorf("have\n%s\nwant\n%s", have[i], wants[i])
		}
	}
}

// arguments adds what is said to callers who are wrong, on replica 1 of four.
func (x *texts) arguments(t *testing.T) {
	for _, bad := range badCalls() {
		x.add(bad.name, failures(t, 4, bad.call)[1])
	}
	_, err := gcl.ParseOperator("PLUS")
	x.add("an operator's name", err)
	_, err = gcl.Operator(240).MarshalText()
	x.add("an operator without a name", err)
	replicas(t, 8, func(_ context.Context, c *gcl.Comm) error {
		if c.Replica() == 0 {
			_, err := c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 3})
			x.add("groups of 3 of 8", err)
			_, err = c.With(gcl.Options{Method: 99})
			x.add("method 99", err)
		}
		return nil
	})
	nothing := func(context.Context, *gcl.Comm) error { return nil }
	x.add("no replicas", gcl.Run(t.Context(), 0, nothing))
	x.add("no body", gcl.Run(t.Context(), 2, nil))
	eight, _ := topology.New(topology.Config{Replicas: []int{8}})
	x.add("another topology", gcl.Run(t.Context(), 4, nothing, gcl.WithTopology(eight)))
	for _, text := range []string{"method=broadcast",
		`{"method": "broadcast"`, `{"method": "broad`, `{method: "broadcast"}`} {
		t.Setenv("GCL_OPTIONS", text)
		x.add("GCL_OPTIONS="+text, gcl.Run(t.Context(), 1, nothing))
	}
	t.Setenv("GCL_OPTIONS", "")
	x.add("nil Comm", gcl.AllReduceInPlace[float32](t.Context(), nil, nil, gcl.Add))
}

// failures adds what is said when a replica fails, in situations in which the others can notice it in one way only.
func (x *texts) failures(t *testing.T) {
	x.add("a body's error", gcl.Run(watched(t), 2, func(_ context.Context, c *gcl.Comm) error {
		if c.Replica() == 1 {
			return errBoom
		}
		return nil
	}))
	x.add("a body's panic", gcl.Run(watched(t), 2, func(_ context.Context, c *gcl.Comm) error {
		if c.Replica() == 1 {
			panicHere("boom")
		}
		return nil
	}))
	x.add("runtime.Goexit", gcl.Run(t.Context(), 1, func(context.Context, *gcl.Comm) error {
		runtime.Goexit()
		return nil
	}))
	x.add("Run, when a replica returns too early", gcl.Run(watched(t), 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 0 {
			return nil
		}
		return gcl.BroadcastInPlace(ctx, c, []float32{1}, 0)
	}))
	refused := gcl.Run(watched(t), 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 1 {
			return gcl.AllReduceTo(ctx, c, make([]float32, 1), make([]float32, 2), gcl.Add)
		}
		return c.Barrier(ctx)
	})
	x.add("Run, when a collective refuses its arguments", refused)
	elsewhere := func(how string, err error) {
		x.add("the same on another replica, by "+how,
			gcl.CollectiveError(watched(t), transport.Call{Seq: 3}, 0, &transport.RoundError{Peer: -1, Err: err}))
	}
	elsewhere("the abort", &transport.AbortError{Replica: 1, Cause: refused})
	elsewhere("its context", refused)
	elsewhere("both", &transport.LateError{Err: refused, Aborted: &transport.AbortError{Replica: 1, Cause: refused}})
	elsewhere("a third's abort", &transport.AbortError{Replica: 2, Cause: refused})
	x.add("Run, when an option is wrong", gcl.Run(watched(t), 1, func(_ context.Context, c *gcl.Comm) error {
		_, err := c.With(gcl.Options{Method: 99})
		return err
	}))
	x.add("Abort by replica 1, on replica 0", failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 1 {
			c.Abort(errBoom)
		}
		return c.Barrier(ctx)
	})[0])
	synctest.Test(t, func(t *testing.T) {
		errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Replica() == 0 {
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return gcl.BroadcastInPlace(short, c, []float32{1}, 1)
			}
			time.Sleep(2 * time.Second) // the bubble's
			return gcl.BroadcastInPlace(ctx, c, []float32{1}, 1)
		})
		x.add("a deadline, on the replica whose it is", errs[0])
		x.add("a deadline, on another", errs[1])
	})
	synctest.Test(t, func(t *testing.T) {
		errs := untold(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			if err := c.Barrier(ctx); err != nil || c.Rank() == 2 {
				return err
			}
			short, cancel := context.WithTimeout(ctx, time.Duration(1+c.Rank())*time.Second)
			defer cancel()
			return gcl.AllReduceInPlace(short, c.Named("grads"), make([]float32, 70000), gcl.Add)
		})
		times := regexp.MustCompile(` for [^ ]*s, since`)
		x.add("a deadline, after other calls", errors.New(times.ReplaceAllString(errs[0].Error(), " for T, since")))
	})
	closed := joined(t, 1)[0]
	x.add("after Close", errors.Join(closed.Close(), closed.Barrier(t.Context())))
	replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		return c.Start(ctx, func(ctx context.Context, inner *gcl.Comm) error {
			x.add("Start inside Start", inner.Start(ctx, func(context.Context, *gcl.Comm) error { return nil }).Wait())
			x.add("the outer Comm inside Start", c.Barrier(ctx))
			return nil
		}).Wait()
	})
}

// mismatches adds what is said when replicas disagree. Which of them finds it first is chance, so the transport's
// errors are made here.
func (x *texts) mismatches() {
	mine := transport.Call{Group: gcl.GroupID(1, 3, 5, 7), Seq: 17, Count: 1024, Collective: uint8(schedule.AllReduce),
		Operator: uint8(gcl.Add), DType: uint8(tensor.F32), Method: uint8(methods.ClockwiseRing), Round: 4}
	add := func(situation string, replica int, err error) {
		x.add(situation, gcl.CollectiveError(context.Background(), mine, replica, err))
	}
	round := func(rank, peer int, err error) error {
		return &transport.RoundError{Replica: rank, Round: 4, Kind: transport.RecvFold, Peer: peer, Err: err}
	}
	var found error
	for _, change := range []struct {
		situation string
		theirs    func(*transport.Call)
	}{
		{"another length", func(c *transport.Call) { c.Count = 1023 }},
		{"another operator", func(c *transport.Call) { c.Operator = uint8(gcl.SquareAdd) }},
		{"an operator of another program", func(c *transport.Call) { c.Operator = 0xff }},
		{"another dtype", func(c *transport.Call) { c.DType = uint8(tensor.BF16) }},
		{"another method", func(c *transport.Call) { c.Method = uint8(methods.Direct) }},
		{"another collective", func(c *transport.Call) { c.Collective, c.Root = uint8(schedule.Broadcast), 2 }},
		{"another group", func(c *transport.Call) { c.Group = gcl.GroupID(2, 3, 4, 5, 6, 7, 8, 9, 10) }},
		{"a later call of another group", func(c *transport.Call) { c.Group, c.Seq = gcl.GroupID(2, 3), 20 }},
		{"one call further", func(c *transport.Call) { c.Seq, c.Round = 18, 0 }},
		{"a length that goes into the digest too", func(c *transport.Call) { c.Count, c.Digest = 1023, 1 }},
		{"before a round, and in it", func(c *transport.Call) { c.Round |= 1 << 31 }},
		{"Reproducible or not", func(c *transport.Call) { c.Digest = 1 }},
	} {
		theirs := mine
		change.theirs(&theirs)
		found = round(3, 2, &transport.MismatchError{Replica: 3, Peer: 2, Mine: mine, Theirs: theirs})
		add(change.situation, 3, found)
	}
	rooted := mine
	rooted.Collective, rooted.Operator = uint8(schedule.Scatter), 0
	counted := mine
	counted.Collective, counted.Operator, counted.DType = uint8(schedule.AllGather), 0, counted.DType|gcl.ByCounts
	executed := mine
	executed.Collective = gcl.ExecuteCall
	for _, change := range []struct {
		situation string
		mine      transport.Call
		theirs    func(*transport.Call)
	}{
		{"another root", rooted, func(c *transport.Call) { c.Root = 1 }},
		{"a scatter of another length", rooted, func(c *transport.Call) { c.Count = 1020 }},
		{"counts of another sum", counted, func(c *transport.Call) { c.Count, c.Digest = 1020, 1 }},
		{"counts of the same sum, or options", counted, func(c *transport.Call) { c.Digest = 1 }},
		{"another schedule", executed, func(c *transport.Call) { c.Count, c.Digest = 1020, 1 }},
		{"a schedule on another length", executed, func(c *transport.Call) { c.Count, c.Round = 1020, 5 }},
	} {
		theirs := change.mine
		change.theirs(&theirs)
		err := round(3, 2, &transport.MismatchError{Replica: 3, Peer: 2, Mine: change.mine, Theirs: theirs})
		x.add(change.situation, gcl.CollectiveError(context.Background(), change.mine, 3, err))
	}
	listed := mine
	listed.Group = gcl.GroupID(1, 3, 4)
	theirs := listed
	theirs.Digest = 1
	add("options, or the lists of the groups", 3,
		round(3, 1, &transport.MismatchError{Replica: 3, Peer: 1, Mine: listed, Theirs: theirs}))
	many := mine
	many.DType |= gcl.ManyTensors
	for _, change := range []struct {
		situation string
		theirs    transport.Call
	}{
		{"one tensor and several", mine},
		{"several tensors of other lengths", func(c transport.Call) transport.Call { c.Count, c.Digest = 1020, 1; return c }(many)},
		{"several tensors, some of another type", func(c transport.Call) transport.Call { c.DType, c.Digest = gcl.ManyTensors, 1; return c }(many)},
		{"several tensors in another order", func(c transport.Call) transport.Call { c.Digest = 1; return c }(many)},
	} {
		err := round(3, 2, &transport.MismatchError{Replica: 3, Peer: 2, Mine: many, Theirs: change.theirs})
		x.add(change.situation, gcl.CollectiveError(context.Background(), many, 3, err))
	}
	add("a mismatch, on a replica that did not find it",
		0, &transport.RoundError{Replica: 0, Round: 1, Peer: -1, Err: &transport.AbortError{Replica: 3, Cause: found}})
	add("a mismatch that two found", 2,
		round(2, 3, &transport.LateError{Err: found.(*transport.RoundError).Err,
			Aborted: &transport.AbortError{Replica: 3, Cause: found}}))
	third := *found.(*transport.RoundError).Err.(*transport.MismatchError)
	third.Replica, third.Peer, third.Mine, third.Theirs = 2, 1, third.Theirs, third.Mine
	add("a mismatch of the same calls, elsewhere", 2,
		round(2, 1, &transport.LateError{Err: &third, Aborted: &transport.AbortError{Replica: 3, Cause: found}}))
	elsewhere := &transport.RoundError{Replica: 2, Round: 1 << 31, Kind: transport.Recv, Peer: 3,
		Err: errors.New("connection reset")}
	add("a connection that failed before a round", 2, elsewhere)
	finish := mine
	finish.Collective, finish.Operator, finish.Count = gcl.BarrierCall, 0, 0
	add("a barrier", 3, round(3, 2, &transport.MismatchError{Replica: 3, Peer: 2, Mine: mine, Theirs: finish}))
	add("an abort that a cancelled context repeats",
		2, round(2, 3, &transport.LateError{Err: errBoom, Aborted: &transport.AbortError{Replica: 3, Cause: errBoom}}))
	gone := &transport.AbortError{Replica: 3, Cause: round(3, 1, &transport.ClosedError{Replica: 1})}
	add("a replica has left, which two found", 2,
		round(2, 1, &transport.LateError{Err: &transport.ClosedError{Replica: 1}, Aborted: gone}))
	add("two replicas have left", 2,
		round(2, 0, &transport.LateError{Err: &transport.ClosedError{Replica: 0}, Aborted: gone}))
	add("an abort that wraps what was aborted with", 2, round(2, 3, &transport.LateError{
		Err: fmt.Errorf("stopped: %w", errBoom), Aborted: &transport.AbortError{Replica: 3, Cause: errBoom}}))
	add("failures of one text", 2, round(2, 3, &transport.LateError{
		Err:     errors.New("connection reset"),
		Aborted: &transport.AbortError{Replica: 3, Cause: errors.New("connection reset")}}))
	add("a message of another length", 3,
		round(3, 2, &transport.MismatchError{Replica: 3, Peer: 2, Mine: mine, Theirs: mine, MineBytes: 64,
			TheirsBytes: 60}))
	other := mine
	other.Collective, other.Method, other.Root = uint8(schedule.Broadcast), uint8(methods.Direct), 1
	circle := func(situation string, theirs transport.Call) {
		add(situation, 3,
			round(3, 2, &transport.DeadlockError{Replicas: []int{3, 2}, Calls: []transport.Call{mine, theirs}}))
	}
	circle("replicas that wait for each other", other)
	pair := mine
	pair.Group = gcl.GroupID(2, 3)
	circle("replicas of two groups that wait for each other", pair)
	later := mine
	later.Round++
	circle("replicas that go different ways and wait for each other", later)
	phase, otherPhase := mine, pair
	phase.Seq, otherPhase.Seq = gcl.PhaseSeq(17, 1), gcl.PhaseSeq(17, 1)
	add("phases that wait for each other", 3,
		round(3, 2, &transport.DeadlockError{Replicas: []int{3, 2}, Calls: []transport.Call{phase, otherPhase}}))
	next, odd := otherPhase, other
	next.Seq, next.Group, next.Digest = gcl.PhaseSeq(17, 2), gcl.GroupID(2, 3), 7
	odd.Seq, odd.Group = gcl.PhaseSeq(17, 1), gcl.GroupID(1, 2)
	add("two phases of one call and another call that wait for each other", 3,
		round(3, 2, &transport.DeadlockError{Replicas: []int{3, 2, 1}, Calls: []transport.Call{phase, next, odd}}))
	add("a circle of nobody", 3, round(3, 2, &transport.DeadlockError{}))
	add("three replicas that wait for each other", 3, round(3, 2, &transport.DeadlockError{
		Replicas: []int{3, 2, 1}, Calls: []transport.Call{mine, mine, other}}))
	add("a connection that failed", 3, round(3, 2, errors.New("connection reset")))
	add("inside the error of a wrapper", 3, fmt.Errorf("wrapped: %w", found))
}
