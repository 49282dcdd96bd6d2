package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

// variant is one of the calls that replicas confuse in the tests below, and how errors describe it. Its number is 1,
// the first on the communicator.
type variant struct {
	name string
	text []string // parts of its description
	call func(context.Context, *gcl.Comm) error

	group    commgroup.Group
	digested string // the options that only the digest tells
}

// reduction is an all-reduce of n elements that differs from others in one thing.
func reduction[T tensor.Element](name string, n int, op gcl.Operator, o gcl.Options, parts ...string) variant {
	method := o.Method.String()
	switch {
	case o.Method == methods.Auto && o.Implementation == gcl.Syncless:
		method = "broadcast" // which Auto takes for so little
	case o.Method == methods.Auto:
		method = "direct" // on peer memory
	}
	parts = append(parts, fmt.Sprintf("all-reduce #1 (%v %v x %d, %s, ", op, tensor.DTypeOf[T](), n, method))
	return variant{name: name, text: parts, digested: fmt.Sprint(o.Reproducible, o.MaxBytesPerTile, o.StageFragments),
		call: func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]T, n), op)
		}}
}

// variants lists calls any two of which differ: in method, group, root, operator, dtype, length, collective, options,
// or order.
func variants(n int) []variant {
	const size = 24
	ring := gcl.Options{Method: methods.ClockwiseRing}
	f := func() []float32 { return make([]float32, size) }
	out := []variant{
		reduction[float32]("base", size, gcl.Add, ring),
		reduction[float32]("method=anticlockwise_ring", size, gcl.Add, gcl.Options{Method: methods.AnticlockwiseRing}),
		reduction[float32]("method=meet_in_middle_ring", size, gcl.Add, gcl.Options{Method: methods.MeetInMiddleRing}),
		reduction[float32]("method=quad_directional_ring",
			size, gcl.Add, gcl.Options{Method: methods.QuadDirectionalRing}),
		reduction[float32]("method=direct", size, gcl.Add, gcl.Options{Method: methods.Direct}),
		reduction[float32]("method=auto", size, gcl.Add, gcl.Options{Implementation: gcl.Syncless}),
		reduction[float32]("method=recursive_doubling", size, gcl.Add, gcl.Options{Method: methods.RecursiveDoubling}),
		reduction[float32]("implementation=Syncful",
			size, gcl.Add, gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}),
		reduction[float32]("operator=MAX", size, gcl.Max, ring),
		reduction[float32]("operator=SQUARE_ADD", size, gcl.SquareAdd, ring),
		reduction[float32]("operator=LOCAL", size, gcl.Local, ring),
		reduction[float32]("operator=later", size, ownOperator[float32](), ring),
		reduction[float32]("operator=bitwise", size, bitwise(), ring),
		reduction[int32]("dtype=int32", size, gcl.Add, ring), // of as many bytes
		reduction[float64]("dtype=float64", size/2, gcl.Add, ring),
		reduction[float32]("length=25", size+1, gcl.Add, ring),
		reduction[float32]("length=0", 0, gcl.Add, ring),
		reduction[float32]("reproducible", size, gcl.Add,
			gcl.Options{Method: methods.ClockwiseRing, Reproducible: true}),
		reduction[float32]("maxBytesPerTile", size, gcl.Add,
			gcl.Options{Method: methods.ClockwiseRing, MaxBytesPerTile: 1}),
		reduction[float32]("stageFragments", size, gcl.Add,
			gcl.Options{Method: methods.ClockwiseRing, StageFragments: true}),
		{name: "collective=reduce-scatter", text: []string{"reduce-scatter #1 (ADD float32 x 24, "},
			call: func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.ReduceScatter(ctx, with(c, ring.Method), f(), gcl.Add)
				return err
			}},
		{name: "collective=all-gather", text: []string{"all-gather #1 (float32 x 24, "},
			call: func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.AllGather(ctx, with(c, ring.Method), f())
				return err
			}},
		{name: "collective=all-to-all", text: []string{"all-to-all #1 (float32 x 24, "},
			call: func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.AllToAll(ctx, with(c, ring.Method), f())
				return err
			}},
		{name: "collective=barrier", text: []string{"barrier #1 ("}, call: func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) }},
		{name: "order", text: []string{"all-reduce #2 (ADD float32 x 24, clockwise_ring, ", "barrier #1 ("},
			call: func(ctx context.Context, c *gcl.Comm) error {
				if err := c.Barrier(ctx); err != nil {
					return err
				}
				return gcl.AllReduceInPlace(ctx, with(c, ring.Method), f(), gcl.Add)
			}},
		{name: "seq", text: []string{"all-reduce #2 (ADD float32 x 24, clockwise_ring, "},
			call: func(ctx context.Context, c *gcl.Comm) error {
				refuse(ctx, c)
				return gcl.AllReduceInPlace(ctx, with(c, ring.Method), f(), gcl.Add)
			}},
		{name: "group=1", text: nil, call: func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 1}), f(),
				gcl.Add)
		}},
	}
	for _, m := range []methods.Method{methods.ClockwiseRing, methods.Direct} {
		for root := range min(n, 3) {
			out = append(out, variant{name: fmt.Sprintf("broadcast/method=%v/root=%d", m, root),
				text: []string{fmt.Sprintf("broadcast #1 (float32 x 24, root %d, %v, ", root, m)},
				call: func(ctx context.Context, c *gcl.Comm) error {
					return gcl.BroadcastInPlace(ctx, with(c, m), f(), root)
				}})
		}
		for root := range 2 {
			out = append(out, rootedVariants(size, root, m, gcl.Options{Method: m, Implementation: gcl.Syncless})...)
		}
	}
	for _, g := range []commgroup.Group{{Type: commgroup.Consecutive, Size: n / 2},
		{Type: commgroup.Orthogonal, Size: n / 2}} {
		if n >= 4 {
			v := out[0] // the base
			v.name, v.group = fmt.Sprintf("group=%v", g), g
			v.call = func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, with(grouped(c, g), ring.Method), f(), gcl.Add)
			}
			out = append(out, v)
		}
	}
	return out
}

