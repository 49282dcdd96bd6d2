package values_test

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/gcl/values"
	"gogcl.dev/internal/anyinput"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport/tcp"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type shape interface{ Area() float64 }

type square struct{ Side float64 }

func (s square) Area() float64 { return s.Side * s.Side }

type person struct {
	Name   string
	Boss   *person
	Scores map[string][]float64
	Any    any
}

// odd encodes itself, and cannot for some numbers.
type odd int

var errOdd = errors.New("the number is odd")

func (o odd) MarshalBinary() ([]byte, error) {
	switch {
	case o == 7:
		panic("seven")
	case o%2 != 0:
		return nil, errOdd
	}
	return []byte{byte(o)}, nil
}

func (o *odd) UnmarshalBinary(b []byte) error {
	if b[0] == 8 {
		return errors.New("eight is not for reading")
	}
	*o = odd(b[0])
	return nil
}

func init() { gob.Register(square{}) }

// all tries every function with a value of each rank, and wants them back.
func all[T any](ctx context.Context, c *gcl.Comm, of func(rank int) T) error {
	want := make([]T, c.Size())
	for r := range want {
		want[r] = of(r)
	}
	root := c.Size() - 1
	own := of(c.Rank())
	gathered, err := values.Gather(ctx, c, own, root)
	if err != nil {
		return err
	}
	if wanted := want; c.Rank() == root && !reflect.DeepEqual(gathered, wanted) || c.Rank() != root && gathered != nil {
		return fmt.Errorf("gathered %v, want %v", gathered, want)
	}
	everywhere, err := values.AllGather(ctx, c, own)
	if err != nil || !reflect.DeepEqual(everywhere, want) {
		return fmt.Errorf("all have %v, want %v: %w", everywhere, want, err)
	}
	cast, err := values.Broadcast(ctx, c, own, root)
	if err != nil || !reflect.DeepEqual(cast, want[root]) {
		return fmt.Errorf("broadcast %v, want %v: %w", cast, want[root], err)
	}
	var vs []T
	if c.Rank() == root {
		vs = want
	}
	part, err := values.Scatter(ctx, c, vs, root)
	if err != nil || !reflect.DeepEqual(part, own) {
		return fmt.Errorf("scattered %v, want %v: %w", part, own, err)
	}
	last, err := values.Reduce(ctx, c, own, root, func(_, b T) T { return b })
	var zero T
	if c.Rank() == root {
		zero = want[root]
	}
	if err != nil || !reflect.DeepEqual(last, zero) {
		return fmt.Errorf("reduced %v, want %v: %w", last, zero, err)
	}
	if !reflect.DeepEqual(own, of(c.Rank())) {
		return fmt.Errorf("a value of the caller has changed to %v", own)
	}
	return nil
}

// TestValues: types of every kind, among goroutines and over sockets, in the group of all and in a smaller one.
func TestValues(t *testing.T) {
	boss := &person{Name: "B", Scores: map[string][]float64{"a": {1, 2.5}}}
	for _, network := range []tcp.Network{"", tcp.TCP} {
		for _, n := range []int{1, 2, 3, 5} {
			var opts []gcl.CommOption
			if network != "" {
				endpoints, err := tcp.New(n, network)
				if err != nil {
					t.Fatal(err)
				}
				opts = append(opts, gcl.WithEndpoints(endpoints))
			}
			if err := gcl.Run(t.Context(), n, func(ctx context.Context, c *gcl.Comm) error {
				group := c
				if n == 5 {
					var err error
					if group, err = c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 5}); err != nil {
						return err
					}
				}
				return errors.Join(
					all(ctx, group, func(r int) int { return r * r }),
					all(ctx, group, func(r int) string { return strings.Repeat("x", 1000*r) }),
					all(ctx, group, func(r int) map[string]int { return map[string]int{"a": r, fmt.Sprint(r): 1} }),
					all(ctx, group, func(r int) []byte { return make([]byte, 1+r) }),
					all(ctx, group, func(r int) *person {
						if r == 1 {
							return nil
						}
						return &person{Name: fmt.Sprint(r), Boss: boss, Any: square{float64(r + 1)}}
					}),
					all(ctx, group, func(r int) shape {
						if r == 1 {
							return nil
						}
						return square{float64(r + 1)}
					}),
					all(ctx, group, func(r int) time.Time { return time.Unix(int64(r), 5).UTC() }),
					all(ctx, group, func(r int) odd { return odd(2 + 2*(r%2)) }),
					all(ctx, group, func(int) error { return nil }),
				)
			}, opts...); err != nil {
				t.Errorf("%q, n=%d: %v", network, n, err)
			}
		}
	}
}

