package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/ddp"
	"gogcl.dev/internal/anyinput"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
	"gogcl.dev/transport/tcp"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// run runs replicas, whose body is expected to succeed.
func run(t *testing.T, n int, body func(context.Context, *gcl.Comm) error, opts ...gcl.CommOption) {
	t.Helper()
	if err := gcl.Run(t.Context(), n, body, opts...); err != nil {
		t.Fatal(err)
	}
}

// failures are what the replicas' bodies return. One that fails does not end the others.
func failures(t *testing.T, n int, body func(context.Context, *gcl.Comm) error, opts ...gcl.CommOption) []error {
	errs := make([]error, n)
	run(t, n, func(ctx context.Context, c *gcl.Comm) error {
		errs[c.Rank()] = body(ctx, c)
		return nil
	}, opts...)
	return errs
}

// lengths are those of gradients: in buckets of 64 bytes, 8 elements, the buckets are {4, 5, 6}, {3}, {2}, {0, 1}.
var lengths = []int{3, 5, 7, 20, 0, 1, 6}

const small = 64

// value is an element of a gradient, of which the order of additions matters.
func value(step, rank, i, j int) float64 {
	return rand.New(rand.NewPCG(uint64(step), uint64(rank*1000000+i*1000+j))).NormFloat64()
}

// fold is what a reducer leaves of an element: the sum in rank order of what of returns, over the divisor.
func fold(n, divisor int, of func(rank int) float64) float64 {
	sum := of(0)
	for rank := 1; rank < n; rank++ {
		sum += of(rank)
	}
	return sum / float64(divisor)
}

func zeros() [][]float64 {
	grads := make([][]float64, len(lengths))
	for i, n := range lengths {
		grads[i] = make([]float64, n)
	}
	return grads
}

// compare returns an error if a gradient has other bits than want says.
func compare(grads [][]float64, want func(i, j int) float64) error {
	for i, g := range grads {
		for j, x := range g {
			if want := want(i, j); x != want {
				return fmt.Errorf("gradient %d[%d]: %v, want %v", i, j, x, want)
			}
		}
	}
	return nil
}

// TestBits: the mean and the sum are those of a fold in rank order, to the bit, whatever the order of Ready on each
// replica, with any buckets, methods and transports.
func TestBits(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4} {
		for _, o := range []ddp.Options{{}, {BucketBytes: 1}, {BucketBytes: small}, {BucketBytes: small, Sum: true}} {
			for _, m := range []methods.Method{methods.Auto, methods.ClockwiseRing} {
				with := gcl.WithOptions(gcl.Options{Reproducible: true, Method: m})
				name := fmt.Sprintf("n=%d/%+v/method=%v/transport=", n, o, m)
				t.Run(name+"inproc", func(t *testing.T) { run(t, n, tryBits(o), with) })
				t.Run(name+"unix", func(t *testing.T) {
					endpoints, err := tcp.New(n, tcp.Unix)
					if err != nil {
						t.Fatal(err)
					}
					run(t, n, tryBits(o), with, gcl.WithEndpoints(endpoints))
				})
			}
		}
	}
}

