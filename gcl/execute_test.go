package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/tcp"
)

// built is the schedule of a Builder.
func built(b *schedule.Builder) *schedule.Schedule { return must(b.Build()) }

// scanOf is a scan by doubling. mirrored: by a chain from rank to rank.
func scanOf(ranks, chunks int, chained bool) *schedule.Schedule {
	b := schedule.NewBuilderFor(schedule.Scan(ranks, chunks))
	for t, d := 0, 1; d < ranks; t, d = t+1, 2*d {
		for rank := range ranks - d {
			if !chained {
				b.Fold(t, rank, rank+d, 0, chunks)
			}
		}
	}
	for rank := range ranks - 1 {
		for chunk := range chunks {
			if chained {
				b.Fold(rank+chunk, rank, rank+1, chunk, 1)
			}
		}
	}
	return built(b)
}

// haloOf is an exchange of two blocks with the neighbours on a ring, the left one first.
func haloOf(ranks int) *schedule.Schedule {
	var next [][]int
	for rank := range ranks {
		next = append(next, []int{(rank + ranks - 1) % ranks, (rank + 1) % ranks})
	}
	own := must(schedule.Exchange(next, next))
	b := schedule.NewBuilderFor(own)
	for rank, chunks := range own.Inputs {
		for i, chunk := range chunks {
			if next[rank][i] != rank {
				b.Copy(0, rank, next[rank][i], chunk, 1)
			}
		}
	}
	return built(b)
}

// expertsOf is an all-to-all in which every rank has other numbers of rows for each, some none, in steps.
func expertsOf(ranks int) *schedule.Schedule {
	sizes := make([][]int, ranks)
	for from := range sizes {
		for to := range ranks {
			sizes[from] = append(sizes[from], (3*from+2*to+1)%4)
		}
		sizes[from][from]++ // so that nobody holds nothing
	}
	own := schedule.Experts(sizes)
	b := schedule.NewBuilderFor(own)
	chunk := 0
	for from := range ranks {
		for to, size := range sizes[from] {
			if size > 0 {
				if from != to {
					b.Copy((to-from+ranks)%ranks-1, from, to, chunk, 1)
				}
				chunk++
			}
		}
	}
	return built(b)
}

// relayOf gives the last rank both chunks of the first by way of the others, which hold them in scratch: in the other
// order than the first rank's.
func relayOf(ranks int) *schedule.Schedule {
	own := &schedule.CustomContract{Name: "relay", Inputs: make([][]int, ranks), Outputs: make([][]int, ranks),
		Sizes: []int{2, 1}}
	for rank := range ranks { // a chunk of no use, so that all know how long one is
		own.Inputs[rank] = append(own.Inputs[rank], 2+rank)
		own.Sizes = append(own.Sizes, 1)
	}
	own.Inputs[0] = []int{1, 2, 0}
	own.Outputs[ranks-1] = []int{0, 1}
	b := schedule.NewBuilderFor(own)
	for rank := range ranks - 1 {
		b.Copy(rank, rank, rank+1, 0, 1)
		b.Copy(rank, rank, rank+1, 1, 1)
	}
	return built(b)
}

// stridesOf combines what all ranks hold of chunks 0 and 2 at the last rank, in messages of chunks that lie apart, and
// gives it chunk 3 of rank 0 as it is.
func stridesOf(ranks int) *schedule.Schedule {
	own := &schedule.CustomContract{Name: "strides", Combines: true, Inputs: make([][]int, ranks),
		Outputs: make([][]int, ranks), Wants: make([][][]int, ranks), Sizes: []int{2, 3, 1, 4}}
	all := make([]int, ranks)
	for rank := range ranks {
		all[rank] = rank
		own.Inputs[rank] = []int{2, 1, 0, 3}
	}
	own.Outputs[ranks-1], own.Wants[ranks-1] = []int{3, 0, 2}, [][]int{{0}, all, all}
	b := schedule.NewBuilderFor(own)
	for rank := range ranks - 1 {
		b.FoldStrided(rank, rank, rank+1, 0, 2, 1, 2)
	}
	b.Copy(0, 0, ranks-1, 3, 1)
	return built(b)
}