// rootedVariants are a reduce, a gather and a scatter with a root. The larger buffer of the scatter has size elements.
func rootedVariants(size, root int, m methods.Method, o gcl.Options) []variant {
	named := func(what, operator string, call func(ctx context.Context, c *gcl.Comm, data []float32) error) variant {
		return variant{
			name: fmt.Sprintf("%s/method=%v/root=%d", what, o.Method, root),
			text: []string{fmt.Sprintf("%s #1 (%sfloat32 x %d, root %d, %v, ", what, operator, size, root, m)},
			call: func(ctx context.Context, c *gcl.Comm) error {
				return call(ctx, withOptions(c, o), make([]float32, size))
			},
		}
	}
	return []variant{
		named("reduce", "ADD ", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return gcl.ReduceInPlace(ctx, c, data, gcl.Add, root)
		}),
		named("gather", "", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			_, err := gcl.Gather(ctx, c, data, root)
			return err
		}),
		named("scatter", "", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			_, err := gcl.Scatter(ctx, c, data, len(data)/c.Size(), root)
			return err
		}),
	}
}

// refuse makes a call that is refused for its arguments, and takes a number all the same.
func refuse(ctx context.Context, c *gcl.Comm) {
	if err := gcl.AllReduceTo(ctx, c, make([]float32, 1), make([]float32, 2), gcl.Add); err == nil {
		panic("a destination that is too short is not refused")
	}
}

