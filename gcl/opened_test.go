package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// forging is an endpoint whose Workers get the memory of the member at place 1 as forge leaves it.
type forging struct {
	near
	forge func(*transport.Memory)
}

func (e forging) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory, rounds []int,
	w transport.Worker) error {
	return e.near.Share(ctx, call, members, mine, rounds, forged{w, e.forge})
}

// forged is a Worker of a forging endpoint.
type forged struct {
	transport.Worker
	forge func(*transport.Memory)
}

func (w forged) Piece(all []transport.Memory, round, i int) {
	all = slices.Clone(all)
	m := &all[1]
	m.Ins, m.Outs = slices.Clone(m.Ins), slices.Clone(m.Outs)
	w.forge(m)
	w.Worker.Piece(all, round, i)
}

// forgers connects n forging endpoints.
func forgers(t *testing.T, n int, forge func(*transport.Memory)) gcl.CommOption {
	t.Helper()
	endpoints, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range endpoints {
		endpoints[i] = forging{e.(near), forge}
	}
	return gcl.WithEndpoints(endpoints)
}

// forgery is a change of what a member has laid open. forge returns the length of the buffer, or of the list, then.
type forgery struct {
	name  string
	about string // the error's words for it, for the length
	lists bool   // it is of a list
	forge func(m *transport.Memory) int
}

// forgeries are changes of inputs, outputs, lists and scratch memory. Of lists the last buffer is changed.
func forgeries() (all []forgery) {
	for _, by := range []int{-1 << 30, -4, -1, 1} {
		change := func(b *[]byte, list [][]byte) int {
			if len(list) > 0 {
				b = &list[len(list)-1]
			}
			n := max(len(*b)+by, 0)
			if n > len(*b) {
				*b = make([]byte, n) // not a copy, since its owner may be writing
			}
			*b = (*b)[:n:n]
			return n
		}
		all = append(all,
			forgery{fmt.Sprintf("input%+d", by), "an input of %d bytes lies open, want ", false,
				func(m *transport.Memory) int { return change(&m.In, m.Ins) }},
			forgery{fmt.Sprintf("output%+d", by), "an output of %d bytes lies open, want ", false,
				func(m *transport.Memory) int { return change(&m.Out, m.Outs) }})
	}
	for _, by := range []int{-1 << 30, -1, 1} {
		change := func(list *[][]byte) int {
			n := max(len(*list)+by, 0)
			*list = append(*list, nil)[:n]
			return n
		}
		all = append(all,
			forgery{fmt.Sprintf("inputs%+d", by), "%d inputs lie open, want ", true,
				func(m *transport.Memory) int { return change(&m.Ins) }},
			forgery{fmt.Sprintf("outputs%+d", by), "%d outputs lie open, want ", true,
				func(m *transport.Memory) int { return change(&m.Outs) }})
	}
	return all
}

// openCall is a collective on a number of operands that are alike: what each rank gives, and what it must get.
type openCall struct {
	schedule.Collective
	root      int
	counts    []int // by rank; nil: of equal parts
	operands  int
	ins, outs [][]int32
}

func newOpenCall(collective schedule.Collective, n, size, root, operands int, counts []int) openCall {
	x := openCall{Collective: collective, root: root, counts: counts, operands: operands}
	of := oracle.Call{Collective: collective, Root: root, Counts: counts}
	if x.Contract().Combines {
		of.Operator = oracle.Add
	}
	if collective == schedule.ReduceScatter && counts == nil {
		size++ // so that the last shard has padding
	}
	x.ins = inputs[int32](gcl.Add, n, size)
	if x.Contract().Input == schedule.Own && counts != nil {
		for rank, count := range counts {
			x.ins[rank] = x.ins[rank][:count]
		}
	}
	x.outs = oracle.Outputs(of, x.ins)
	return x
}

// unwritten is what outputs hold before a call.
const unwritten = -12345

// run makes the call on a rank. After an error the last output must be as it was, unless it may be written. A panic is
// an error.
func (x *openCall) run(ctx context.Context, c *gcl.Comm, mayWrite bool) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	op := gcl.Operator(0)
	if x.Contract().Combines {
		op = gcl.Add
	}
	b, want := c.Batch(x.Collective, op, x.root), x.outs[c.Rank()]
	outs := make([][]int32, x.operands)
	for i := range outs {
		outs[i] = slices.Repeat([]int32{unwritten}, len(want))
		if x.counts == nil {
			gcl.Append(b, outs[i], slices.Clone(x.ins[c.Rank()]))
		} else {
			gcl.AppendV(b, outs[i], slices.Clone(x.ins[c.Rank()]), x.counts)
		}
	}
	if err := b.Run(ctx); err != nil {
		last := outs[x.operands-1]
		if i := slices.IndexFunc(last, func(v int32) bool { return v != unwritten }); i >= 0 && !mayWrite {
			return fmt.Errorf("element %d of the last output is written after %w", i, err)
		}
		return err
	}
	for i := range outs {
		if err := check(fmt.Sprintf("no error, but output %d", i), outs[i], want); err != nil {
			return err
		}
	}
	return nil
}