// TestZeros: what gob leaves out of a struct arrives as it is: zeros behind pointers, empty lists, the sign of zero.
func TestZeros(t *testing.T) {
	negative := math.Copysign(0, -1)
	if err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		zero := 0
		pointers, err := values.AllGather(ctx, c, &zero)
		if err != nil || pointers[0] == nil || *pointers[1] != 0 {
			return fmt.Errorf("pointers to zero: %v, %w", pointers, err)
		}
		floats, err := values.AllGather(ctx, c, negative)
		if err != nil || math.Float64bits(floats[0]) != math.Float64bits(negative) {
			return fmt.Errorf("negative zeros: %v, %w", floats, err)
		}
		lists, err := values.AllGather(ctx, c, [][]int{{}, nil, {0}})
		if err != nil || len(lists[1]) != 3 || len(lists[1][2]) != 1 {
			return fmt.Errorf("lists: %v, %w", lists, err)
		}
		return errors.Join(
			all(ctx, c, func(r int) bool { return false }),
			all(ctx, c, func(r int) string { return "" }),
			all(ctx, c, func(int) []int { return nil }),
			all(ctx, c, func(int) map[string]int { return nil }),
			all(ctx, c, func(r int) *big.Int { return big.NewInt(0) }),
		)
	}); err != nil {
		t.Error(err)
	}
}

// ringOf is a list whose last leads to the first.
type ringOf struct {
	Value int
	Next  *ringOf
	Any   any
}

// TestCycles: a value that leads back to itself is an error, and what is only found twice in one is none.
func TestCycles(t *testing.T) {
	gob.Register(&ringOf{})
	gob.Register([]any{})
	cyclic := &ringOf{Value: 1}
	cyclic.Next = cyclic
	hidden := &ringOf{}
	hidden.Any = hidden
	list := []any{1}
	list[0] = list
	shared := &ringOf{Value: 2}
	twice := &ringOf{Next: shared, Any: shared}
	if err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		for _, v := range []any{cyclic, hidden, list} {
			_, err := values.AllGather(ctx, c, v)
			if err == nil || !strings.Contains(err.Error(), "leads back to itself") {
				return fmt.Errorf("a cycle: %w", err)
			}
		}
		got, err := values.AllGather(ctx, c, twice)
		if err == nil && got[1].Next.Value != 2 {
			err = errors.New("another value")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// TestTypesOfOneName: types whose names are alike are told apart by their fields.
func TestTypesOfOneName(t *testing.T) {
	one := func(ctx context.Context, c *gcl.Comm) error {
		type T struct{ A int }
		_, err := values.AllGather(ctx, c, T{1})
		return err
	}
	two := func(ctx context.Context, c *gcl.Comm) error {
		type T struct{ A, B int }
		_, err := values.AllGather(ctx, c, T{1, 2})
		return err
	}
	if err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		err := [](func(context.Context, *gcl.Comm) error){one, two}[c.Rank()](ctx, c)
		if !errors.Is(err, gcl.ErrMismatch) ||
			!strings.Contains(err.Error(), "types of one name and other packages or fields") {
			t.Errorf("replica %d: %v", c.Rank(), err)
		}
		return c.Barrier(ctx)
	}); err != nil {
		t.Error(err)
	}
}

