package show_test

import (
	"fmt"
	"os"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/ir/show"
	"gogcl.dev/tensor"
)

// line multiplies, adds, and cuts off below 0.
func line(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ops.Relu(ops.Add(ops.MatMul(in[0], in[1]), in[2]))}
}

func Example() {
	p := ir.New(1)
	f32 := func(shape ...int) ir.Spec { return ir.Spec{Shape: shape, DType: tensor.F32} }
	m, in, out := p.Main(), p.HostToDevice("x", f32(8, 2)), p.DeviceToHost("y", f32(8, 2))
	weights, _ := tensor.New(tensor.F32, 2, 2)
	bias, _ := tensor.New(tensor.F32, 2)
	w, b := p.Variable(weights, ir.VariableName("w")), p.Variable(bias, ir.VariableName("b"))
	x := m.HostLoad(in)
	y := m.Call(p.CreateGraph(line, x, w.Tensor, b.Tensor), x, w.Tensor, b.Tensor)[0]
	m.HostStore(out, y)
	ops.ScaledAdd(b.Tensor, ops.ReduceMean(y, 0), -0.1)
	if err := show.DOT(os.Stdout, m); err != nil { // dot -Tsvg draws it: docs/graph.svg
		fmt.Println(err)
	}
	fmt.Print(show.Code(p))
	// Output:
	// digraph {
	//   node [shape=box style="rounded,filled" fillcolor=white fontname="sans-serif" fontsize=11]
	//   edge [fontname="sans-serif" fontsize=9 color="#555555"]
	//   graph [fontname="sans-serif" fontsize=11 style=rounded color="#888888" label="graph main"]
	//   n0 [label="variable \"w\"\nexample_test.go:24" shape=cylinder]
	//   n1 [label="variable \"b\"\nexample_test.go:24" shape=cylinder]
	//   n2 [label="host load \"x\"\nexample_test.go:25" shape=parallelogram style=filled]
	//   subgraph cluster0 {
	//     label="call line\nexample_test.go:26"
	//     n3 [label="input 0" shape=oval]
	//     n4 [label="input 1" shape=oval]
	//     n5 [label="input 2" shape=oval]
	//     n6 [label="matmul\nexample_test.go:15"]
	//     n3 -> n6 [label="%3.x\nfloat32 (8, 2)"]
	//     n4 -> n6 [label="%4.w\nfloat32 (2, 2)"]
	//     n7 [label="add\nexample_test.go:15"]
	//     n6 -> n7 [label="%6\nfloat32 (8, 2)"]
	//     n5 -> n7 [label="%5.b\nfloat32 (2,)"]
	//     n8 [label="relu\nexample_test.go:15"]
	//     n7 -> n8 [label="%7\nfloat32 (8, 2)"]
	//     n9 [label="output 0" shape=oval]
	//     n8 -> n9 [label="%8\nfloat32 (8, 2)"]
	//   }
	//   n2 -> n3 [label="%2.x\nfloat32 (8, 2)"]
	//   n0 -> n4 [label="%0.w\nfloat32 (2, 2)"]
	//   n1 -> n5 [label="%1.b\nfloat32 (2,)"]
	//   n10 [label="host store \"y\"\nexample_test.go:27" shape=parallelogram style=filled]
	//   n9 -> n10 [label="%9\nfloat32 (8, 2)"]
	//   n11 [label="reduce mean\nexample_test.go:28"]
	//   n9 -> n11 [label="%9\nfloat32 (8, 2)"]
	//   n12 [label="scaled add -0.1\nexample_test.go:28"]
	//   n1 -> n12 [label="%1.b\nfloat32 (2,)" color="#c00000"]
	//   n11 -> n12 [label="%10\nfloat32 (2,)"]
	// }
	// code, estimated: 2976 bytes at most
	//   main  1440  always live
	//   line  1536  always live
	// host load "x"    2976  main line
	// call line        2976  main line
	//   matmul         2976  main line
	//   add            2976  main line
	//   relu           2976  main line
	// host store "y"   2976  main line
	// reduce mean      2976  main line
	// scaled add -0.1  2976  main line
}