// memoryVariants lists calls on peer memory of which any two differ, of a size for Gather or for Share.
func memoryVariants(n, size int) []variant {
	f := func() []float32 { return make([]float32, size) }
	moved := func(what string) []string { return []string{fmt.Sprintf("%s #1 (float32 x %d, ", what, size)} }
	out := []variant{
		reduction[float32]("base", size, gcl.Add, gcl.Options{}),
		reduction[float32]("operator=MAX", size, gcl.Max, gcl.Options{}),
		reduction[float32]("operator=LOCAL", size, gcl.Local, gcl.Options{}),
		reduction[int32]("dtype=int32", size, gcl.Add, gcl.Options{}), // of as many bytes
		reduction[float64]("dtype=float64", size/2, gcl.Add, gcl.Options{}),
		reduction[float32]("length=25", size+1, gcl.Add, gcl.Options{}),
		reduction[float32]("length=4105", size+4081, gcl.Add, gcl.Options{}), // Share in any case
		reduction[float32]("reproducible", size, gcl.Add, gcl.Options{Reproducible: true}),
		reduction[float32]("maxBytesPerTile", size, gcl.Add, gcl.Options{MaxBytesPerTile: 1}), // Share in any case
		reduction[float32]("stageFragments", size, gcl.Add, gcl.Options{StageFragments: true}),
		reduction[float32]("implementation=Syncful", size, gcl.Add, gcl.Options{Implementation: gcl.Syncful}),
		reduction[float32]("method=clockwise_ring", size, gcl.Add, gcl.Options{Method: methods.ClockwiseRing}),
		{name: "collective=reduce-scatter", text: []string{fmt.Sprintf("reduce-scatter #1 (ADD float32 x %d, ", size)},
			call: func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.ReduceScatter(ctx, c, f(), gcl.Add)
				return err
			}},
		{name: "collective=all-gather", text: moved("all-gather"), call: func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllGather(ctx, c, f())
			return err
		}},
		{name: "collective=all-to-all", text: moved("all-to-all"), call: func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllToAll(ctx, c, f())
			return err
		}},
		{name: "collective=barrier", text: []string{"barrier #1 ("}, call: func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) }},
		{name: "order", text: []string{fmt.Sprintf("all-reduce #2 (ADD float32 x %d, direct, ", size), "barrier #1 ("},
			call: func(ctx context.Context, c *gcl.Comm) error {
				if err := c.Barrier(ctx); err != nil {
					return err
				}
				return gcl.AllReduceInPlace(ctx, c, f(), gcl.Add)
			}},
		{name: "seq", text: []string{fmt.Sprintf("all-reduce #2 (ADD float32 x %d, direct, ", size)},
			call: func(ctx context.Context, c *gcl.Comm) error {
				refuse(ctx, c)
				return gcl.AllReduceInPlace(ctx, c, f(), gcl.Add)
			}},
	}
	for root := range 2 {
		out = append(out, variant{name: fmt.Sprintf("broadcast/root=%d", root),
			text: []string{fmt.Sprintf("broadcast #1 (float32 x %d, root %d, direct, ", size, root)},
			call: func(ctx context.Context, c *gcl.Comm) error { return gcl.BroadcastInPlace(ctx, c, f(), root) }})
		out = append(out, rootedVariants(size, root, methods.Direct, gcl.Options{})...)
	}
	for _, g := range []commgroup.Group{{Type: commgroup.Consecutive, Size: n / 2},
		{Type: commgroup.Orthogonal, Size: n / 2}} {
		if n >= 4 {
			v := out[0] // the base
			v.name, v.group = fmt.Sprintf("group=%v", g), g
			v.call = func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, grouped(c, g), f(), gcl.Add)
			}
			out = append(out, v)
		}
	}
	return out
}

// Two lengths that divide into 2, 3, 4 and 8 parts: for Gather, and for Share, on the transport of Run.
var memorySizes = []int{24, 4104}

// groupsIn are the groups that an error text names.
func groupsIn(text string) map[string]bool {
	out := map[string]bool{}
	for _, part := range strings.Split(text, ", group ")[1:] {
		name, _, _ := strings.Cut(part, ")")
		out[name] = true
	}
	return out
}

// sameOtherwise reports whether the calls' descriptions are equal.
func sameOtherwise(a, b variant) bool { return slices.Equal(a.text, b.text) && a.group == b.group }

// last is what all call in the end, those too whom the others' call let through: an all-gather of one byte, like no
// variant.
func last(ctx context.Context, c *gcl.Comm) error {
	_, err := gcl.AllGather(ctx, c, []uint8{1})
	return err
}

