package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// integer lists the element types that are integers.
type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// compose is oracle.Compose.
func compose[T integer](dst, a, b []T) {
	half := 4 * unsafe.Sizeof(dst[0])
	low := uint64(1)<<half - 1
	for i := range dst {
		x, y := uint64(a[i]), uint64(b[i])
		upper := (y >> half & low) * (x >> half & low)
		dst[i] = T(upper<<half | ((y>>half&low)*(x&low)+y)&low)
	}
}

// later is oracle.Later.
func later[T tensor.Element](dst, a, b []T) {
	var zero T
	for i := range dst {
		x := a[i]
		if y := b[i]; y != zero {
			x = y
		}
		dst[i] = x
	}
}

// ofThisProgram are the operators that ownOperator has made, by element type.
var ofThisProgram sync.Map

// ownOperator is an operator of this program that is not commutative: named tells which.
func ownOperator[T tensor.Element]() gcl.Operator {
	make := sync.OnceValue(func() gcl.Operator {
		var combine any
		name := oracle.Compose
		switch any(*new(T)).(type) {
		case int8:
			combine = compose[int8]
		case int16:
			combine = compose[int16]
		case int32:
			combine = compose[int32]
		case int64:
			combine = compose[int64]
		case uint8:
			combine = compose[uint8]
		case uint16:
			combine = compose[uint16]
		case uint32:
			combine = compose[uint32]
		case uint64:
			combine = compose[uint64]
		default:
			name, combine = oracle.Later, later[T]
		}
		return must(gcl.NewOperator(fmt.Sprintf("%s_of_%v", name, tensor.DTypeOf[T]()), combine.(func(dst, a, b []T)),
			gcl.NotCommutative))
	})
	got, _ := ofThisProgram.LoadOrStore(tensor.DTypeOf[T](), make)
	return got.(func() gcl.Operator)()
}

// bitwise is another operator on float32, which is commutative: the bits that are in either.
var bitwise = sync.OnceValue(func() gcl.Operator {
	return must(gcl.NewOperator("bitwise_of_float32", func(dst, a, b []float32) {
		for i := range dst {
			dst[i] = math.Float32frombits(math.Float32bits(a[i]) | math.Float32bits(b[i]))
		}
	}, gcl.Idempotent))
})

// secondOperand is an operator that TestNewOperator looks at.
var secondOperand = sync.OnceValue(func() gcl.Operator {
	return must(gcl.NewOperator("second_of_int16", func(dst, _, b []int16) { copy(dst, b) }, gcl.NotCommutative))
})

func TestNewOperator(t *testing.T) {
	later := func(dst, a, b []int16) { copy(dst, b) }
	op := secondOperand()
	if parsed, err := gcl.ParseOperator("second_of_int16"); parsed != op || err != nil {
		t.Errorf("%v, parsed %v, %v", op, parsed, err)
	}
	if text, err := op.MarshalText(); string(text) != "second_of_int16" || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	if !op.Combines() || op.Squares() || op.Divides() || op.Accepts(tensor.I16) != nil {
		t.Errorf("%v does not do what it is for", op)
	}
	if err := op.Accepts(tensor.U16); err == nil || !strings.Contains(err.Error(), "takes int16 alone, not uint16") {
		t.Errorf("on another type: %v", err)
	}
	for _, bad := range []struct {
		name       string
		combine    func(dst, a, b []int16)
		properties []gcl.OperatorProperty
		want       string
	}{
		{"", later, nil, `gcl: NewOperator: "" is no name for an operator: want a lower case letter`},
		{"ADD", later, nil, `"ADD" is no name for an operator`},
		{"a-b", later, nil, `"a-b" is no name for an operator`},
		{strings.Repeat("a", 65), later, nil, "at most 63"},
		{"second_of_int16", later, nil, "gcl: NewOperator: the name second_of_int16 is taken"},
		{"third", nil, nil, "gcl: NewOperator: the function of operator third is nil"},
		{"third", later, []gcl.OperatorProperty{0}, "gcl: NewOperator: 0 is no property of operators"},
		{"third", later, []gcl.OperatorProperty{gcl.Idempotent, 7}, "7 is no property of operators, want NotCommutative"},
	} {
		if op, err := gcl.NewOperator(bad.name, bad.combine, bad.properties...); op != 0 || err == nil ||
			!strings.Contains(err.Error(), bad.want) {
			t.Errorf("%q: %v, %v, want %s", bad.name, op, err, bad.want)
		}
	}
}

