package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// What a connection has found out about a call must not be taken for another call on the same memory.

// floatsAs is the memory of floats as int32.
func floatsAs(s []float32) []int32 {
	out, err := tensor.FromBytes[int32](tensor.Bytes(s))
	if err != nil {
		panic(err)
	}
	return out
}

func TestManyLooksAgain(t *testing.T) {
	type call func(ctx context.Context, c *gcl.Comm) error
	for _, x := range []struct {
		name      string
		calls     func() (good, bad call)
		different string // what the error says
	}{
		{"operator", func() (call, call) {
			s := [][]int32{make([]int32, 4)}
			return func(ctx context.Context, c *gcl.Comm) error { return gcl.AllReduceManyInPlace(ctx, c, s, gcl.Add) },
				func(ctx context.Context, c *gcl.Comm) error { return gcl.AllReduceManyInPlace(ctx, c, s, gcl.Mean) }
		}, "MEAN"},
		{"collective", func() (call, call) {
			s := [][]bool{make([]bool, 4)}
			return func(ctx context.Context, c *gcl.Comm) error {
					return batchInPlace(ctx, c, schedule.Broadcast, s, 0, 0)
				},
				func(ctx context.Context, c *gcl.Comm) error { return gcl.AllReduceManyInPlace(ctx, c, s, gcl.Add) }
		}, "bool"},
		{"type", func() (call, call) {
			s := make([]float32, 4)
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceManyInPlace(ctx, c, [][]float32{s}, gcl.Mean)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceManyInPlace(ctx, c, [][]int32{floatsAs(s)}, gcl.Mean)
				}
		}, "int32"},
		{"dtype", func() (call, call) {
			s := make([]float32, 4)
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceTensorsInPlace(ctx, c, []*tensor.Tensor{flat(s)}, gcl.Mean)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceTensorsInPlace(ctx, c, []*tensor.Tensor{flat(floatsAs(s))}, gcl.Mean)
				}
		}, "int32"},
		{"length", func() (call, call) {
			s := make([]float32, 4)
			return func(ctx context.Context, c *gcl.Comm) error {
					return batchInPlace(ctx, c, schedule.AllToAll, [][]float32{s}, 0, 0)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return batchInPlace(ctx, c, schedule.AllToAll, [][]float32{s[:3]}, 0, 0)
				}
		}, "equal parts"},
		{"length of the input", func() (call, call) {
			dst, src := make([]float32, 4), make([]float32, 5)
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceManyTo(ctx, c, [][]float32{dst}, [][]float32{src[:4]}, gcl.Add)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceManyTo(ctx, c, [][]float32{dst}, [][]float32{src}, gcl.Add)
				}
		}, "want 5"},
		{"length of the destination", func() (call, call) {
			dst, src := make([]float32, 5), make([]float32, 4)
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceManyTo(ctx, c, [][]float32{dst[:4]}, [][]float32{src}, gcl.Add)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceManyTo(ctx, c, [][]float32{dst}, [][]float32{src}, gcl.Add)
				}
		}, "has 5 elements, want 4"},
		{"place of the destination", func() (call, call) {
			m := make([]float32, 20)
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceManyTo(ctx, c, [][]float32{m[4:8]}, [][]float32{m[:4]}, gcl.Add)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceManyTo(ctx, c, [][]float32{m[3:7]}, [][]float32{m[:4]}, gcl.Add)
				}
		}, "overlap"},
		{"place of the input", func() (call, call) {
			m := make([]float32, 20)
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceManyTo(ctx, c, [][]float32{m[4:8]}, [][]float32{m[:4]}, gcl.Add)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceManyTo(ctx, c, [][]float32{m[4:8]}, [][]float32{m[1:5]}, gcl.Add)
				}
		}, "overlap"},
		{"shape of the destination", func() (call, call) {
			dst, src := flat(make([]float32, 6)), flat(make([]float32, 6))
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceTensorsTo(ctx, c, []*tensor.Tensor{shaped(dst, 2, 3)},
						[]*tensor.Tensor{shaped(src, 2, 3)}, gcl.Add)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceTensorsTo(ctx, c, []*tensor.Tensor{shaped(dst, 3, 2)},
						[]*tensor.Tensor{shaped(src, 2, 3)}, gcl.Add)
				}
		}, "shape (3, 2), want float32 of shape (2, 3)"},
		{"shape of the input", func() (call, call) {
			dst, src := flat(make([]float32, 6)), flat(make([]float32, 6))
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceTensorsTo(ctx, c, []*tensor.Tensor{shaped(dst, 2, 3)},
						[]*tensor.Tensor{shaped(src, 2, 3)}, gcl.Add)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceTensorsTo(ctx, c, []*tensor.Tensor{shaped(dst, 2, 3)},
						[]*tensor.Tensor{shaped(src, 6)}, gcl.Add)
				}
		}, "shape (2, 3), want float32 of shape (6,)"},
		{"group", func() (call, call) { // in which the rank is another, and with it the place of its shard
			m := make([]float32, 8)
			in := func(c *gcl.Comm, kind commgroup.Type) *gcl.Comm {
				return grouped(c, commgroup.Group{Type: kind, Size: 2})
			}
			place := func(c *gcl.Comm) []float32 { r := in(c, commgroup.Consecutive).Rank(); return m[4*r : 4*r+4] }
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.ReduceScatterManyTo(ctx, in(c, commgroup.Consecutive), [][]float32{place(c)},
						[][]float32{m}, gcl.Add)
				}, func(ctx context.Context, c *gcl.Comm) error {
					if c.Replica() == 0 || c.Replica() == 3 { // whose rank is the same
						return errors.New("overlap")
					}
					return gcl.ReduceScatterManyTo(ctx, in(c, commgroup.Orthogonal), [][]float32{place(c)},
						[][]float32{m}, gcl.Add)
				}
		}, "overlap"},
	} {
		replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
			good, bad := x.calls()
			for range 2 {
				if err := good(ctx, c); err != nil {
					return fmt.Errorf("%s: %w", x.name, err)
				}
				if err := bad(ctx, c); err == nil || !contains(err, x.different) {
					return fmt.Errorf("%s: %w, want %q", x.name, err, x.different)
				}
			}
			return nil
		})
	}
}

