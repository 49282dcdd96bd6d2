package measure

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestMissing leaves everything out: every element is wrong before a collective writes it.
func TestMissing(t *testing.T) {
	for _, d := range tensor.DTypes() {
		op, err := gcl.ParseOperator(string(oracle.Operators(d)[0]))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range Collectives() {
			s := &Settings{Collectives: []Collective{c}, N: 3, DType: d, Op: op, Sizes: []int{100_000},
				dtypes: []tensor.DType{d}}
			values := s.NewValues(nil)
			err := gcl.Run(t.Context(), 3, func(_ context.Context, comm *gcl.Comm) error {
				wrong, elements, err := s.untouched(c, comm, values)
				if wrong != elements {
					t.Errorf("%v of %v: %d of %d elements of an untouched result are wrong", c, d, wrong, elements)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRewrite: each turn gives every input other values, in both places, and a replica without an input keeps what it
// has.
func TestRewrite(t *testing.T) {
	for _, d := range tensor.DTypes() {
		op, err := gcl.ParseOperator(string(oracle.Operators(d)[0]))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range Collectives() {
			s := &Settings{Collectives: []Collective{c}, N: 3, Root: 1, DType: d, Op: op, Sizes: []int{10_000},
				dtypes: []tensor.DType{d}}
			values := s.NewValues(nil)
			err := gcl.Run(t.Context(), 3, func(_ context.Context, comm *gcl.Comm) error {
				buffers, err := s.NewBuffers(comm)
				if err != nil {
					return err
				}
				defer buffers.Free()
				has := c.Contract().Input != schedule.AtRoot || comm.Rank() == s.Root
				for _, place := range []Place{OutOfPlace, InPlace} {
					o, err := s.Operand(c, place, c.Count(s.Sizes[0], d.Size(), s.N), comm, buffers)
					if err != nil {
						return err
					}
					r := &Runner{Values: values, Comm: comm, Clerk: comm, Operand: o}
					before := slices.Clone(o.input.Bytes())
					for turn := range 3 {
						r.Rewrite(turn)
						after := slices.Clone(o.input.Bytes())
						if bytes.Equal(before, after) == has {
							t.Errorf("%v of %v, %v, rank %d: turn %d: other values: %v, want %v", c, d, place,
								comm.Rank(), turn, !has, has)
						}
						before = after
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// untouched prepares a call out of place and does not make it.
func (s *Settings) untouched(c Collective, comm *gcl.Comm, values *Values) (wrong, elements int, err error) {
	buffers, err := s.NewBuffers(comm)
	if err != nil {
		return 0, 0, err
	}
	defer buffers.Free()
	o, err := s.Operand(c, OutOfPlace, c.Count(s.Sizes[0], s.DType.Size(), s.N), comm, buffers)
	if err != nil {
		return 0, 0, err
	}
	r := &Runner{Values: values, Comm: comm, Clerk: comm, Operand: o}
	r.Prepare()
	wrong, _ = r.Check()
	if c.Contract().Output == schedule.AtRoot && comm.Rank() != s.Root {
		return wrong, 0, nil
	}
	return wrong, o.result.Len(), nil
}
