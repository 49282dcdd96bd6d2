package transport_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// TestNativeLengths holds the lengths of the buffers of three members, of which 1 is the root, against those that MPI's
// collectives have. A broadcast of MPI has one buffer, the root's src and the dst of the others.
func TestNativeLengths(t *testing.T) {
	const bytes = 12
	wants := map[schedule.Collective]string{
		schedule.AllReduce:     "12 from 12, 12 from 12, 12 from 12",
		schedule.ReduceScatter: "4 from 12, 4 from 12, 4 from 12",
		schedule.AllGather:     "12 from 4, 12 from 4, 12 from 4",
		schedule.AllToAll:      "12 from 12, 12 from 12, 12 from 12",
		schedule.Broadcast:     "12 from 0, 12 from 12, 12 from 0",
		schedule.Reduce:        "0 from 12, 12 from 12, 0 from 12",
		schedule.Gather:        "0 from 4, 12 from 4, 0 from 4",
		schedule.Scatter:       "4 from 0, 4 from 12, 4 from 0",
	}
	for _, collective := range schedule.Collectives() {
		var have []string
		for rank := range 3 {
			c := transport.NativeCollective{Collective: collective, Root: 1, Size: 3, Bytes: bytes}
			dst, src := c.Lengths(rank)
			have = append(have, fmt.Sprintf("%d from %d", dst, src))
		}
		if text := strings.Join(have, ", "); text != wants[collective] {
			t.Errorf("%v: %s, want %s", collective, text, wants[collective])
		}
	}
}

// TestNativeAccepts: bools are combined by And and Or, numbers by the others, 16-bit floats by none.
func TestNativeAccepts(t *testing.T) {
	logical := []transport.NativeOperator{transport.NativeAnd, transport.NativeOr}
	for o := range transport.NativeOperator(10) {
		for d := range tensor.DType(20) {
			want := d == tensor.Bool
			if !slices.Contains(logical, o) {
				want = o > 0 && o < 7 && d.IsNumber() && d != tensor.F16 && d != tensor.BF16
			}
			if o.Accepts(d) != want {
				t.Errorf("%v of %v: %v, want %v", o, d, !want, want)
			}
		}
	}
}

// TestNativeCheck: arguments that break the rules give an *ArgumentError that says how. A good call allocates nothing.
func TestNativeCheck(t *testing.T) {
	type arguments struct {
		transport.NativeCollective
		replica  int
		members  []int
		dst, src []byte
	}
	good := func() arguments {
		c := transport.NativeCollective{Operator: transport.NativeAdd, DType: tensor.I32, Size: 2, Bytes: 8}
		return arguments{c, 5, []int{3, 5}, make([]byte, 8), make([]byte, 8)}
	}
	for _, x := range []struct {
		want   string
		change func(a *arguments)
	}{
		{"", func(a *arguments) {}},
		{"", func(a *arguments) { a.Collective, a.dst, a.Bytes = schedule.ReduceScatter, a.dst[:4], 8 }},
		{"barrier is no collective of an engine", func(a *arguments) { a.Collective = schedule.Barrier }},
		{"custom is no collective of an engine", func(a *arguments) { a.Collective = schedule.Custom }},
		{"Collective(99) is no collective of an engine", func(a *arguments) { a.Collective = 99 }},
		{"replica 4 is not among the members [3 5]", func(a *arguments) { a.replica = 4 }},
		{"all-reduce of size 3 among 2 members", func(a *arguments) { a.Size = 3 }},
		{"root 1 of all-reduce among 2 members", func(a *arguments) { a.Root = 1 }},
		{"root 2 of reduce among 2 members", func(a *arguments) { a.Collective, a.Root = schedule.Reduce, 2 }},
		{"root -1 of reduce among 2 members", func(a *arguments) { a.Collective, a.Root = schedule.Reduce, -1 }},
		{"all-reduce by Op(0) of int32", func(a *arguments) { a.Operator = 0 }},
		{"all-reduce by Op(7) of int32", func(a *arguments) { a.Operator = transport.NativeOr + 1 }},
		{"all-gather by add of uint8, want no operator, and uint8", func(a *arguments) {
			a.Collective, a.DType = schedule.AllGather, tensor.U8
		}},
		{"all-reduce by add of DType(0)", func(a *arguments) { a.DType = 0 }},
		{"all-reduce by add of DType(14)", func(a *arguments) { a.DType = tensor.F64 + 1 }},
		{"all-reduce by add of bfloat16", func(a *arguments) { a.DType = tensor.BF16 }},
		{"broadcast by Op(0) of int32, want no operator, and uint8", func(a *arguments) {
			a.Collective, a.Operator = schedule.Broadcast, 0
		}},
		{"all-reduce by add of bool", func(a *arguments) { a.DType = tensor.Bool }},
		{"all-reduce by and of int32", func(a *arguments) { a.Operator = transport.NativeAnd }},
		{"-4 bytes of all-reduce add of int32, want a multiple of 4", func(a *arguments) { a.Bytes = -4 }},
		{"6 bytes of all-reduce add of int32, want a multiple of 4", func(a *arguments) { a.Bytes = 6 }},
		{"12 bytes of reduce-scatter add of int32, want a multiple of 8", func(a *arguments) {
			a.Collective, a.Bytes = schedule.ReduceScatter, 12
		}},
		{"7 bytes from 8 in all-reduce add of int32 of 8, want 8 from 8", func(a *arguments) { a.dst = a.dst[:7] }},
		{"8 bytes from 4 in all-reduce add of int32 of 8, want 8 from 8", func(a *arguments) { a.src = a.src[:4] }},
	} {
		a := good()
		x.change(&a)
		err := a.Check(a.replica, a.members, a.dst, a.src)
		var argument *transport.ArgumentError
		switch {
		case x.want == "" && err != nil:
			t.Errorf("%+v: %v", a, err)
		case x.want != "" && (!errors.As(err, &argument) || argument.Reason != x.want):
			t.Errorf("%+v: %v, want %s", a, err, x.want)
		}
	}
	a := good()
	if n := testing.AllocsPerRun(100, func() {
		if err := a.Check(a.replica, a.members, a.dst, a.src); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations in the check of a good call", n)
	}
}

func TestNativeTexts(t *testing.T) {
	for _, x := range []struct {
		have fmt.Stringer
		want string
	}{
		{transport.NativeMul, "mul"}, {transport.NativeOperator(9), "Op(9)"},
		{transport.NativeCollective{Collective: schedule.Gather, DType: tensor.U8}, "gather"},
		{transport.NativeCollective{Operator: transport.NativeMax, DType: tensor.U16}, "all-reduce max of uint16"},
	} {
		if x.have.String() != x.want {
			t.Errorf("%v, want %s", x.have, x.want)
		}
	}
}