// exclusiveText is an exclusive scan of three ranks, which a Builder cannot make.
const exclusiveText = `custom exclusive-scan, 3 ranks, 1 chunk, 2 rounds, combines
round | rank 0 | rank 1      | rank 2
------+--------+-------------+---------
   in | 0      | 0           | 0
  out |        | 0 of 0      | 0 of 0-1
    0 | I0>1   | S1[0]<0     |
      | then   |             |
      |        | S0[0]=I0    |
      |        | S0[0]+S1[0] |
      |        | O0=S1[0]    |
    1 |        | S0[0]>2     | O0<1
`

// exclusiveOf reads it.
func exclusiveOf() *schedule.Schedule {
	text := strings.Replace(exclusiveText, "then   |            ", "       | then       ", 1)
	return must(schedule.Parse([]byte(text)))
}

// ownSchedules are schedules of contracts of a program's own, for so many ranks.
func ownSchedules(ranks int) []*schedule.Schedule {
	out := []*schedule.Schedule{scanOf(ranks, 1, false), scanOf(ranks, 3, false), scanOf(ranks, 2, true)}
	if ranks > 1 {
		out = append(out, haloOf(ranks), expertsOf(ranks), relayOf(ranks), stridesOf(ranks))
	}
	if ranks == 3 {
		out = append(out, exclusiveOf())
	}
	return out
}

// ownCase is what a schedule must do with chunks of some length: the inputs and outputs of all ranks.
type ownCase[T tensor.Element] struct {
	s         *schedule.Schedule
	op        gcl.Operator
	ins, outs [][]T
}

// newOwnCase finds the outputs by the contract alone: all contributions to a chunk are gathered, and folded in the
// order of the ranks.
func newOwnCase[T tensor.Element](s *schedule.Schedule, op gcl.Operator, unit int) ownCase[T] {
	own := s.Custom
	starts := make([]int, s.Chunks+1)
	for f := range s.Chunks {
		starts[f+1] = starts[f] + unit*own.Size(f)
	}
	data := inputs[T](op, s.Size, starts[s.Chunks])
	x := ownCase[T]{s: s, op: op, ins: make([][]T, s.Size), outs: make([][]T, s.Size)}
	for rank := range s.Size {
		for _, f := range own.Inputs[rank] {
			x.ins[rank] = append(x.ins[rank], data[rank][starts[f]:starts[f+1]]...)
		}
		for place, f := range own.Outputs[rank] {
			var from [][]T
			for _, r := range own.Contributors(rank, place) {
				from = append(from, data[r][starts[f]:starts[f+1]])
			}
			if !own.Combines {
				x.outs[rank] = append(x.outs[rank], from[0]...)
			} else if unit > 0 {
				if len(from) == 1 && op.Squares() { // which Reduce of one is not
					from = append(from, make([]T, len(from[0])))
				}
				x.outs[rank] = append(x.outs[rank], oracle.Reduce(named(op), from)...)
			}
		}
	}
	return x
}

// try tries the forms of Execute.
func (x ownCase[T]) try(ctx context.Context, c *gcl.Comm) error {
	rank := c.Rank()
	in, want := x.ins[rank], x.outs[rank]
	src, dst := slices.Clone(in), make([]T, len(want))
	what := fmt.Sprintf("%s, %v, %d elements", strings.SplitN(x.s.Shape(), "\n", 2)[0], x.op, len(in))
	if err := gcl.Execute(ctx, c, x.s, dst, src, x.op); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err := errors.Join(check(what, dst, want), check("its input", src, in))
	if x.s.NeedsApart() {
		return err
	}
	if err := gcl.Execute(ctx, c, x.s, src[:len(want)], src, x.op); err != nil {
		return fmt.Errorf("%s in place: %w", what, err)
	}
	a, b := flat(slices.Clone(in)), flat(make([]T, len(want)))
	if err := c.Execute(ctx, x.s, b, a, x.op); err != nil {
		return fmt.Errorf("%s on tensors: %w", what, err)
	}
	return errors.Join(err, check(what+" in place", src[:len(want)], want),
		check(what+" on tensors", must(tensor.Of[T](b)), want))
}

