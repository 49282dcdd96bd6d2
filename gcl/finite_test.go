package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport/tcp"
)

// finiteLength is how long the data of reductions is: as the inputs of stridesOf, with chunks of one element.
const finiteLength = 10

// inTwo cuts data in two, for calls on several tensors.
func inTwo[T tensor.Element](data []T) [][]T { return [][]T{data[:3], data[3:]} }

// finiteCall is a call on data of a replica. what is the name of one of its tensors, or "" where it has one.
type finiteCall struct {
	what string
	call func(ctx context.Context, c *gcl.Comm, data []float32) error
}

// finiteCalls are calls that reduce, in all forms.
func finiteCalls(ranks int) map[string]finiteCall {
	rest := func(n, ranks int) []float32 { return make([]float32, chunks.PerRank(n, ranks)) }
	mapping := chunks.Mapping{3, finiteLength - 3}
	direct := must(methods.Build(methods.Spec{Method: methods.Direct, Collective: schedule.AllReduce, Size: ranks}))
	strides := stridesOf(ranks)
	inPlace := func(ctx context.Context, c *gcl.Comm, data []float32) error {
		return gcl.AllReduceInPlace(ctx, c, data, gcl.Add)
	}
	return map[string]finiteCall{
		"AllReduceInPlace": {"", inPlace},
		"AllReduceTo": {"", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return gcl.AllReduceTo(ctx, c, make([]float32, len(data)), data, gcl.Max)
		}},
		"ReduceScatterTo": {"", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return gcl.ReduceScatterTo(ctx, c, rest(len(data), c.Size()), data, gcl.Mean)
		}},
		"ReduceTo": {"", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return gcl.ReduceTo(ctx, c, make([]float32, len(data)), data, gcl.Add, 0)
		}},
		"ReduceScatterV": {"", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			counts := make([]int, c.Size())
			counts[0] = len(data)
			_, err := gcl.ReduceScatterV(ctx, c, data, counts, gcl.Add)
			return err
		}},
		"AllReduceManyInPlace": {"tensor", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return gcl.AllReduceManyInPlace(ctx, c, inTwo(data), gcl.Add)
		}},
		"AllReduceTensorsInPlace": {"tensor", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return gcl.AllReduceTensorsInPlace(ctx, c, flats(inTwo(data)), gcl.Add)
		}},
		"ReduceScatterMapped": {"IPU", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			_, err := gcl.ReduceScatterMapped(ctx, c, data, mapping, gcl.Add)
			return err
		}},
		"Do": {"", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return c.Do(ctx, schedule.AllReduce, flat(data), flat(data), gcl.Add, 0)
		}},
		"Batch of one": {"", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return batchInPlace(ctx, c, schedule.AllReduce, [][]float32{data}, gcl.Add, 0)
		}},
		"Batch": {"operand", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return batchInPlace(ctx, c, schedule.Reduce, inTwo(data), gcl.Add, 0)
		}},
		"Execute": {"", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return gcl.Execute(ctx, c, direct, data, data, gcl.Add)
		}},
		"Execute of a custom contract": {"", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			out := make([]float32, len(strides.Custom.Outputs[c.Rank()])/3*7)
			return gcl.Execute(ctx, c, strides, out, data, gcl.Add)
		}},
		"Start": {"", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error { return inPlace(ctx, c, data) }).Wait()
		}},
	}
}

// checked is the option CheckFinite for Run.
func checked() gcl.CommOption { return gcl.WithOptions(gcl.Options{CheckFinite: true}) }

// foundBy fails unless an error has a finding of a replica, also where another replica has found it.
func foundBy(t *testing.T, err error, want gcl.NotFiniteError) {
	t.Helper()
	var found *gcl.NotFiniteError
	if !errors.As(err, &found) || !errors.Is(err, gcl.ErrAborted) || found.Replica != want.Replica ||
		found.Result != want.Result || found.Tensor != want.Tensor || found.Element != want.Element ||
		found.DType != want.DType || fmt.Sprint(found.Value) != fmt.Sprint(want.Value) {
		t.Errorf("%v, want %+v in an ErrAborted", err, want)
	}
}