// refused looks at the errors of replicas, one of which has found a wrong length of a peer. The others have heard of
// it or found it too.
func refused(t *testing.T, errs []error, replica int, text string) {
	t.Helper()
	found := false
	for r, err := range errs {
		peer := (*gcl.PeerError)(nil)
		finder := errors.As(err, &peer) && peer.Replica == replica
		found = found || finder
		if err == nil || !finder && !errors.Is(err, gcl.ErrAborted) || !strings.Contains(err.Error(), text) ||
			strings.Contains(err.Error(), "is written after") {
			t.Errorf("replica %d: %v, want a *PeerError of replica %d or ErrAborted, and %q", r, err, replica, text)
		}
	}
	if !found {
		t.Errorf("no *PeerError of replica %d in %v", replica, errs)
	}
}

// TestOpenedLengths: a member that lays open another length than the call wants, or another number of buffers, fails
// the call at all members, on all paths over peer memory. Nobody panics, and nothing is read or written. What is wrong
// with a buffer that nobody uses makes no difference. Under the race detector one case of five is tried.
func TestOpenedLengths(t *testing.T) {
	turn := 0
	for _, path := range []struct {
		name     string
		method   methods.Method
		operands int
		size     int
		byCounts bool
	}{
		{"pass", methods.Direct, 1, 6000, false},
		{"pass of lists", methods.Direct, 3, 6000, false},
		{"pass by counts", methods.Direct, 1, 6000, true},
		{"pass of lists by counts", methods.Direct, 2, 6000, true},
		{"rounds", methods.ClockwiseRing, 1, 600, false},
		{"rounds of a packing", methods.ClockwiseRing, 3, 600, false},
		{"rounds of lists", methods.ClockwiseRing, 2, 120_000, false},
		{"rounds by counts", methods.ClockwiseRing, 1, 6000, true},
		{"rounds to all", methods.SendToAll, 1, 600, false},
	} {
		for _, collective := range schedule.Collectives() {
			contract := collective.Contract()
			if path.byCounts && (!contract.PerRank() || contract.Input == schedule.Blocks) {
				continue
			}
			for _, n := range []int{2, 3} {
				for root := range min(2, n) {
					if root > 0 && !contract.Rooted() {
						continue
					}
					var counts []int
					if path.byCounts {
						counts = []int{1000, path.size - 1000, 0}[:n]
					}
					call := newOpenCall(collective, n, path.size, root, path.operands, counts)
					for _, f := range forgeries() {
						if turn++; underRace && turn%5 != 0 {
							continue
						}
						t.Run(fmt.Sprintf("%s/%v/n=%d/root=%d/%s", path.name, collective, n, root, f.name),
							func(t *testing.T) {
								testOpened(t, call, gcl.Options{Method: path.method, Implementation: gcl.Syncful}, n, f)
							})
					}
				}
			}
		}
	}
}

// use says whether some member looks at a buffer.
type use int

const (
	never use = iota
	perhaps
	always
)

// uses says whether some member looks at the output of member 1, or the input, or at the list of them. The root is
// member 0 or member 1. In rounds only those look that receive from member 1.
func (x *openCall) uses(output, list, rounds bool) use {
	contract := x.Contract()
	holding := contract.Input
	if output {
		holding = contract.Output
	}
	switch {
	case rounds && contract.Output == schedule.AtRoot && x.root == 1, // which sends nothing
		holding == schedule.AtRoot && x.root == 0 && !list:
		return never
	case rounds && contract.Input == schedule.AtRoot && x.root == 0: // member 1 may pass on what it gets
		return perhaps
	}
	return always
}

// testOpened has a call meet a forgery.
func testOpened(t *testing.T, call openCall, o gcl.Options, n int, f forgery) {
	pass := o.Method == methods.Direct
	if f.lists && pass && call.operands == 1 {
		t.Skip("no lists")
	}
	text := make(chan string, 1)
	errs := failures(t, n, func(ctx context.Context, c *gcl.Comm) error {
		return call.run(ctx, withOptions(c, o), !pass)
	}, forgers(t, n, func(m *transport.Memory) {
		s := fmt.Sprintf(f.about, f.forge(m))
		select {
		case text <- s:
		default:
		}
	}))
	switch used := call.uses(strings.HasPrefix(f.name, "output"), f.lists, !pass); {
	case used == never || used == perhaps && errors.Join(errs...) == nil:
		for r, err := range errs {
			if err != nil {
				t.Errorf("replica %d: %v, want no error", r, err)
			}
		}
		return
	}
	refused(t, errs, 1, <-text)
}