// tryOwn tries all schedules with several lengths.
func tryOwn(ctx context.Context, c *gcl.Comm, all []*schedule.Schedule, units ...int) error {
	for _, s := range all {
		op := gcl.Operator(0)
		for _, unit := range units {
			if s.Custom.Combines {
				op = []gcl.Operator{gcl.Add, gcl.Max, gcl.SquareAdd}[unit%3]
			}
			if err := newOwnCase[int64](s, op, unit).try(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestExecuteOwn: schedules of contracts of a program's own give what these say, by messages and on peer memory, with
// barriers, in segments, with inputs that are staged, in groups.
func TestExecuteOwn(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 5; n++ {
		all := ownSchedules(n)
		for _, memory := range []bool{true, false} {
			endpoints, _ := witnesses(t, n, memory)
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				for _, o := range []gcl.Options{
					{}, {Implementation: gcl.Syncful}, {Implementation: gcl.Syncful, Method: methods.ClockwiseRing},
					{MaxBytesPerTile: 7, StageFragments: true}, {Implementation: gcl.Hybrid},
					{Implementation: gcl.Syncful, MaxBytesPerTile: 7, StageFragments: true},
				} {
					c := withOptions(c, o)
					if err := tryOwn(ctx, c, all, 0, 1, 7, 100); err != nil {
						return fmt.Errorf("%+v: %w", o, err)
					}
				}
				return nil
			}, gcl.WithEndpoints(endpoints))
		}
	}
	all := ownSchedules(3)
	replicas(t, 6, func(ctx context.Context, c *gcl.Comm) error {
		return tryOwn(ctx, grouped(c, commgroup.Group{Type: commgroup.Orthogonal, Size: 3}), all, 4)
	})
}

// TestExecuteTypes: 16-bit floats are combined as options say, and Mean divides by the contributors of each chunk.
func TestExecuteTypes(t *testing.T) {
	t.Parallel()
	chain, doubling := scanOf(5, 2, true), scanOf(5, 2, false)
	replicas(t, 5, func(ctx context.Context, c *gcl.Comm) error {
		for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
			for _, ordered := range []bool{false, true} {
				c := withOptions(c, gcl.Options{Implementation: i, Reproducible: ordered})
				for _, op := range []gcl.Operator{gcl.Mean, gcl.SquareAdd, gcl.Min} {
					err := errors.Join(newOwnCase[float32](chain, op, 9).try(ctx, c),
						newOwnCase[tensor.Float16](chain, op, 9).try(ctx, c),
						newOwnCase[tensor.BFloat16](chain, op, 9).try(ctx, c))
					if err != nil {
						return fmt.Errorf("%v, %v: %w", i, ordered, err)
					}
				}
				err := gcl.Execute(ctx, c, doubling, make([]float32, 2), make([]float32, 2), gcl.Add)
				if ordered != errors.Is(err, errors.ErrUnsupported) ||
					ordered && !contains(err, "in the order of the ranks") {
					return fmt.Errorf("ordered %v: %w", ordered, err)
				}
			}
		}
		return nil
	})
}

// TestExecuteBuiltIn: schedules of built-in collectives give what these do, by any method.
func TestExecuteBuiltIn(t *testing.T) {
	t.Parallel()
	const n = 3
	var all []*schedule.Schedule
	for _, m := range []methods.Method{methods.Direct, methods.RecursiveDoubling} {
		for _, c := range schedule.Collectives() {
			for _, root := range []int{0, 2} {
				if root == 0 || c.Contract().Rooted() {
					all = append(all, must(methods.Build(methods.Spec{Method: m, Collective: c, Size: n, Root: root})))
				}
			}
		}
	}
	for _, memory := range []bool{true, false} {
		endpoints, _ := witnesses(t, n, memory)
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			for _, o := range []gcl.Options{{}, {Implementation: gcl.Syncful},
				{StageFragments: true, MaxBytesPerTile: 5}} {
				c := withOptions(c, o)
				for _, s := range all {
					contract := s.Collective.Contract()
					op := gcl.Operator(0)
					if contract.Combines {
						op = gcl.SquareAdd
					}
					for _, elements := range []int{0, 3, 33} { // in the larger buffer
						in := inputs[int64](gcl.SquareAdd, n, contract.Input.Elements(elements, n))
						if contract.Deals() {
							in = inputs[int64](gcl.SquareAdd, n, elements)
						}
						x := oracle.Call{Collective: s.Collective, Operator: named(op), Root: s.Root}
						want := oracle.Outputs(x, in)
						dst := make([]int64, len(want[c.Rank()]))
						if err := gcl.Execute(ctx, c, s, dst, in[c.Rank()], op); err != nil {
							return fmt.Errorf("%v: %w", s.Collective, err)
						}
						if err := check(s.Collective.String(), dst, want[c.Rank()]); err != nil {
							return err
						}
					}
				}
			}
			return nil
		}, gcl.WithEndpoints(endpoints))
	}
}