// TestCheckFinite: each form finds what is not finite before it sends anything, whose inputs are as they were. All
// replicas have the error, and no call after it goes on.
func TestCheckFinite(t *testing.T) {
	const bad = 5
	for _, n := range []int{2, 3, 4} {
		for form, x := range finiteCalls(n) {
			t.Run(fmt.Sprintf("n=%d/form=%s", n, form), func(t *testing.T) {
				errs := failures(t, n, func(ctx context.Context, c *gcl.Comm) error {
					c = c.Named("grads")
					data := make([]float32, finiteLength)
					if err := x.call(ctx, c, data); err != nil {
						return fmt.Errorf("finite data: %w", err)
					}
					if c.Replica() == 1 {
						data[bad] = float32(math.Inf(-1))
						data[bad+1] = float32(math.NaN())
					}
					err := x.call(ctx, c, data)
					if err == nil { // of a member that did not wait
						err = c.Barrier(ctx)
					}
					if after := c.Err(); !errors.Is(after, gcl.ErrAborted) {
						t.Errorf("the communicator is not ended: %v", after)
					}
					if c.Replica() == 1 && data[bad] != float32(math.Inf(-1)) {
						t.Error("the data has changed")
					}
					return err
				}, checked())
				want := gcl.NotFiniteError{Replica: 1, Element: bad, DType: tensor.F32, Value: math.Inf(-1)}
				text := "element 5 of the input, float32, is -Inf, not a finite number"
				if x.what != "" {
					want.Tensor, want.Element = 1, bad-3
					text = x.what + " 1: element 2 of the input, float32, is -Inf, not a finite number"
				}
				for r, err := range errs {
					foundBy(t, err, want)
					if !contains(err, text) || !contains(err, `"grads"`) || !contains(err, "replica 1") {
						t.Errorf("replica %d: %v, want %s", r, err, text)
					}
				}
			})
		}
	}
}

// TestCheckFiniteText: what Run, the replica that has found it, and another say.
func TestCheckFiniteText(t *testing.T) {
	body := func(ctx context.Context, c *gcl.Comm) error {
		data := []tensor.BFloat16{1, 2, 3}
		if c.Replica() == 1 {
			data[2] = 0x7fc1
		}
		return gcl.AllReduceInPlace(ctx, c.Named("w"), data, gcl.Add)
	}
	const text = `all-reduce #1 "w": replica 1: element 2 of the input, bfloat16, is NaN, not a finite number`
	errs := failures(t, 2, body, checked())
	errs = append(errs, gcl.Run(watched(t), 2, body, checked()))
	for i, want := range []string{`gcl: all-reduce #1 "w": replica 0 `, "gcl: ", "gcl: replica 1: "} {
		if got := errs[i].Error(); !strings.HasPrefix(got, want) || !strings.Contains(got, text) {
			t.Errorf("%s, want %s and %s", got, want, text)
		}
	}
}

// TestCheckFiniteResult: a sum that overflows is found in the result, also where one rank alone has that.
func TestCheckFiniteResult(t *testing.T) {
	const n = 3
	for _, x := range []struct {
		name    string
		replica int // who has the result; -1: all
		want    gcl.NotFiniteError
		call    func(ctx context.Context, c *gcl.Comm) error
	}{
		{"all-reduce", -1, gcl.NotFiniteError{Element: 4, DType: tensor.F32, Value: math.Inf(1)},
			func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, c, []float32{0, 0, 0, 0, math.MaxFloat32, 0}, gcl.Add)
			}},
		{"reduce-scatter", 2, gcl.NotFiniteError{Element: 1, DType: tensor.F64, Value: math.Inf(-1)},
			func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.ReduceScatter(ctx, c, []float64{0, 0, 0, 0, 0, -math.MaxFloat64}, gcl.Add)
				return err
			}},
		{"reduce", 1, gcl.NotFiniteError{Element: 0, DType: tensor.F16, Value: math.Inf(1)},
			func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.Reduce(ctx, c, []tensor.Float16{0x7bff, 0}, gcl.Add, 1)
				return err
			}},
	} {
		t.Run(x.name, func(t *testing.T) {
			for r, err := range failures(t, n, func(ctx context.Context, c *gcl.Comm) error {
				if err := x.call(ctx, c); err != nil {
					return err
				}
				return c.Barrier(ctx)
			}, checked()) {
				var found *gcl.NotFiniteError
				if x.want.Result, x.want.Replica = true, x.replica; x.replica < 0 && errors.As(err, &found) {
					x.want.Replica = found.Replica // whoever was first
				}
				foundBy(t, err, x.want)
				if err != nil && !contains(err, "of the result, ") {
					t.Errorf("replica %d: %v", r, err)
				}
			}
		})
	}
}