// TestOwnOperatorRefusals: where an operator that is not commutative has no way to go, the call says so and sends
// nothing.
func TestOwnOperatorRefusals(t *testing.T) {
	const n = 3
	op := ownOperator[int64]()
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		data := []int64{1, 2, 3}
		s := must(methods.Build(methods.Spec{Method: methods.Direct, Collective: schedule.AllReduce, Size: n}))
		own := must(methods.Named("in_order"))
		for want, err := range map[string]error{
			"a schedule takes operands to commute, which those of the operator compose_of_int64 do not": gcl.Execute(ctx, c,
				s, make([]int64, 3), data, op),
			"not do all-reduce of 3 ranks by an operator that does not commute, which Options.Strict refuses": gcl.AllReduceInPlace(ctx,
				withOptions(c, gcl.Options{Method: own, Strict: true}), data, op),
			"operator compose_of_int64 takes int64 alone, not int32": gcl.AllReduceInPlace(ctx, c, []int32{1}, op),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%w, want %s", err, want)
			}
		}
		return gcl.AllReduceInPlace(ctx, withOptions(c, gcl.Options{Method: own}), data, op) // as by Auto
	}, gcl.WithMethod("in_order", methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
		r.Method = methods.Direct // which folds in the order of the ranks
		return methods.Build(r.Spec)
	})))
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		err := gcl.AllReduceInPlace(ctx, withOptions(c, gcl.Options{Method: methods.Native}), make([]int64, n), op)
		if want := "method native does not take an operator of the program's own"; err == nil ||
			!strings.Contains(err.Error(), want) {
			return fmt.Errorf("%w, want %s", err, want)
		}
		return nil
	}, onEngines(t, n))
}

// TestOwnOperatorDiffers: members that give two operators of their own find that out, and read both names.
func TestOwnOperatorDiffers(t *testing.T) {
	for _, o := range []gcl.Options{{}, {Implementation: gcl.Syncless}} {
		errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			op := []gcl.Operator{bitwise(), ownOperator[float32]()}[c.Rank()]
			return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]float32, 4), op)
		})
		for r, err := range errs {
			if !errors.Is(err, gcl.ErrMismatch) || !strings.Contains(err.Error(), "operators differ: replica 0 gives "+
				"bitwise_of_float32, replica 1 gives later_of_float32; ") {
				t.Errorf("replica %d: %v", r, err)
			}
		}
	}
}

// boom is an operator whose function panics.
var boom = sync.OnceValue(func() gcl.Operator {
	return must(gcl.NewOperator("boom_of_uint8", func(_, _, _ []uint8) { panic("boom") }))
})

// TestOwnOperatorPanics: a function that panics is a *PanicError of its replica, whatever way the call goes, and the
// others do not hang.
func TestOwnOperatorPanics(t *testing.T) {
	boom := boom()
	for _, size := range []int{1, 100_000} {
		for _, o := range bothWays() {
			err := gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]uint8, size), boom)
			})
			if p := (*gcl.PanicError)(nil); !errors.As(err, &p) || p.Value != "boom" {
				t.Errorf("%+v, size %d: %v", o, size, err)
			}
		}
	}
}

// TestOwnOperatorTogether: several operands share messages, by every method, packed and by messages of their own.
func TestOwnOperatorTogether(t *testing.T) {
	op := ownOperator[uint32]()
	for n := 2; n <= 5; n++ {
		sizes := []int{7, 0, 300, 20_000}
		ins, wants := make([][][]uint32, len(sizes)), make([][][]uint32, len(sizes))
		for i, size := range sizes {
			ins[i] = inputs[uint32](op, n, size+i)
			wants[i] = oracle.AllReduce(named(op), ins[i])
		}
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			for _, o := range bothWays() {
				var mine [][]uint32
				for i := range sizes {
					mine = append(mine, ins[i][c.Rank()])
				}
				out, err := gcl.AllReduceMany(ctx, withOptions(c, o), mine, op)
				if err != nil {
					return err
				}
				for i := range out {
					if err := check(fmt.Sprintf("%+v: operand %d", o, i), out[i], wants[i][c.Rank()]); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}