func tryBits(o ddp.Options) func(context.Context, *gcl.Comm) error {
	return func(ctx context.Context, c *gcl.Comm) error {
		grads, divisor := zeros(), c.Size()
		if o.Sum {
			divisor = 1
		}
		r, err := ddp.New(ctx, c, grads, o)
		if err != nil {
			return err
		}
		for step := range 4 {
			for _, i := range rand.New(rand.NewPCG(uint64(step), uint64(c.Rank()))).Perm(len(grads)) {
				for j := range grads[i] {
					grads[i][j] = value(step, c.Rank(), i, j)
				}
				if err := r.Ready(ctx, i); err != nil {
					return err
				}
			}
			if err := r.Finish(ctx); err != nil {
				return err
			}
			if err := compare(grads, func(i, j int) float64 {
				return fold(c.Size(), divisor, func(rank int) float64 { return value(step, rank, i, j) })
			}); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		return nil
	}
}

// TestUnused: gradients that a replica does not name count as zero, whatever is in them; those that nobody names become
// zero. They are unused anew in each step.
func TestUnused(t *testing.T) {
	const n = 3
	used := func(step, rank, i int) bool { return i != 3 && (i+rank+step)%3 != 0 }
	run(t, n, func(ctx context.Context, c *gcl.Comm) error {
		grads := zeros()
		r, err := ddp.New(ctx, c, grads, ddp.Options{BucketBytes: small})
		if err != nil {
			return err
		}
		for step := range 4 {
			for i := range grads {
				for j := range grads[i] {
					grads[i][j] = value(step, c.Rank(), i, j)
				}
				if used(step, c.Rank(), i) {
					if err := r.Ready(ctx, i); err != nil {
						return err
					}
				}
			}
			if err := r.Finish(ctx); err != nil {
				return err
			}
			if err := compare(grads, func(i, j int) float64 {
				return fold(n, n, func(rank int) float64 {
					if !used(step, rank, i) {
						return 0
					}
					return value(step, rank, i, j)
				})
			}); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		return nil
	}, gcl.WithOptions(gcl.Options{Reproducible: true}))
}

// TestNoSync: steps that begin with NoSync send nothing and change nothing. The step after them reduces what has
// gathered: also of a gradient that it has not named itself, if one of them has.
func TestNoSync(t *testing.T) {
	const n, micros = 3, 3
	used := func(micro, rank, i int) bool { return i != 2 && (i+rank+micro)%3 != 0 && (i != 1 || micro == 0) }
	var calls, none []string
	trace := &gcl.Trace{CollectiveStart: func(k gcl.TraceCall) {
		if k.Replica == 0 {
			calls = append(calls, k.Name)
		}
	}}
	run(t, n, func(ctx context.Context, c *gcl.Comm) error {
		grads := zeros()
		r, err := ddp.New(ctx, c, grads, ddp.Options{BucketBytes: small})
		if err != nil {
			return err
		}
		for step := range 3 {
			for i := range grads {
				clear(grads[i])
			}
			grads[2][0] = 5 // which counts as zero
			if c.Rank() == 0 {
				calls = none
			}
			for micro := range micros {
				if micro < micros-1 {
					if err := r.NoSync(); err != nil {
						return err
					}
				}
				for i := range grads {
					if !used(micro, c.Rank(), i) {
						continue
					}
					for j := range grads[i] {
						grads[i][j] += value(step*10+micro, c.Rank(), i, j)
					}
					if err := r.Ready(ctx, i); err != nil {
						return err
					}
				}
				if micro == micros-1 && c.Rank() == 0 && len(calls) > 0 && calls[0] != "bucket 0" {
					return fmt.Errorf("calls %q", calls)
				}
				if err := r.Finish(ctx); err != nil {
					return err
				}
				if micro < micros-1 && c.Rank() == 0 && (len(calls) > 0 || grads[2][0] != 5) {
					return fmt.Errorf("a step with NoSync makes the calls %q, and leaves %v", calls, grads[2][0])
				}
			}
			if err := compare(grads, func(i, j int) float64 {
				return fold(n, n, func(rank int) (sum float64) {
					for micro := range micros {
						if used(micro, rank, i) {
							sum += value(step*10+micro, rank, i, j)
						}
					}
					return sum
				})
			}); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		return nil
	}, gcl.WithOptions(gcl.Options{Reproducible: true, Trace: trace}))
}

// TestOverlap: a bucket is reduced before the backward pass ends, and buckets have one order on all replicas.
func TestOverlap(t *testing.T) {
	const n = 2
	var mu sync.Mutex
	names := make([][]string, n)
	began := make([]chan string, n)
	for rank := range began {
		began[rank] = make(chan string, 100)
	}
	trace := &gcl.Trace{CollectiveEnd: func(k gcl.TraceCall, _ error) {
		if strings.HasPrefix(k.Name, "bucket") {
			mu.Lock()
			names[k.Replica] = append(names[k.Replica], fmt.Sprintf("%s: %d tensors", k.Name, max(k.Tensors, 1)))
			mu.Unlock()
			began[k.Replica] <- k.Name
		}
	}}
	run(t, n, func(ctx context.Context, c *gcl.Comm) error {
		grads := zeros()
		r, err := ddp.New(ctx, c, grads, ddp.Options{BucketBytes: small})
		if err != nil {
			return err
		}
		order := []int{3, 2, 6, 4, 5}
		if c.Rank() == 1 {
			order = []int{6, 5, 4, 3, 2}
		}
		for _, i := range order {
			if err := r.Ready(ctx, i); err != nil {
				return err
			}
		}
		for k := range 3 { // while 0 and 1 are not ready
			if name := <-began[c.Rank()]; name != fmt.Sprintf("bucket %d", k) {
				return fmt.Errorf("bucket %d is %q", k, name)
			}
		}
		return errors.Join(r.Ready(ctx, 0), r.Ready(ctx, 1), r.Finish(ctx))
	}, gcl.WithOptions(gcl.Options{Trace: trace}))
	want := []string{"bucket 0: 3 tensors", "bucket 1: 1 tensors", "bucket 2: 1 tensors", "bucket 3: 3 tensors"}
	for rank := range names {
		if !slices.Equal(names[rank], want) {
			t.Errorf("replica %d: %q, want %q", rank, names[rank], want)
		}
	}
}

// TestTypes: gradients may have several types.
func TestTypes(t *testing.T) {
	run(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		x := float32(c.Rank())
		half := tensor.MustFromSlice([]tensor.Float16{tensor.Float16FromFloat32(x), tensor.Float16FromFloat32(2)}, 2, 1)
		single := tensor.MustFromSlice([]float32{x, 2 * x}, 2)
		double := tensor.MustFromSlice([]float64{float64(x)})
		grads := []*tensor.Tensor{half, single, double}
		r, err := ddp.NewTensors(ctx, c, grads, ddp.Options{BucketBytes: 12})
		if err != nil {
			return err
		}
		if err := errors.Join(r.Ready(ctx, 1), r.Ready(ctx, 0), r.Ready(ctx, 2), r.Finish(ctx)); err != nil {
			return err
		}
		const want = "[float16(2, 1)[[1.5] [2]] float32(2,)[1.5 3] float64(1,)[1.5]]"
		if got := fmt.Sprint(grads); got != want {
			return fmt.Errorf("%s, want %s", got, want)
		}
		ints := [][]int32{{int32(c.Rank())}}
		if r, err = ddp.New(ctx, c, ints, ddp.Options{Sum: true}); err != nil {
			return err
		}
		if err := errors.Join(r.Ready(ctx, 0), r.Finish(ctx)); err != nil || ints[0][0] != 6 {
			return fmt.Errorf("a sum of integers: %v, %w", ints, err)
		}
		return nil
	})
}

// TestBroadcast: all have what rank 0 has.
func TestBroadcast(t *testing.T) {
	run(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		params := [][]float32{{float32(c.Rank()) + 1}, {}, {2, float32(c.Rank())}}
		if err := ddp.Broadcast(ctx, c, params); err != nil || fmt.Sprint(params) != "[[1] [] [2 0]]" {
			return fmt.Errorf("%v, %w", params, err)
		}
		return nil
	})
}

// TestConcurrentReady: layers that are done at once may say so at once.
func TestConcurrentReady(t *testing.T) {
	run(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		grads := zeros()
		r, err := ddp.New(ctx, c, grads, ddp.Options{BucketBytes: small})
		if err != nil {
			return err
		}
		for range 20 {
			var wg sync.WaitGroup
			errs := make([]error, len(grads))
			for i, g := range grads {
				wg.Go(func() {
					for j := range g {
						g[j] = float64(c.Rank() + i)
					}
					errs[i] = r.Ready(ctx, i)
				})
			}
			wg.Wait()
			if err := errors.Join(errors.Join(errs...), r.Finish(ctx),
				compare(grads, func(i, j int) float64 { return float64(i) + 0.5 })); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestNewErrors: what is wrong on one replica, or differs, is an error on all, and the Comm stays usable.
func TestNewErrors(t *testing.T) {
	shared := make([]float32, 10)
	of := func(grads ...[]float32) []*tensor.Tensor {
		var out []*tensor.Tensor
		for _, g := range grads {
			out = append(out, tensor.MustFromSlice(g, len(g)))
		}
		return out
	}
	good := func() []*tensor.Tensor { return of(make([]float32, 3), make([]float32, 4)) }
	for name, k := range map[string]struct {
		grads   func() []*tensor.Tensor // of replica 2, or of all
		options ddp.Options             // likewise
		all     bool                    // all replicas are wrong, else they differ
		want    string
		alone   bool // replica 2 is wrong by itself
	}{
		"another length": {func() []*tensor.Tensor { return of(make([]float32, 3), make([]float32, 5)) }, ddp.Options{},
			false, "replica 0 gives gradient 1 of float32 x 4, replica 2 gradient 1 of float32 x 5", false},
		"another type": {func() []*tensor.Tensor {
			return append(good()[:1], tensor.MustFromSlice(make([]float64, 2)))
		}, ddp.Options{},
			false, "replica 0 gives gradient 1 of float32 x 4, replica 2 gradient 1 of float64 x 2", false},
		"another number": {func() []*tensor.Tensor { return good()[:1] }, ddp.Options{}, false,
			"replica 0 gives 2 gradients, BucketBytes 26214400, Sum false, replica 2 1 gradients, BucketBytes", false},
		"other options": {good, ddp.Options{Sum: true}, false,
			"Sum false, replica 2 2 gradients, BucketBytes 26214400, Sum true", false},
		"other buckets": {good, ddp.Options{BucketBytes: 7}, false, "2 2 gradients, BucketBytes 7", false},
		"shared memory": {func() []*tensor.Tensor { return of(shared[:6], shared[5:]) }, ddp.Options{BucketBytes: 1}, true,
			"operand 0 and operand 1 overlap", false},
		"shared by one": {func() []*tensor.Tensor { return of(shared[:3], shared[2:6]) }, ddp.Options{}, false,
			"operand 0 and operand 1 overlap", true},
		"nil": {func() []*tensor.Tensor { return []*tensor.Tensor{nil} }, ddp.Options{}, true,
			"operand 0: the input: it is nil", false},
		"integers": {func() []*tensor.Tensor { return []*tensor.Tensor{tensor.MustFromSlice([]int32{1})} }, ddp.Options{},
			true, "gradient 0: ", false},
		"integers of one": {func() []*tensor.Tensor { return []*tensor.Tensor{tensor.MustFromSlice([]int32{1})} },
			ddp.Options{}, false, "gradient 0: ", true},
		"negative": {good, ddp.Options{BucketBytes: -1}, true,
			"BucketBytes -1, want 1 or more, or 0 for 26214400", false},
		"negative of one": {good, ddp.Options{BucketBytes: -1}, false, "BucketBytes -1, want 1 or more", true},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, 3, func(ctx context.Context, c *gcl.Comm) error {
				grads, o := good(), ddp.Options{}
				if k.all || c.Rank() == 2 {
					grads, o = k.grads(), k.options
				}
				_, err := ddp.NewTensors(ctx, c, grads, o)
				own := k.alone && c.Rank() == 2
				if err == nil || !strings.HasPrefix(err.Error(), "ddp: ") || !strings.Contains(err.Error(), k.want) ||
					errors.Is(err, gcl.ErrMismatch) == (k.all || own) ||
					k.alone && !own && !strings.Contains(err.Error(), "replica 2 an error: ") {
					t.Errorf("replica %d: %v, want %q", c.Rank(), err, k.want)
				}
				r, err := ddp.NewTensors(ctx, c, good(), ddp.Options{})
				if err != nil {
					return fmt.Errorf("after that: %w", err)
				}
				return r.Finish(ctx)
			})
		})
	}
}

// TestMistakes: a wrong call is an error, which Finish returns too. The step is carried out, and the next is good.
func TestMistakes(t *testing.T) {
	type of = *ddp.Reducer
	for name, k := range map[string]struct {
		call func(ctx context.Context, r of) error
		want string
	}{
		"twice": {func(ctx context.Context, r of) error { return r.Ready(ctx, 1) }, "Ready(1): the gradient is ready"},
		"below": {func(ctx context.Context, r of) error { return r.Ready(ctx, -1) }, "want the index of one of 7"},
		"above": {func(ctx context.Context, r of) error { return r.Ready(ctx, 7) }, "want the index of one of 7"},
		"nil context": {func(_ context.Context, r of) error { return r.Ready(nilContext, 0) },
			"Ready(0): the context is nil"},
		"NoSync late": {func(_ context.Context, r of) error { return r.NoSync() }, "NoSync in a step that has begun"},
		"the first one": {func(ctx context.Context, r of) error { return errors.Join(r.Ready(ctx, 9), r.NoSync()) },
			"Ready(9)"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, 2, func(ctx context.Context, c *gcl.Comm) error {
				grads := zeros()
				r, err := ddp.New(ctx, c, grads, ddp.Options{BucketBytes: small})
				if err != nil {
					return err
				}
				for step := range 3 {
					for i := range grads {
						for j := range grads[i] {
							grads[i][j] = float64(c.Rank() + i)
						}
					}
					if err := r.Ready(ctx, 1); err != nil {
						return err
					}
					wrong := c.Rank() == 1 && step == 1
					if wrong {
						if err := k.call(ctx, r); err == nil || !strings.Contains(err.Error(), k.want) {
							t.Errorf("%v, want %q", err, k.want)
						}
					}
					for i := range grads {
						if i != 1 {
							if err := r.Ready(ctx, i); err != nil {
								return err
							}
						}
					}
					if err := r.Finish(ctx); wrong != (err != nil) || wrong && !strings.Contains(err.Error(), k.want) {
						t.Errorf("replica %d, step %d: Finish returns %v", c.Rank(), step, err)
					}
					if err := compare(grads, func(i, j int) float64 { return float64(i) + 0.5 }); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

var nilContext context.Context

// TestOtherSteps: replicas that make other calls of NoSync or Finish meet in steps with other numbers, and all of them
// get the error.
func TestOtherSteps(t *testing.T) {
	for _, sum := range []bool{false, true} {
		errs := failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			grads := zeros()
			r, err := ddp.New(ctx, c, grads, ddp.Options{Sum: sum})
			if err == nil {
				err = r.Finish(ctx)
			}
			if err != nil {
				return err
			}
			for range c.Rank() {
				if err := errors.Join(r.NoSync(), r.Finish(ctx)); err != nil {
					return err
				}
			}
			return r.Finish(ctx)
		})
		for rank, err := range errs {
			if !errors.Is(err, gcl.ErrMismatch) || !strings.Contains(err.Error(), fmt.Sprintf("step %d of", rank+1)) {
				t.Errorf("sum=%v: replica %d: %v", sum, rank, err)
			}
		}
	}
}

// TestEnded: Finish is an error of a Comm that is closed or aborted, and of a context that is done, also of one that
// buckets which have started know nothing of. Nobody waits.
func TestEnded(t *testing.T) {
	boom := errors.New("boom")
	ready := func(ctx context.Context, r *ddp.Reducer) error {
		return errors.Join(r.Ready(ctx, 6), r.Ready(ctx, 5), r.Ready(ctx, 4))
	}
	for name, k := range map[string]struct {
		end  func(ctx context.Context, c *gcl.Comm, r *ddp.Reducer) error
		want error
	}{
		"closed": {func(ctx context.Context, c *gcl.Comm, r *ddp.Reducer) error {
			return errors.Join(c.Close(), ready(ctx, r), r.Finish(ctx))
		}, gcl.ErrClosed},
		"aborted by one": {func(ctx context.Context, c *gcl.Comm, r *ddp.Reducer) error {
			if c.Rank() == 0 {
				c.Abort(boom)
			}
			return errors.Join(ready(ctx, r), r.Finish(ctx))
		}, gcl.ErrAborted},
		"done for one": {func(ctx context.Context, c *gcl.Comm, r *ddp.Reducer) error {
			if c.Rank() == 0 {
				if err := ready(ctx, r); err != nil { // which waits for the others
					return err
				}
				over, cancel := context.WithCancelCause(ctx)
				cancel(boom)
				return r.Finish(over)
			}
			<-c.Done()
			return errors.Join(ready(ctx, r), r.Finish(ctx))
		}, gcl.ErrAborted},
		"no context for one": {func(ctx context.Context, c *gcl.Comm, r *ddp.Reducer) error {
			if c.Rank() == 0 {
				return errors.Join(ready(ctx, r), r.Finish(nilContext))
			}
			return errors.Join(ready(ctx, r), r.Finish(ctx))
		}, gcl.ErrAborted},
	} {
		t.Run(name, func(t *testing.T) {
			errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
				c, err := c.Dup(ctx)
				if err != nil {
					return err
				}
				r, err := ddp.New(ctx, c, zeros(), ddp.Options{BucketBytes: small})
				if err == nil {
					err = c.Barrier(ctx)
				}
				if err != nil {
					return err
				}
				err = k.end(ctx, c, r)
				if again := r.Finish(ctx); again == nil {
					t.Error("the step after that: no error")
				}
				return err
			})
			for rank, err := range errs {
				if !errors.Is(err, k.want) {
					t.Errorf("replica %d: %v, want %v", rank, err, k.want)
				}
			}
		})
	}
}

// TestBeside: calls beside a Finish are errors, and change nothing.
func TestBeside(t *testing.T) {
	begun, tried := make(chan struct{}), make(chan struct{})
	trace := &gcl.Trace{CollectiveStart: func(k gcl.TraceCall) {
		if k.Name == "bucket 0" && k.Replica == 0 {
			close(begun)
		}
	}}
	run(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		grads := [][]float32{{float32(c.Rank())}}
		r, err := ddp.New(ctx, c, grads, ddp.Options{})
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			<-tried
			return errors.Join(r.Ready(ctx, 0), r.Finish(ctx))
		}
		first := make(chan error, 1)
		go func() { first <- r.Finish(ctx) }()
		<-begun
		for _, k := range []struct {
			err  error
			want string
		}{{r.Ready(ctx, 0), "Ready(0) beside Finish"}, {r.NoSync(), "NoSync in a step that has begun"},
			{r.Finish(ctx), "Finish beside Finish"}} {
			if k.err == nil || !strings.Contains(k.err.Error(), k.want) {
				t.Errorf("%v, want %q", k.err, k.want)
			}
		}
		close(tried)
		if err := <-first; err == nil || !strings.Contains(err.Error(), "Ready(0) beside Finish") {
			t.Errorf("the first Finish: %v", err)
		}
		return compare([][]float64{{float64(grads[0][0])}}, func(_, _ int) float64 { return 0.5 })
	}, gcl.WithOptions(gcl.Options{Trace: trace}))
}

// TestAnyInput: what programs may call by mistake is an error, not a panic.
func TestAnyInput(t *testing.T) {
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"New": ddp.New[float32], "NewTensors": ddp.NewTensors, "Broadcast": ddp.Broadcast[float32],
		},
		Types: []any{ddp.Reducer{}, ddp.Options{}},
	})
	for _, r := range []*ddp.Reducer{nil, {}} {
		for _, err := range []error{r.Ready(t.Context(), 0), r.NoSync(), r.Finish(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), "a Reducer that New has not made") {
				t.Errorf("%v", err)
			}
		}
	}
}