// TestCheckFiniteElsewhere: what is no reduction of floats is not looked at, nor anything without the option.
func TestCheckFiniteElsewhere(t *testing.T) {
	nan := float32(math.NaN())
	for _, o := range []gcl.Options{{}, {CheckFinite: true}} {
		replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			data := []float32{nan, nan, nan}
			bits := []uint32{math.Float32bits(nan), math.MaxUint32}
			_, err := gcl.AllGather(ctx, c, data)
			errs := []error{err, gcl.BroadcastInPlace(ctx, c, data, 1), gcl.AllToAllInPlace(ctx, c, data),
				gcl.AllReduceTo(ctx, c, data, make([]float32, 3), gcl.Add)}
			data = []float32{nan, nan, nan} // what a destination holds before does not count, also if it stays
			errs = append(errs, gcl.ReduceTo(ctx, c, data, make([]float32, 3), gcl.Add, 0),
				batchTo(ctx, c, schedule.Reduce, [][]float32{data}, [][]float32{make([]float32, 3)}, gcl.Add, 1),
				gcl.AllReduceInPlace(ctx, c, bits, gcl.Max), gcl.AllReduceInPlace(ctx, c, data, gcl.Local),
				gcl.SendRecv(ctx, c, data, (c.Rank()+1)%3, make([]float32, 3), (c.Rank()+2)%3), c.Barrier(ctx))
			if !o.CheckFinite {
				calls := finiteCalls(c.Size())
				for _, form := range slices.Sorted(maps.Keys(calls)) {
					many := make([]float32, finiteLength)
					many[5] = nan
					errs = append(errs, calls[form].call(ctx, c, many))
				}
			}
			return errors.Join(errs...)
		}, gcl.WithOptions(o))
	}
}

// TestCheckFiniteDiffers: members need not all have the option.
func TestCheckFiniteDiffers(t *testing.T) {
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, gcl.Options{CheckFinite: c.Rank() == 1})
		return gcl.AllReduceInPlace(ctx, c, make([]float32, 10), gcl.Add)
	})
}

// TestCheckFiniteWithin: a collective within a replica names the IPU and the replica. Other replicas hear of it.
func TestCheckFiniteWithin(t *testing.T) {
	for r, err := range failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		rows := [][]float32{{1, 2}, {3, 4}, {5, 6}}
		if c.Replica() == 1 {
			rows[2][1] = float32(math.NaN())
		}
		if _, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add); err != nil {
			return err
		}
		return c.Barrier(ctx)
	}, checked()) {
		foundBy(t, err, gcl.NotFiniteError{Replica: 1, Element: 1, DType: tensor.F32, Value: math.NaN()})
		if !contains(err, "IPU 2: element 1 of the input, float32, is NaN") {
			t.Errorf("replica %d: %v", r, err)
		}
	}
}

// TestCheckFiniteSockets: replicas that know of each other by messages only have the text.
func TestCheckFiniteSockets(t *testing.T) {
	onSockets(t, func(t *testing.T, network tcp.Network) {
		for r, err := range apartDo(t, apartOn(t, network, 3), func(ctx context.Context, c *gcl.Comm) error {
			data := make([]float64, 100)
			if c.Replica() == 2 {
				data[70] = math.Inf(1)
			}
			return gcl.AllReduceInPlace(ctx, withOptions(c, gcl.Options{CheckFinite: true}).Named("w"), data, gcl.Add)
		}) {
			const want = `all-reduce #1 "w": replica 2: element 70 of the input, float64, is +Inf, not a finite number`
			if err == nil || !errors.Is(err, gcl.ErrAborted) || !contains(err, want) {
				t.Errorf("replica %d: %v, want %s", r, err, want)
			}
		}
	})
}

// apartDo has each Comm do something, all at the same time, and returns the errors once nobody needs anybody.
func apartDo(t *testing.T, comms []*gcl.Comm, body func(ctx context.Context, c *gcl.Comm) error) []error {
	t.Helper()
	ctx, stop := lookOn(t)
	defer stop()
	errs := make([]error, len(comms))
	var busy sync.WaitGroup
	for i, c := range comms {
		busy.Go(func() { errs[i] = body(ctx, c) })
	}
	busy.Wait()
	for _, c := range comms {
		c.Close() // of a communicator that is ended, as a rule
	}
	return errs
}