// TestManyMismatchAfterAgreement has all replicas agree first, and then one of them make another call on the same
// memory.
func TestManyMismatchAfterAgreement(t *testing.T) {
	type call func(ctx context.Context, c *gcl.Comm) error
	for _, x := range []struct {
		name  string
		calls func() (one, other call)
	}{
		{"shape", func() (call, call) {
			s := flat(make([]float32, 6))
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceTensorsInPlace(ctx, c, []*tensor.Tensor{shaped(s, 2, 3)}, gcl.Add)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceTensorsInPlace(ctx, c, []*tensor.Tensor{shaped(s, 3, 2)}, gcl.Add)
				}
		}},
		{"ranks of shapes", func() (call, call) {
			a, b := flat(make([]float32, 6)), flat(make([]float32, 1))
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceTensorsInPlace(ctx, c, []*tensor.Tensor{shaped(a, 6, 1), shaped(b, 1)}, gcl.Add)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceTensorsInPlace(ctx, c, []*tensor.Tensor{shaped(a, 6), shaped(b, 1, 1)}, gcl.Add)
				}
		}},
		{"options", func() (call, call) {
			s := [][]float32{make([]float32, 6)}
			return func(ctx context.Context, c *gcl.Comm) error { return gcl.AllReduceManyInPlace(ctx, c, s, gcl.Add) },
				func(ctx context.Context, c *gcl.Comm) error {
					return gcl.AllReduceManyInPlace(ctx, withOptions(c, gcl.Options{Reproducible: true}), s, gcl.Add)
				}
		}},
		{"mapping", func() (call, call) {
			dst, src := make([]float32, 4), make([]float32, 4)
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.ReduceScatterMappedTo(ctx, c, dst[:2], src, chunks.Mapping{4, 0}, gcl.Add)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.ReduceScatterMappedTo(ctx, c, dst[:2], src, chunks.Mapping{0, 4}, gcl.Add)
				}
		}},
		{"a mapping or none", func() (call, call) {
			dst, src := make([]float32, 2), make([]float32, 4)
			return func(ctx context.Context, c *gcl.Comm) error {
					return gcl.ReduceScatterMappedTo(ctx, c, dst, src, chunks.Mapping{4}, gcl.Add)
				}, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.ReduceScatterManyTo(ctx, c, [][]float32{dst}, [][]float32{src}, gcl.Add)
				}
		}},
	} {
		for _, o := range manyMismatchOptions {
			errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, o)
				one, other := x.calls()
				if err := one(ctx, c); err != nil {
					t.Error(err)
				}
				if c.Rank() == 1 {
					return other(ctx, c)
				}
				return one(ctx, c)
			})
			for r, err := range errs {
				if !errors.Is(err, gcl.ErrMismatch) {
					t.Errorf("%s: %+v: replica %d: %v, want ErrMismatch", x.name, o, r, err)
				}
			}
		}
	}
}