// in reports whether an error text describes a call of the variant, or the last one.
func (v variant) in(text string) bool {
	for _, part := range append(v.text, "(uint8 x 1, ") {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// confuse has one replica make one call and the others another, and then all the last one, twice: who was let through
// the first by all others, each before it found out, cannot be let through the second. All must get an error that has
// both sides. It returns what is wrong.
func confuse(ctx context.Context, t *testing.T, n, odd int, theirs, ours variant,
	opts ...gcl.CommOption) (wrong []string) {
	errs := failuresIn(ctx, t, n, func(ctx context.Context, c *gcl.Comm) error {
		v := ours
		if c.Replica() == odd {
			v = theirs
		}
		if err := v.call(ctx, c); err != nil {
			return err
		}
		if err := last(ctx, c); err != nil {
			return err
		}
		return last(ctx, c)
	}, opts...)
	for r, err := range errs {
		why := ""
		switch {
		case err == nil:
			why = "want ErrMismatch"
		case !errors.Is(err, gcl.ErrMismatch):
			why = "not ErrMismatch"
		case !theirs.in(err.Error()) || !ours.in(err.Error()) || strings.Count(err.Error(), ", group ") < 2:
			why = "does not describe both"
		case theirs.group != ours.group && len(groupsIn(err.Error())) < 2 &&
			!strings.Contains(err.Error(), "(uint8 x 1, ") && !strings.Contains(err.Error(), "Hybrid phase"):
			why = "names one group"
		case theirs.digested != ours.digested && sameOtherwise(theirs, ours) &&
			!strings.Contains(err.Error(), "MaxBytesPerTile, Strict, StageFragments, Reproducible"):
			why = "hides what differs"
		case strings.Contains(err.Error(), "Digest:"):
			why = "is not for people"
		}
		if why != "" {
			wrong = append(wrong, fmt.Sprintf("n=%d, replica %d in %s, the others in %s: replica %d: %v: %s",
				n, odd, theirs.name, ours.name, r, err, why))
		}
	}
	return wrong
}

// oddOne is the replica that makes the call i while the others make the call j: another one for the next call, and for
// the same two calls the other way round.
func oddOne(n, i, j int) int { return (i + 2*j) % n }

// TestMismatch tries every pair of calls, in bubbles in which the clock runs only when everybody waits: a hang would
// end at once. With -full every replica is the odd one in turn, of every pair in every group. Else one of two pairs is
// tried in groups of 3 and of 8, and the others in groups of 4.
func TestMismatch(t *testing.T) {
	tried := 0
	for k, n := range []int{2, 3, 4, 8} {
		all := variants(n)
		for i, theirs := range all {
			for j, ours := range all {
				if i == j {
					continue
				}
				for odd := range n {
					if underRace && (i*7+j*3+odd)%(4*n) != 0 ||
						!*full && (odd != oddOne(n, i, j) || !underRace && (i+j+k)%2 != 0) {
						continue
					}
					tried++
					var wrong []string
					synctest.Test(t, func(t *testing.T) { wrong = confuse(watched(t), t, n, odd, theirs, ours) })
					for _, w := range wrong {
						t.Error(w)
					}
				}
			}
		}
	}
	t.Logf("%d cases", tried)
}

// TestMismatchOnPeerMemory is the same for what replicas confuse when they work in each other's memory.
func TestMismatchOnPeerMemory(t *testing.T) {
	tried := 0
	for k, size := range memorySizes {
		for _, n := range []int{2, 3, 4, 8} {
			thin := 2 // one of two pairs for Gather, the others for Share
			switch {
			case testing.Short():
				thin = 3
			case n <= 3:
				thin = 1
			}
			all := memoryVariants(n, size)
			for i, theirs := range all {
				for j, ours := range all {
					if i == j {
						continue
					}
					for odd := range n {
						if underRace && (i*7+j*3+odd)%(4*n) != 0 ||
							!*full && (odd != oddOne(n, i, j) || (i+j+k)%thin != 0) {
							continue
						}
						tried++
						var wrong []string
						synctest.Test(t, func(t *testing.T) { wrong = confuse(watched(t), t, n, odd, theirs, ours) })
						for _, w := range wrong {
							t.Errorf("size %d: %s", size, w)
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases", tried)
}

// TestMismatchInRealTime tries some of the same, where those that wait look for the reason while others still run.
func TestMismatchInRealTime(t *testing.T) {
	for _, n := range []int{2, 4} {
		for _, all := range [][]variant{variants(n), memoryVariants(n, memorySizes[0]),
			memoryVariants(n, memorySizes[1])} {
			for i := range all {
				theirs, ours := all[i], all[(i+1)%len(all)]
				for _, w := range confuse(watched(t), t, n, i%n, theirs, ours) {
					t.Error(w)
				}
			}
		}
	}
}

// A broadcast whose root does not wait, and after which nobody calls anything: Close finds what is wrong.
func TestBroadcastUnheard(t *testing.T) {
	for _, x := range []struct {
		name string
		body func(ctx context.Context, c *gcl.Comm) error
	}{
		{"two roots", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.BroadcastInPlace(ctx, c, []int32{7}, c.Rank())
		}},
		{"rank 1 never calls", func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				return nil
			}
			return gcl.BroadcastInPlace(ctx, c, []int32{6}, 0)
		}},
		{"two roots, again and again", func(ctx context.Context, c *gcl.Comm) error {
			for range 100 {
				if err := gcl.BroadcastInPlace(ctx, c, []int32{7}, c.Rank()); err != nil {
					return err
				}
			}
			return errors.New("nobody has noticed")
		}},
		{"nobody takes it", func(ctx context.Context, c *gcl.Comm) error {
			if err := gcl.BroadcastInPlace(ctx, c, []int32{7}, 0); err != nil || c.Rank() == 1 {
				return err
			}
			return gcl.BroadcastInPlace(ctx, c, []int32{8}, 0)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			for range 50 {
				err := gcl.Run(watched(t), 2, x.body)
				var peer *gcl.PeerError
				if !errors.Is(err, gcl.ErrMismatch) && !errors.As(err, &peer) {
					t.Fatalf("%v is neither ErrMismatch nor a PeerError", err)
				}
				text := err.Error()
				switch {
				case errors.As(err, &peer) && strings.Contains(text, "has left"):
				case strings.Contains(text, "roots differ: replica ") && strings.Contains(text, "root 0") &&
					strings.Contains(text, "root 1"):
				case strings.Contains(text, "replica 1 leaves without broadcast #") &&
					strings.Contains(text, " (int32 x 1, root 0, direct, "):
				default:
					t.Fatal(err)
				}
			}
		})
	}
}

// TestMismatchWritesNothing: on peer memory calls are compared before anything is read or written, whoever finds out. A
// broadcast of few bytes is compared by each who takes it.
func TestMismatchWritesNothing(t *testing.T) {
	const n, odd = 4, 2
	for _, size := range memorySizes {
		for _, m := range []methods.Method{methods.Auto, methods.ClockwiseRing, methods.RecursiveDoubling} {
			for _, form := range writing(n, size) {
				t.Run(fmt.Sprintf("%s/method=%v/size=%d", form.name, m, size), func(t *testing.T) {
					var dsts, srcs [n][]float32
					for r := range n {
						dsts[r], srcs[r] = make([]float32, form.dst), make([]float32, form.src)
						for i := range dsts[r] {
							dsts[r][i] = float32(-1 - r)
						}
						for i := range srcs[r] {
							srcs[r][i] = float32(i + r)
						}
					}
					errs := untold(t, n, func(ctx context.Context, c *gcl.Comm) error {
						o := gcl.Options{Method: m, Implementation: gcl.Syncful, Reproducible: c.Rank() == odd}
						return form.call(ctx, withOptions(c, o), dsts[c.Rank()], srcs[c.Rank()])
					})
					// Where nobody waits for everybody, those who agree with the root need not notice.
					early := m == methods.Auto && size == memorySizes[0] && strings.HasPrefix(form.name, "Broadcast")
					for r, err := range errs {
						if early && r != odd {
							continue
						}
						if !errors.Is(err, gcl.ErrMismatch) {
							t.Errorf("replica %d: %v, want ErrMismatch", r, err)
						}
						for i, v := range dsts[r] {
							if v != float32(-1-r) {
								t.Fatalf("replica %d: element %d of the destination is written: %v", r, i, v)
							}
						}
						for i, v := range srcs[r] {
							if v != float32(i+r) {
								t.Fatalf("replica %d: element %d of the input is written: %v", r, i, v)
							}
						}
					}
				})
			}
		}
	}
}

// writer is a form of a collective, with the lengths of its destination and its input.
type writer struct {
	name     string
	dst, src int
	call     func(ctx context.Context, c *gcl.Comm, dst, src []float32) error
}

// writing lists the To and InPlace forms. In place the input is the destination.
func writing(n, size int) []writer {
	return []writer{
		{"AllReduceTo", size, size, func(ctx context.Context, c *gcl.Comm, dst, src []float32) error {
			return gcl.AllReduceTo(ctx, c, dst, src, gcl.Add)
		}},
		{"AllReduceInPlace", 0, size, func(ctx context.Context, c *gcl.Comm, _, data []float32) error {
			return gcl.AllReduceInPlace(ctx, c, data, gcl.Add)
		}},
		{"ReduceScatterTo", size / n, size, func(ctx context.Context, c *gcl.Comm, dst, src []float32) error {
			return gcl.ReduceScatterTo(ctx, c, dst, src, gcl.Add)
		}},
		{"AllGatherTo", size * n, size, func(ctx context.Context, c *gcl.Comm, dst, src []float32) error {
			return gcl.AllGatherTo(ctx, c, dst, src)
		}},
		{"AllToAllTo", size, size, func(ctx context.Context, c *gcl.Comm, dst, src []float32) error {
			return gcl.AllToAllTo(ctx, c, dst, src)
		}},
		{"AllToAllInPlace", 0, size, func(ctx context.Context, c *gcl.Comm, _, data []float32) error {
			return gcl.AllToAllInPlace(ctx, c, data)
		}},
		{"BroadcastTo", size, size, func(ctx context.Context, c *gcl.Comm, dst, src []float32) error {
			return gcl.BroadcastTo(ctx, c, dst, src, 1)
		}},
		{"BroadcastInPlace", 0, size, func(ctx context.Context, c *gcl.Comm, _, data []float32) error {
			return gcl.BroadcastInPlace(ctx, c, data, 1)
		}},
	}
}
