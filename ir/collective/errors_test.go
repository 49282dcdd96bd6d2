package collective_test

import (
	"errors"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

// TestBuildErrors has one error in each program, which sticks and names the line.
func TestBuildErrors(t *testing.T) {
	x3 := spec(tensor.F32, 3)
	var all collective.Comm
	for _, k := range []struct {
		name  string
		in    ir.Spec
		build func(x *ir.Tensor) *ir.Tensor
		want  string
	}{
		{"group", x3, func(x *ir.Tensor) *ir.Tensor {
			return collective.Comm{Group: group(commgroup.Consecutive, 3, 0)}.AllReduce(x, gcl.Add)
		}, "all-reduce at errors_test.go:LINE in graph main of \"in0\" float32 (3,): commgroup: 4 replicas are not a " +
			"multiple of size 3: want a size of 1, 2 or 4"},
		{"options", x3, func(x *ir.Tensor) *ir.Tensor {
			return collective.Comm{Options: gcl.Options{Method: methods.Method(99)}}.AllGather(x)
		}, "all-gather at errors_test.go:LINE in graph main of \"in0\" float32 (3,): gcl: option Method=99: no such value, " +
			"want one of auto, broadcast, clockwise_ring, anticlockwise_ring, bidirectional_ring_pair, " +
			"meet_in_middle_ring, quad_directional_ring, direct, recursive_doubling"},
		{"link", x3, func(x *ir.Tensor) *ir.Tensor {
			return collective.Comm{Options: gcl.Options{Link: gcl.GWLink}}.Broadcast(x, 0)
		}, "broadcast at errors_test.go:LINE in graph main of \"in0\" float32 (3,): gcl: option Link=gw-link: "},
		{"operator", spec(tensor.I32, 3), func(x *ir.Tensor) *ir.Tensor {
			return all.AllReduce(x, gcl.Mean)
		}, "all-reduce at errors_test.go:LINE in graph main of \"in0\" int32 (3,): operator MEAN takes floating point, not " +
			"int32"},
		{"no operator", x3, func(x *ir.Tensor) *ir.Tensor {
			return all.AllReduceInPlace(x, gcl.Operator(99))
		}, "all-reduce in place at errors_test.go:LINE in graph main of \"in0\" float32 (3,): Operator(99) is no operator, " +
			"want one of ADD, MEAN, MUL, MIN, MAX, LOGICAL_AND, LOGICAL_OR, SQUARE_ADD, LOCAL"},
		{"one of many", x3, func(x *ir.Tensor) *ir.Tensor {
			y := x.Graph().Constant(tensor.Scalar(true))
			return all.AllReduceMany([]*ir.Tensor{x, y}, gcl.Add)[1]
		}, "all-reduce at errors_test.go:LINE in graph main of \"in0\" float32 (3,), bool (): tensor 1: operator ADD takes " +
			"numbers, not bool"},
		{"twice in place", x3, func(x *ir.Tensor) *ir.Tensor {
			return all.AllReduceManyInPlace([]*ir.Tensor{x, all.AllReduce(x, gcl.Add), x}, gcl.Add)[0]
		}, "all-reduce in place at errors_test.go:LINE in graph main of \"in0\" float32 (3,), float32 (3,), \"in0\" " +
			"float32 (3,): %0.in0 and %0.in0 share memory, want what it changes each in its own"},
		{"reduce-scatter operator", spec(tensor.Bool, 3), func(x *ir.Tensor) *ir.Tensor {
			return all.ReduceScatter(x, gcl.Add)
		}, "reduce-scatter at errors_test.go:LINE in graph main of \"in0\" bool (3,): operator ADD takes numbers, not bool"},
		{"reduce-scatter shape", spec(tensor.F32, 2, 2), func(x *ir.Tensor) *ir.Tensor {
			return all.ReduceScatter(x, gcl.Add)
		}, "reduce-scatter at errors_test.go:LINE in graph main of \"in0\" float32 (2, 2): a reduce-scatter takes one " +
			"dimension, not the shape (2, 2)"},
		{"parts", x3, func(x *ir.Tensor) *ir.Tensor {
			return all.AllGatherShards(x, 4, 4)
		}, "all-gather at errors_test.go:LINE in graph main of \"in0\" float32 (3,): parts of 3 elements, want 4: 16 " +
			"elements of shape (4, 4) over 4 ranks"},
		{"parts of no shape", x3, func(x *ir.Tensor) *ir.Tensor {
			return all.AllGatherShards(x, -1)
		}, "all-gather at errors_test.go:LINE in graph main of \"in0\" float32 (3,): tensor: shape (-1,): dimension 0 is " +
			"negative"},
		{"joined scalar", spec(tensor.F32), func(x *ir.Tensor) *ir.Tensor {
			return all.AllGatherConcat(x)
		}, "all-gather at errors_test.go:LINE in graph main of \"in0\" float32 (): a tensor without dimensions cannot be " +
			"joined along the first"},
		{"all-to-all shape", x3, func(x *ir.Tensor) *ir.Tensor {
			return all.AllToAll(x)
		}, "all-to-all at errors_test.go:LINE in graph main of \"in0\" float32 (3,): the first dimension of an " +
			"all-to-all is that of the ranks, 4, not as in the shape (3,)"},
		{"root", x3, func(x *ir.Tensor) *ir.Tensor {
			return collective.Comm{Group: group(commgroup.Consecutive, 2, 0)}.Broadcast(x, 2)
		}, "broadcast at errors_test.go:LINE in graph main of \"in0\" float32 (3,): root 2 is not a rank of the " +
			"group, 0 to 1"},
		{"negative root", x3, func(x *ir.Tensor) *ir.Tensor {
			return all.BroadcastInPlace(x, -1)
		}, "broadcast in place at errors_test.go:LINE in graph main of \"in0\" float32 (3,): root -1 is not a rank of the " +
			"group, 0 to 3"},
		{"constant in place", x3, func(x *ir.Tensor) *ir.Tensor {
			return all.AllReduceInPlace(x.Graph().Constant(tensor.Scalar(float32(1))), gcl.Add)
		}, "all-reduce in place at errors_test.go:LINE in graph main of float32 (): %1 is a constant and cannot be " +
			"changed in place"},
	} {
		t.Run(k.name, func(t *testing.T) {
			f := newFixture(t, 4)
			y := k.build(f.input(k.in, func(int, int) float64 { return 0 }))
			all.AllReduceMany([]*ir.Tensor{y, y}, gcl.Add) // what stands for an error gives no other
			_, err := ir.NewSession(f.Program)
			var build *ir.BuildError
			if !errors.As(err, &build) {
				t.Fatalf("%v, want a *BuildError", err)
			}
			if got, want := err.Error(),
				strings.Replace(k.want, "LINE", build.Position.String()[len("errors_test.go:"):],
					1); !strings.HasPrefix(got, "ir: "+want) {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

// TestNil has no tensor at all, which is no panic.
func TestNil(t *testing.T) {
	var all collective.Comm
	all.AllReduce(nil, gcl.Add)
	all.AllGather(all.AllReduce(nil, gcl.Add))
	if got := all.AllReduceMany([]*ir.Tensor{nil, nil}, gcl.Add); len(got) != 2 {
		t.Errorf("%d tensors for 2", len(got))
	}
	if got := append(all.AllGatherMany(nil), all.ReduceScatterMany(nil, gcl.Add)...); got != nil {
		t.Errorf("of nothing: %v", got)
	}
	if got := all.AllReduceMany(nil, gcl.Add); got != nil {
		t.Errorf("%v for none", got)
	}
	f := newFixture(t, 2)
	all.AllReduceMany([]*ir.Tensor{f.input(spec(tensor.F32), func(int, int) float64 { return 0 }), nil}, gcl.Add)
	if f.Err() == nil || !strings.Contains(f.Err().Error(), "input 1 is nil") {
		t.Error(f.Err())
	}
}

// TestReplicasChange changes their number after building.
func TestReplicasChange(t *testing.T) {
	two := collective.Comm{Group: group(commgroup.Consecutive, 2, 0)}
	for _, k := range []struct {
		name  string
		n     int
		build func(x *ir.Tensor) *ir.Tensor
		want  string // "": it works
	}{
		{"all-reduce", 3, func(x *ir.Tensor) *ir.Tensor { return collective.Comm{}.AllReduce(x, gcl.Add) }, ""},
		{"group", 3, func(x *ir.Tensor) *ir.Tensor { return two.AllReduce(x, gcl.Add) },
			"ir: replica 0: all-reduce built at errors_test.go:LINE in graph main, of \"x\": commgroup: 3 replicas " +
				"are not a multiple of size 2: want a size of 1 or 3"},
		{"root", 1, func(x *ir.Tensor) *ir.Tensor { return collective.Comm{}.Broadcast(x, 1) },
			"ir: replica 0: broadcast built at errors_test.go:LINE in graph main, of \"x\": root 1 is not a rank of " +
				"the group, 0 to 0"},
		{"all-gather", 3, func(x *ir.Tensor) *ir.Tensor { return collective.Comm{}.AllGather(x) },
			"ir: replica 0: all-gather built at errors_test.go:LINE in graph main, of \"x\": the output was float32 " +
				"(2, 4) when the program had 2 replicas, and is float32 (3, 4) now that it has 3"},
		{"reduce-scatter", 3, func(x *ir.Tensor) *ir.Tensor { return collective.Comm{}.ReduceScatterShards(x, gcl.Add) }, ""},
		{"reduce-scatter", 4, func(x *ir.Tensor) *ir.Tensor { return collective.Comm{}.ReduceScatterShards(x, gcl.Add) },
			"ir: replica 0: reduce-scatter built at errors_test.go:LINE in graph main, of \"x\": the output was " +
				"float32 (2,) when the program had 2 replicas, and is float32 (1,) now that it has 4"},
		{"all-gather of parts", 3, func(x *ir.Tensor) *ir.Tensor { return collective.Comm{}.AllGatherShards(x, 7) },
			"ir: replica 0: all-gather built at errors_test.go:LINE in graph main, of \"x\": parts of 4 elements, " +
				"want 3: 7 elements of shape (7,) over 3 ranks"},
		{"padding", 3, func(x *ir.Tensor) *ir.Tensor {
			return collective.Comm{}.AllGatherShards(collective.Comm{}.ReduceScatterShards(x, gcl.Add), 4)
		},
			"ir: replica 0: all-gather built at errors_test.go:LINE in graph main: it was built when the program had " +
				"another number of replicas, and not for groups of 3"},
		{"padding of several", 3, func(x *ir.Tensor) *ir.Tensor {
			part := collective.Comm{}.ReduceScatterShards(x, gcl.Add)
			return collective.Comm{}.AllGatherShardsMany([]*ir.Tensor{part, part}, []tensor.Shape{{4}, {4}})[0]
		},
			"ir: replica 0: all-gather built at errors_test.go:LINE in graph main: tensor 0: it was built when the " +
				"program had another number of replicas, and not for groups of 3"},
		{"reduce-scatter of several", 4, func(x *ir.Tensor) *ir.Tensor {
			return collective.Comm{}.ReduceScatterShardsMany([]*ir.Tensor{x}, gcl.Add)[0]
		},
			"ir: replica 0: reduce-scatter built at errors_test.go:LINE in graph main, of \"x\": the output was " +
				"float32 (2,) when the program had 2 replicas, and is float32 (1,) now that it has 4"},
		{"gradient", 4, func(x *ir.Tensor) *ir.Tensor {
			return gradientAlone(x, func(in []*ir.Tensor) []*ir.Tensor {
				return []*ir.Tensor{collective.Comm{}.AllGatherShards(in[0], 4)}
			})
		},
			"ir: replica 0: reduce-scatter built at errors_test.go:LINE in graph gradientAlone_gradient, of " +
				"\"gradient\": parts of 2 elements, want 1 of 4 over 4 ranks"},
		{"gradient of several", 4, func(x *ir.Tensor) *ir.Tensor {
			return gradientAlone(x, func(in []*ir.Tensor) []*ir.Tensor {
				return collective.Comm{}.AllGatherShardsMany([]*ir.Tensor{in[0], in[0]}, []tensor.Shape{{4}, {4}})
			})
		},
			"ir: replica 0: reduce-scatter built at errors_test.go:LINE in graph gradientAlone_gradient, of " +
				"\"gradient\": tensor 0: parts of 2 elements, want 1 of 4 over 4 ranks"},
	} {
		t.Run(k.name, func(t *testing.T) {
			p := ir.New(2)
			x := p.Main().HostLoad(p.HostToDevice("x", spec(tensor.F32, 4)))
			k.build(x)
			if err := p.SetReplicas(k.n); err != nil {
				t.Fatal(err)
			}
			s, err := ir.NewSession(p)
			if k.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				s.Close()
				return
			}
			var run *ir.RunError
			if !errors.As(err, &run) {
				t.Fatalf("%v, want a *RunError", err)
			}
			if want := strings.Replace(k.want, "LINE",
				run.Position.String()[len("errors_test.go:"):], 1); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v\nwant %s", err, want)
			}
		})
	}
}

// gradientAlone adds a call of the gradient of a graph of parts of 2 elements, which the graph makes one of 4, and none
// of the graph.
func gradientAlone(x *ir.Tensor, build func(in []*ir.Tensor) []*ir.Tensor) *ir.Tensor {
	p := x.Graph().Program()
	graph := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return build(in) }, spec(tensor.F32, 2))
	info := ir.Autodiff(graph)
	var in []*ir.Tensor
	for range info.Grads {
		in = append(in, x)
	}
	return x.Graph().Call(info.Graph, in...)[0]
}