// TestExecuteAlone: in a group of one a built-in collective gives the rank's own data by any operator.
func TestExecuteAlone(t *testing.T) {
	s := must(methods.Build(methods.Spec{Method: methods.Direct, Collective: schedule.AllReduce, Size: 1}))
	replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		dst := make([]int64, 2)
		err := gcl.Execute(ctx, c, s, dst, []int64{3, 5}, gcl.SquareAdd)
		return errors.Join(err, check("alone", dst, []int64{3, 5}))
	})
}

// TestExecuteErrors: a call that cannot be is refused before anything is sent, and names both sides.
func TestExecuteErrors(t *testing.T) {
	t.Parallel()
	scan, halo, reduce := scanOf(2, 2, false), haloOf(2), must(methods.Build(methods.Spec{Method: methods.Direct,
		Collective: schedule.AllReduce, Size: 2}))
	wrong := scanOf(2, 2, false)
	wrong.Programs[1][0].Moves[0] = schedule.Step{Verb: schedule.Recv, Dst: schedule.Out(0, 2)}
	again := must(schedule.Parse([]byte("custom, 2 ranks, 1 chunk, 2 rounds, again, combines\nround|rank 0|rank 1\n---\n" +
		"in|0|0\nout|0|0\n0|I0>1|O0=I0+<0\n1|O0<1|O0>0\n|then|\n")))
	twice := must(schedule.Parse([]byte("custom, 2 ranks, 1 chunk, 2 rounds, again, combines\nround|rank 0|rank 1\n---\n" +
		"in|0|0\nout|0 of 0|0 of 0-1\n0|I0>1|O0=I0+<0\n|then|\n|O0=I0|\n1|I0>1|O0+<0\n")))
	orders := schedule.NewBuilder(schedule.AllReduce, 2, 0, 1) // one that is right, to be left alone
	orders.Fold(0, 0, 1, 0, 1)
	orders.Copy(1, 1, 0, 0, 1)
	vast := must(schedule.Parse([]byte("custom, 2 ranks, 2 chunks, 1 round\nsizes 1 2000000000\nround|rank 0|rank 1\n---\n" +
		"in|0|\nout||0\n0|I0>1|O0<0\n"))) // chunk 1 is nobody's
	empty := &schedule.Schedule{Collective: schedule.Custom, Size: 2, Chunks: 1,
		Custom: &schedule.CustomContract{Inputs: make([][]int, 2), Outputs: make([][]int, 2)}}
	barrier := must(methods.Build(methods.Spec{Method: methods.SendToAll, Collective: schedule.Barrier, Size: 2}))
	f := func(n int) []float32 { return make([]float32, n) }
	both := f(8)
	var none context.Context
	for _, x := range []struct {
		s        *schedule.Schedule
		dst, src []float32
		op       gcl.Operator
		want     string
	}{
		{nil, f(4), f(4), gcl.Add, "nil schedule"},
		{scanOf(3, 2, false), f(4), f(4), gcl.Add, "a schedule of 3 ranks, and the group has 2"},
		{scan, f(5), f(5), gcl.Add, "the input has 5 elements and the destination 5, want a multiple of 2 in the input"},
		{scan, f(6), f(4), gcl.Add, "the destination has 6 elements, want 4 for 4 of input"},
		{scan, both[1:5], both[:4], gcl.Add, "the destination overlaps the input; it must lie apart or be the input itself"},
		{halo, both[:4], both[:4], 0, "the destination overlaps the input; it must lie apart, since by the schedule the two " +
			"hold different chunks"},
		{halo, f(4), f(4), gcl.Max, "the schedule combines nothing: its operator is MAX, want 0"},
		{scan, f(4), f(4), gcl.Local, "the operator LOCAL sends nothing"},
		{scan, f(4), f(4), gcl.LogicalOr, "operator LOGICAL_OR takes bool, not float32"},
		{scan, f(4), f(4), 99, "99"},
		{wrong, f(4), f(4), gcl.Add, "the schedule does not prove: schedule: rank 1 ends with chunk 0 of ranks [0] as chunk 0 " +
			"of the output, want chunk 0 of ranks [0 1]"},
		{twice, f(4), f(4), gcl.Add, "a contribution may count again by the schedule, which is wrong for the operator ADD: want " +
			"MIN, MAX, LOGICAL_AND, LOGICAL_OR, or one of NewOperator"},
		{empty, nil, nil, 0, "holds no chunk, so that its buffers do not say how long one is"},
		{reduce, f(4), f(5), gcl.Add, "the destination has 4 elements, want 5"},
		{barrier, nil, nil, 0, "a barrier has no operands: want Comm.Barrier"},
		{&schedule.Schedule{Collective: schedule.Custom, Size: 2, Chunks: 1}, f(4), f(4), 0, "no contract"},
		{&schedule.Schedule{Collective: 77, Size: 2, Chunks: 1}, f(4), f(4), 0, "unknown collective 77"},
		{&schedule.Schedule{Collective: schedule.AllReduce, Root: 1, Size: 2, Chunks: 1}, f(4), f(4), 0,
			"an all-reduce has no root: its root is 1, want 0"},
	} {
		for r, err := range failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			err := gcl.Execute(ctx, c, x.s, x.dst, x.src, x.op)
			if c.Rank() == 1 && err != nil { // the communicator is as it was
				if _, again := gcl.AllReduce(ctx, c, []int32{1}, gcl.Add); again != nil {
					return again
				}
				return err
			}
			if _, again := gcl.AllReduce(ctx, c, []int32{1}, gcl.Add); again != nil {
				return again
			}
			return err
		}) {
			if err == nil || !contains(err, x.want) || errors.Is(err, gcl.ErrMismatch) {
				t.Errorf("replica %d: %v\nwant %s", r, err, x.want)
			}
		}
	}
	for r, err := range failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		data := [][]float32{f(1 << 14), nil}
		return gcl.Execute(ctx, c, vast, data[1-c.Rank()], data[c.Rank()], 0)
	}) {
		if err == nil || !contains(err, "16384 elements of float32 for each of 2000000001 sizes of chunks take more than") {
			t.Errorf("replica %d: %v", r, err)
		}
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		for _, s := range []*schedule.Schedule{again, twice} {
			if err := gcl.Execute(ctx, c, s, f(1), f(1), gcl.Max); err != nil {
				return err
			}
		}
		if err := gcl.Execute(none, c, scan, f(2), f(2), gcl.Add); err == nil || !contains(err, "nil context") {
			return fmt.Errorf("nil context: %w", err)
		}
		a, b := flat(f(2)), flat(make([]int32, 2))
		for want, err := range map[string]error{
			"the input and the destination are nil":                  c.Execute(ctx, scan, nil, nil, gcl.Add),
			"the destination has dtype int32, and the input float32": c.Execute(ctx, scan, b, a, gcl.Add),
			"the input: it is the zero Tensor":                       c.Execute(ctx, scan, a, &tensor.Tensor{}, gcl.Add),
			"the destination: it is the zero Tensor":                 c.Execute(ctx, scan, &tensor.Tensor{}, a, gcl.Add),
		} {
			if err == nil || !contains(err, want) {
				return fmt.Errorf("%w, want %s", err, want)
			}
		}
		return gcl.Execute(ctx, c, built(orders), f(3), f(3), gcl.Add)
	})
	if err := gcl.Execute(t.Context(), nil, scan, f(2), f(2), gcl.Add); err == nil {
		t.Error("a nil Comm executes")
	}
}