// TestReduceOrder: the fold is in the order of the ranks, and may change its arguments.
func TestReduceOrder(t *testing.T) {
	for root := range 3 {
		if err := gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
			own := []string{fmt.Sprint(c.Rank())}
			got, err := values.Reduce(ctx, c, own, root, func(a, b []string) []string {
				a[0] = "(" + a[0] + b[0] + ")"
				return a
			})
			if err != nil {
				return err
			}
			if c.Rank() == root && got[0] != "((01)2)" || c.Rank() != root && got != nil {
				return fmt.Errorf("root %d: rank %d has %v", root, c.Rank(), got)
			}
			if own[0] != fmt.Sprint(c.Rank()) {
				return errors.New("the caller's value has changed")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestLarge moves 100 MiB, or in short runs 4.
func TestLarge(t *testing.T) {
	size := 100 << 20
	if testing.Short() {
		size = 4 << 20
	}
	if err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		v := make([]byte, size)
		for i := range v {
			v[i] = byte(i / 1000)
		}
		got, err := values.Broadcast(ctx, c, v, 1)
		if err == nil && !reflect.DeepEqual(got, v) {
			err = errors.New("other bytes")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// TestErrors: what goes wrong on one replica is an error on all, which names it, and the Comm stays usable.
func TestErrors(t *testing.T) {
	type body = func(ctx context.Context, c *gcl.Comm) error
	on := func(rank int, bad, good odd) func(c *gcl.Comm) odd {
		return func(c *gcl.Comm) odd {
			if c.Rank() == rank {
				return bad
			}
			return good
		}
	}
	for _, tt := range []struct {
		name string
		call body
		want string
		is   error // on the replica that it is of
	}{
		{"encode", func(ctx context.Context, c *gcl.Comm) error {
			_, err := values.AllGather(ctx, c, on(1, 3, 2)(c))
			return err
		}, "values: AllGather: replica 1: the number is odd", errOdd},
		{"encode panics", func(ctx context.Context, c *gcl.Comm) error {
			_, err := values.Gather(ctx, c, on(1, 7, 2)(c), 0)
			return err
		}, "values: Gather: replica 1: panic: seven", nil},
		{"decode", func(ctx context.Context, c *gcl.Comm) error {
			_, err := values.Gather(ctx, c, on(2, 8, 2)(c), 1)
			return err
		}, "values: Gather: replica 1: the value of rank 2: eight is not for reading", nil},
		{"decode elsewhere", func(ctx context.Context, c *gcl.Comm) error {
			_, err := values.Scatter(ctx, c, []odd{2, 4, 8}, 0)
			return err
		}, "values: Scatter: replica 2: eight is not for reading", nil},
		{"a channel", func(ctx context.Context, c *gcl.Comm) error {
			_, err := values.Broadcast(ctx, c, make(chan int), 2)
			return err
		}, "values: Broadcast: replica 2: gob NewTypeObject can't handle type: chan int", nil},
		{"not registered", func(ctx context.Context, c *gcl.Comm) error {
			_, err := values.Broadcast[any](ctx, c, struct{ A int }{1}, 0)
			return err
		}, "values: Broadcast: replica 0: gob: type not registered", nil},
		{"a panic", func(ctx context.Context, c *gcl.Comm) error {
			_, err := values.Reduce(ctx, c, 1, 2, func(a, b int) int { panic(errOdd) })
			return err
		}, "values: Reduce: replica 2: panic: the number is odd", errOdd},
		{"no function", func(ctx context.Context, c *gcl.Comm) error {
			var f func(a, b int) int
			if c.Rank() != 1 {
				f = func(a, b int) int { return a }
			}
			_, err := values.Reduce(ctx, c, 1, 2, f)
			return err
		}, "values: Reduce: replica 1: the function is nil", nil},
		{"too few", func(ctx context.Context, c *gcl.Comm) error {
			_, err := values.Scatter(ctx, c, []int{1, 2}, 0)
			return err
		}, "values: Scatter: replica 0: 2 values for 3 members, want one for each", nil},
		{"root", func(ctx context.Context, c *gcl.Comm) error {
			_, err := values.Gather(ctx, c, 1, 3)
			return err
		}, "values: Gather: replica 0: root 3 is not a rank of the group, 0 to 2", nil},
		{"roots differ", func(ctx context.Context, c *gcl.Comm) error {
			_, err := values.Gather(ctx, c, 1, c.Rank()%2)
			return err
		}, "replicas disagree: replica 0 calls Gather of int, root 0, replica 1 calls Gather of int, root 1", gcl.ErrMismatch},
		{"types differ", func(ctx context.Context, c *gcl.Comm) (err error) {
			if c.Rank() == 2 {
				_, err = values.AllGather(ctx, c, "x")
			} else {
				_, err = values.AllGather(ctx, c, 1)
			}
			return err
		}, "replicas disagree: replica 0 calls AllGather of int, root 0, replica 2 calls AllGather of string, root 0", gcl.ErrMismatch},
		{"functions differ", func(ctx context.Context, c *gcl.Comm) (err error) {
			if c.Rank() == 1 {
				_, err = values.Broadcast(ctx, c, 1, 0)
			} else {
				_, err = values.Gather(ctx, c, 1, 0)
			}
			return err
		}, "replica 0 calls Gather of int, root 0, replica 1 calls Broadcast of int, root 0", gcl.ErrMismatch},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			var found [3]bool
			if err := gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
				err := tt.call(ctx, c)
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("replica %d: error %v, want one with %q", c.Replica(), err, tt.want)
				}
				found[c.Rank()] = tt.is != nil && errors.Is(err, tt.is)
				return c.Barrier(ctx)
			}); err != nil {
				t.Errorf("then %v", err)
			}
			if tt.is != nil && found == [3]bool{} {
				t.Errorf("no error is %v", tt.is)
			}
		})
	}
}

// TestAborted: an error of the collectives beneath is that of package gcl.
func TestAborted(t *testing.T) {
	boom := errors.New("boom")
	err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 1 {
			return boom
		}
		_, err := values.AllGather(ctx, c, 1)
		if !errors.Is(err, gcl.ErrAborted) || !strings.HasPrefix(err.Error(), "values: AllGather: ") {
			t.Errorf("error %v", err)
		}
		return err
	})
	if !errors.Is(err, boom) {
		t.Error(err)
	}
}

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Gather": values.Gather[any], "AllGather": values.AllGather[*person], "Broadcast": values.Broadcast[chan int],
			"Scatter": values.Scatter[map[string]int], "Reduce": values.Reduce[shape],
		},
		Values: []any{&gcl.Comm{}, 1, -1, &person{}, []map[string]int{nil}},
	})
}

// twice is a type in which a type stands twice, so sixteen of it within each other lead to the last by 65,536 ways.
type (
	twice[T any]   struct{ A, B []T }
	four[T any]    = twice[twice[twice[twice[T]]]]
	sixteen[T any] = four[four[four[four[T]]]]
)

// TestTypesWithinTypes: a type is looked at once, by however many ways another leads to it.
func TestTypesWithinTypes(t *testing.T) {
	type deep = sixteen[sixteen[any]]
	if err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		got, err := values.AllGather(ctx, c, deep{A: slices.Grow(deep{}.A, 1)[:1]})
		if err == nil && (len(got) != 2 || len(got[1].A) != 1) {
			err = fmt.Errorf("got %v", got)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