// TestOpenedScratch: so does one that lays open less scratch memory than its messages take. More is no fault: a longer
// call has left it.
func TestOpenedScratch(t *testing.T) {
	const n = 4
	o := gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}
	for _, operands := range []int{1, 2} { // each has scratch memory of its own
		call := newOpenCall(schedule.AllToAll, n, 40_000, 0, operands, nil)
		with := func(length int) []error {
			return failures(t, n, func(ctx context.Context, c *gcl.Comm) error {
				return call.run(ctx, withOptions(c, o), true)
			}, forgers(t, n, func(m *transport.Memory) {
				m.Scratch = m.Scratch[:length:length]
			}))
		}
		enough := 0
		for i := range operands { // the first that lies past the end is told of
			errs := with(enough)
			_, text, _ := strings.Cut(fmt.Sprint(errs[2]), "lies open, want ")
			want := 0
			if _, err := fmt.Sscanf(text, "%d or more", &want); err != nil || want < enough+40_000 {
				t.Fatalf("operand %d: %q, want the bytes of the blocks that a replica passes on", i, text)
			}
			about := "receive from 1: scratch memory of %d bytes lies open, want %d or more"
			refused(t, errs, 1, fmt.Sprintf(about, enough, want))
			refused(t, with(want-1), 1, fmt.Sprintf(about, want-1, want))
			enough = want
		}
		for r, err := range append(with(enough), with(enough+1)...) {
			if err != nil {
				t.Errorf("%d operands, enough scratch memory: replica %d: %v", operands, r%n, err)
			}
		}
	}
}

// TestOpenedExecute: so does one by a schedule of a contract of a program's own. In these replica 2 receives from
// replica 1.
func TestOpenedExecute(t *testing.T) {
	const n, unit = 3, 100
	for _, s := range []*schedule.Schedule{relayOf(n), scanOf(n, 3, true), stridesOf(n)} {
		op := gcl.Operator(0)
		if s.Custom.Combines {
			op = gcl.Add
		}
		x := newOwnCase[int64](s, op, unit)
		in, out := len(x.ins[1])*8, len(x.outs[1])*8
		for _, f := range []struct {
			about string
			forge func(m *transport.Memory)
		}{
			{fmt.Sprintf("an input of 0 bytes lies open, want %d", in), func(m *transport.Memory) { m.Ins[0] = nil }},
			{fmt.Sprintf("an input of %d bytes lies open, want %d", in-1, in), func(m *transport.Memory) {
				m.Ins[0] = m.Ins[0][1:]
			}},
			{fmt.Sprintf("an output of %d bytes lies open, want %d", out+1, out), func(m *transport.Memory) {
				m.Outs[0] = make([]byte, out+1)
			}},
			{"0 inputs lie open, want 1", func(m *transport.Memory) { m.Ins = nil }},
		} {
			errs := failures(t, n, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, gcl.Options{Implementation: gcl.Syncful})
				return gcl.Execute(ctx, c, s, make([]int64, len(x.outs[c.Rank()])), slices.Clone(x.ins[c.Rank()]), op)
			}, forgers(t, n, f.forge))
			refused(t, errs, 1, f.about)
		}
	}
}

// TestOpenedInAGroup: the error names the replica, not its rank.
func TestOpenedInAGroup(t *testing.T) {
	for _, m := range []methods.Method{methods.Direct, methods.ClockwiseRing} {
		call := newOpenCall(schedule.AllReduce, 2, 6000, 0, 1, nil)
		errs := failures(t, 4, func(ctx context.Context, c *gcl.Comm) error {
			if c.Replica() < 2 {
				return nil
			}
			pair := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2})
			return call.run(ctx, withOptions(pair, gcl.Options{Method: m, Implementation: gcl.Syncful}), true)
		}, forgers(t, 4, func(m *transport.Memory) {
			if len(m.Ins) > 0 {
				m.Ins[0] = m.Ins[0][:100:100]
			} else {
				m.In = m.In[:100:100]
			}
		}))
		if errs[0] != nil || errs[1] != nil {
			t.Errorf("%v: %v of those that made no call", m, errs[:2])
		}
		refused(t, errs[2:], 3, "receive from 3: an input of 100 bytes lies open, want 24000")
	}
}
