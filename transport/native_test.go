package transport_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/transport"
)

// TestNativeLengths holds the lengths of the buffers of three members, of which 1 is the root, against those that MPI's
// collectives have.
func TestNativeLengths(t *testing.T) {
	const bytes = 12
	for kind, want := range map[transport.NativeKind]string{
		transport.NativeAllReduce:     "12 from 12, 12 from 12, 12 from 12",
		transport.NativeReduceScatter: "4 from 12, 4 from 12, 4 from 12",
		transport.NativeAllGather:     "12 from 4, 12 from 4, 12 from 4",
		transport.NativeAllToAll:      "12 from 12, 12 from 12, 12 from 12",
		transport.NativeBroadcast:     "12 from 0, 12 from 0, 12 from 0",
		transport.NativeReduce:        "0 from 12, 12 from 12, 0 from 12",
		transport.NativeGather:        "0 from 4, 12 from 4, 0 from 4",
		transport.NativeScatter:       "4 from 0, 4 from 12, 4 from 0",
		transport.NativeScatter + 1:   "0 from 0, 0 from 0, 0 from 0",
	} {
		var have []string
		for rank := range 3 {
			c := transport.NativeCollective{Kind: kind, Root: 1, Size: 3, Bytes: bytes}
			dst, src := c.Lengths(rank)
			have = append(have, fmt.Sprintf("%d from %d", dst, src))
		}
		if text := strings.Join(have, ", "); text != want {
			t.Errorf("%v: %s, want %s", kind, text, want)
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
		return arguments{transport.NativeCollective{Kind: transport.NativeAllReduce, Operator: transport.NativeSum,
			Element: transport.NativeInt32, Size: 2, Bytes: 8}, 5, []int{3, 5}, make([]byte, 8), make([]byte, 8)}
	}
	for _, x := range []struct {
		want   string
		change func(a *arguments)
	}{
		{"", func(a *arguments) {}},
		{"", func(a *arguments) { a.Kind, a.dst, a.Bytes = transport.NativeReduceScatter, a.dst[:4], 8 }},
		{"NativeKind(8) is no collective", func(a *arguments) { a.Kind = transport.NativeScatter + 1 }},
		{"replica 4 is not among the members [3 5]", func(a *arguments) { a.replica = 4 }},
		{"all-reduce of size 3 among 2 members", func(a *arguments) { a.Size = 3 }},
		{"root 1 of all-reduce among 2 members", func(a *arguments) { a.Root = 1 }},
		{"root 2 of reduce among 2 members", func(a *arguments) { a.Kind, a.Root = transport.NativeReduce, 2 }},
		{"root -1 of reduce among 2 members", func(a *arguments) { a.Kind, a.Root = transport.NativeReduce, -1 }},
		{"operator none of all-reduce", func(a *arguments) { a.Operator = transport.NativeNone }},
		{"operator NativeOperator(7) of all-reduce", func(a *arguments) { a.Operator = transport.NativeOr + 1 }},
		{"operator sum of all-gather", func(a *arguments) { a.Kind = transport.NativeAllGather }},
		{"elements bytes of all-reduce", func(a *arguments) { a.Element = transport.NativeBytes }},
		{"elements NativeElement(12) of all-reduce", func(a *arguments) { a.Element = transport.NativeFloat64 + 1 }},
		{"elements int32 of broadcast", func(a *arguments) {
			a.Kind, a.Operator = transport.NativeBroadcast, transport.NativeNone
		}},
		{"sum of bool", func(a *arguments) { a.Element = transport.NativeBool }},
		{"and of int32", func(a *arguments) { a.Operator = transport.NativeAnd }},
		{"-4 bytes of all-reduce sum of int32, want a multiple of 4", func(a *arguments) { a.Bytes = -4 }},
		{"6 bytes of all-reduce sum of int32, want a multiple of 4", func(a *arguments) { a.Bytes = 6 }},
		{"12 bytes of reduce-scatter sum of int32, want a multiple of 8", func(a *arguments) {
			a.Kind, a.Bytes = transport.NativeReduceScatter, 12
		}},
		{"7 bytes from 8 in all-reduce sum of int32 of 8, want 8 from 8", func(a *arguments) { a.dst = a.dst[:7] }},
		{"8 bytes from 4 in all-reduce sum of int32 of 8, want 8 from 8", func(a *arguments) { a.src = a.src[:4] }},
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
		{transport.NativeReduceScatter, "reduce-scatter"}, {transport.NativeProduct, "product"},
		{transport.NativeUint16, "uint16"}, {transport.NativeKind(9), "NativeKind(9)"},
		{transport.NativeCollective{Kind: transport.NativeGather}, "gather"},
	} {
		if x.have.String() != x.want {
			t.Errorf("%v, want %s", x.have, x.want)
		}
	}
	if transport.NativeUint16.Size() != 2 || transport.NativeElement(99).Size() != 0 {
		t.Error("sizes of elements")
	}
	for kind, rooted := range map[transport.NativeKind]bool{
		transport.NativeBroadcast: true, transport.NativeReduce: true, transport.NativeGather: true,
		transport.NativeScatter: true, transport.NativeAllReduce: false, transport.NativeAllToAll: false,
		transport.NativeKind(9): false,
	} {
		if kind.Rooted() != rooted {
			t.Errorf("%v: rooted %v", kind, !rooted)
		}
	}
}