// TestExecuteOrders: a schedule by which ranks combine in different orders is refused.
func TestExecuteOrders(t *testing.T) {
	t.Parallel()
	b := schedule.NewBuilder(schedule.AllReduce, 3, 0, 1)
	for rank := range 3 {
		b.Fold(0, (rank+1)%3, rank, 0, 1)
		b.Fold(0, (rank+2)%3, rank, 0, 1)
	}
	s := built(b)
	for _, err := range failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.Execute(ctx, c, s, make([]float32, 1), make([]float32, 1), gcl.Add)
	}) {
		if err == nil || !contains(err, "ranks combine an element in different orders") {
			t.Error(err)
		}
	}
}

// TestExecuteMismatch: members that differ in the schedule, the length, the operator or the call get ErrMismatch, all
// of them, with both sides.
func TestExecuteMismatch(t *testing.T) {
	t.Parallel()
	const n = 4
	chain, doubling, halo := scanOf(n, 2, true), scanOf(n, 2, false), haloOf(n)
	call := func(s *schedule.Schedule, n int, op gcl.Operator) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			return gcl.Execute(ctx, c, s, make([]int32, n), make([]int32, n), op)
		}
	}
	for _, x := range []struct {
		name, want   string
		ours, theirs func(context.Context, *gcl.Comm) error
	}{
		{"schedule", "schedules or options differ between", call(chain, 8, gcl.Add), call(doubling, 8, gcl.Add)},
		{"chunks", "schedules or options differ between", call(chain, 8, gcl.Add), call(scanOf(n, 4, true), 8, gcl.Add)},
		{"contract", "schedules or options differ between", call(halo, 8, 0), call(chain, 8, gcl.Add)},
		{"length", "execute #1: lengths differ: replica ", call(doubling, 8, gcl.Add), call(doubling, 10, gcl.Add)},
		{"operator", "execute #1 (MAX int32 x 4, by its schedule, ", call(doubling, 8, gcl.Max), call(doubling, 8, gcl.Min)},
		{"collective", "all-reduce #1 ", call(doubling, 8, gcl.Add), func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllReduce(ctx, c, make([]int32, 8), gcl.Add)
			return err
		}},
	} {
		for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
			var mu sync.Mutex // guards told
			told := map[int]bool{}
			err := gcl.Run(watched(t), n, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, gcl.Options{Implementation: i})
				mine := x.ours
				if c.Rank() == 2 {
					mine = x.theirs
				}
				err := mine(ctx, c)
				if err == nil { // it need not wait for the others: then the next call knows
					err = c.Barrier(ctx)
				}
				if errors.Is(err, gcl.ErrMismatch) {
					mu.Lock()
					told[c.Rank()] = true
					mu.Unlock()
				}
				return err
			})
			if !errors.Is(err, gcl.ErrMismatch) || !contains(err, x.want) || len(told) != n {
				t.Errorf("%s, %v: told %v: %v\nwant %s", x.name, i, told, err, x.want)
			}
		}
	}
}