// A rank may give slices where another gives tensors of one dimension.
func TestSlicesMeetTensors(t *testing.T) {
	for _, o := range manyMismatchOptions {
		replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			c, s := withOptions(c, o), [][]float32{{1, 2}, {}, {3}}
			var err error
			if c.Rank() == 0 {
				err = gcl.AllReduceManyInPlace(ctx, c, s, gcl.Add)
			} else {
				err = gcl.AllReduceTensorsInPlace(ctx, c, flats(s), gcl.Add)
			}
			gathered := [][]float32{make([]float32, 4), {}, make([]float32, 2)}
			if c.Rank() == 0 {
				err = errors.Join(err, gcl.AllGatherManyTo(ctx, c, gathered, s))
			} else {
				dst := flats(gathered)
				for t := range dst {
					dst[t] = shaped(dst[t], 2, len(s[t]))
				}
				err = errors.Join(err, gcl.AllGatherTensorsTo(ctx, c, dst, flats(s)))
			}
			byCounts := [][]float32{make([]float32, 4), {}, make([]float32, 2)}
			if counts := [][]int{{2, 2}, {0, 0}, {1, 1}}; c.Rank() == 0 {
				err = errors.Join(err, batchVTo(ctx, c, schedule.AllGather, byCounts, s, 0, 0, counts))
			} else {
				err = errors.Join(err, batchTensorsVTo(ctx, c, schedule.AllGather, flats(byCounts), flats(s), 0, 0,
					counts))
			}
			return errors.Join(err, check("0", s[0], []float32{2, 4}), check("2", s[2], []float32{6}),
				check("gathered 0", gathered[0], []float32{2, 4, 2, 4}),
				check("gathered 2", gathered[2], []float32{6, 6}),
				checkMany("gathered by counts", byCounts, gathered))
		})
	}
}

// TestManyBitsInTurns changes the options between calls on the same tensors: 16-bit floats are packed as another type
// with Reproducible.
func TestManyBitsInTurns(t *testing.T) {
	const n = 3
	of, in := roundingTensors(n, 7)
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		dst := spoiled(in[c.Rank()])
		for round := range 2 {
			for _, o := range manyBitsOptions() {
				c := withOptions(c, o)
				if err := gcl.AllReduceTensorsTo(ctx, c, dst, in[c.Rank()], gcl.Add); err != nil {
					return err
				}
				for t := range dst {
					want, err := of[t].single(ctx, c, in[c.Rank()][t], gcl.Add, false)
					if err := errors.Join(err,
						sameTensors("all-reduce", dst[t:t+1], []*tensor.Tensor{want})); err != nil {
						return fmt.Errorf("round %d, %+v, tensor %d: %w", round, o, t, err)
					}
				}
			}
		}
		return nil
	})
}