// TestExecuteTraced: a Trace is told of rounds and segments, and the flight recorder of the call.
func TestExecuteTraced(t *testing.T) {
	t.Parallel()
	s := scanOf(4, 1, false)
	var mu sync.Mutex // guards lines
	lines := map[string]bool{}
	tell := func(format string, a ...any) {
		mu.Lock()
		defer mu.Unlock()
		lines[fmt.Sprintf(format, a...)] = true
	}
	trace := &gcl.Trace{
		CollectiveStart: func(c gcl.TraceCall) {
			tell("%v of %v %v x %d, %d bytes", c, c.Operator, c.DType, c.Elements, c.Bytes)
		},
		MethodChosen: func(c gcl.TraceCall, m gcl.TraceMethod) {
			tell("%v, %v, %v, %d rounds", c.Method, c.Implementation, c.Path, m.Rounds)
		},
		Segment: func(c gcl.TraceCall, round int, s gcl.TraceSegment) {
			if c.Rank == 3 {
				tell("round %d: %v %d, %d bytes, %v", round, s.Kind, s.Peer, s.Bytes, c.Path)
			}
		},
		CollectiveEnd: func(c gcl.TraceCall, err error) {
			if err != nil {
				tell("%v: %v", c, err)
			}
		},
	}
	dump := ""
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
			c := withOptions(c.Named("prefix"), gcl.Options{Implementation: i, Trace: trace, MaxBytesPerTile: 1})
			if err := gcl.Execute(ctx, c, s, make([]int32, 8), make([]int32, 8), gcl.Add); err != nil {
				return err
			}
		}
		if err := c.Barrier(ctx); err != nil || c.Rank() > 0 {
			return err
		}
		dump = c.Dump()
		return nil
	})
	for _, want := range []string{
		`execute #1 "prefix" of ADD int32 x 8, 32 bytes`, `execute #2 "prefix" of ADD int32 x 8, 32 bytes`,
		"auto, Syncless, messages, 2 rounds", "auto, Syncful, peer memory in rounds, 2 rounds",
	} {
		if !lines[want] {
			t.Errorf("not told: %s, but %v", want, lines)
		}
	}
	if !strings.Contains(dump, `execute #2 "prefix" (int32 x 8, group {0, 1, 2, 3}), by its schedule, peer memory in rounds`) {
		t.Errorf("the flight recorder has\n%s", dump)
	}
	segments := 0
	for line := range lines {
		if strings.HasPrefix(line, "round ") {
			segments++
		}
	}
	if segments < 4 {
		t.Errorf("%d segments: %v", segments, lines)
	}
}

// TestExecuteManySchedules: schedules beyond those that are kept are proved again, and the same at another address is
// another.
func TestExecuteManySchedules(t *testing.T) {
	t.Parallel()
	var all []*schedule.Schedule
	for chunks := range 70 {
		all = append(all, scanOf(2, 1+chunks, false))
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		for range 2 {
			for i, s := range all {
				if c.Rank() == 1 {
					s = scanOf(2, 1+i, false)
				}
				if err := newOwnCase[int64](s, gcl.Add, 1).try(ctx, c); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestExecuteOnSockets: over unix sockets and TCP, as in one process.
func TestExecuteOnSockets(t *testing.T) {
	onSockets(t, func(t *testing.T, network tcp.Network) {
		all := ownSchedules(3)
		replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			return errors.Join(tryOwn(ctx, c, all, 1, 100),
				tryOwn(ctx, withOptions(c, gcl.Options{Implementation: gcl.Syncful}), all, 5))
		}, sockets(t, network, 3))
	})
}

// TestExecuteLate: replicas that are late get the right results, and a send that fails is an error on all.
func TestExecuteLate(t *testing.T) {
	all := ownSchedules(3)
	synctest.Test(t, func(t *testing.T) {
		replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			if err := tryOwn(ctx, c, all, 3); err != nil {
				return err
			}
			return c.Barrier(ctx)
		}, broken(t, 3, 1, faulty.Slow(1, 1e6)))
	})
	for at := range 3 {
		for r, err := range failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			for {
				if err := tryOwn(ctx, c, all, 3); err != nil {
					return err
				}
			}
		}, broken(t, 3, 1, faulty.FailSend(1, 1+at))) {
			if !errors.Is(err, faulty.ErrInjected) || !contains(err, "execute #") {
				t.Errorf("at %d, replica %d: %v", at, r, err)
			}
		}
	}
}

// TestExecuteNotShared: where one member's buffers cannot be laid open, a schedule goes by messages on all, under the
// number that the call had.
func TestExecuteNotShared(t *testing.T) {
	t.Parallel()
	all := ownSchedules(3)
	for k := range 3 {
		endpoints, err := faulty.WrapMemory(must(inproc.New(3)), 0, faulty.Hide(k, k))
		if err != nil {
			t.Fatal(err)
		}
		var w went
		replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			o := gcl.Options{Implementation: gcl.Syncful, Trace: w.trace()}
			return tryOwn(ctx, withOptions(c, o), all, 7)
		}, gcl.WithEndpoints(endpoints))
		want := []string{"custom: auto, messages", "custom: auto, peer memory in rounds"}
		if !slices.Equal(w.list(), want) {
			t.Errorf("went by %v, want %v", w.list(), want)
		}
	}
}
