package ir_test

import (
	"context"
	"fmt"
	"log"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// A program is built once: a graph that adds 1, called between a load from the host and a store to it. A session runs
// it.
func Example() {
	p := ir.New(1)
	spec := ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2, 2}}
	in, out := p.HostToDevice("in", spec), p.DeviceToHost("out", spec)

	x := p.Main().HostLoad(in)
	increment := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.AddScalar(in[0], 1)}
	}, x)
	y := p.Main().Call(increment, x)[0]
	p.Main().HostStore(out, y)

	s, err := ir.NewSession(p)
	if err != nil {
		log.Fatal(err) // whatever was wrong with what was built
	}
	defer s.Close()
	data, err := tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	got, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: data})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got[out])
	// Output: float32(2, 2)[[2 3] [4 5]]
}

// The gradient of y = sum of (x @ w)² is a graph of its own, which takes the gradient of y and what it needs of the
// call of the forward graph.
func ExampleAutodiff() {
	p := ir.New(1)
	m := p.Main()
	data, err := tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	weights, err := tensor.FromSlice([]float32{1, 1})
	if err != nil {
		log.Fatal(err)
	}
	x, w := m.Constant(data), p.Variable(weights, ir.VariableName("w"))

	loss := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.ReduceSum(ops.Square(ops.MatMul(in[0], in[1])))}
	}, x, w.Tensor)
	forward := m.CallWithInfo(loss, nil, x, w.Tensor)

	gradient := ir.Autodiff(loss)
	by := gradient.By(forward)
	by[gradient.Grads[0]] = m.Constant(tensor.Scalar(float32(1)))
	grads := m.CallWithInfo(gradient.Graph, by).Outputs() // of x and of w

	y, dw := p.DeviceToHost("y", forward.Outputs()[0].Spec()), p.DeviceToHost("dw", w.Spec())
	m.HostStore(y, forward.Outputs()[0])
	m.HostStore(dw, grads[1])
	s, err := ir.NewSession(p)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	got, err := s.Run(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("y ", got[y])
	fmt.Println("dw", got[dw]) // 2 (3 * [1 2] + 7 * [3 4])
	// Output:
	// y  float32()[58]
	// dw float32(2,)[48 68]
}

// A loop carries what a turn returns to the next one's first inputs; the other inputs stay.
func ExampleGraph_Repeat() {
	p := ir.New(1)
	m := p.Main()
	number := ir.Spec{DType: tensor.I32}
	fibonacci := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{in[1], ops.Add(in[0], in[1])}
	}, number, number)
	turns := m.Repeat(fibonacci, 10, m.Constant(tensor.Scalar(int32(0))), m.Constant(tensor.Scalar(int32(1))))

	out := p.DeviceToHost("out", number)
	m.HostStore(out, turns[0])
	s, err := ir.NewSession(p)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	got, err := s.Run(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got[out])
	// Output: int32()[55]
}

// Each of two replicas adds what it is given to a variable of its own, which stays on the replica from Enter to Exit:
// Within calls both.
func ExampleSession() {
	p := ir.New(2)
	in := p.HostToDevice("in", ir.Spec{DType: tensor.I32})
	sum := p.Variable(tensor.Scalar(int32(100)), ir.VariableName("sum"), ir.AllReplicas())
	ops.Accumulate(sum.Tensor, p.Main().HostLoad(in))

	s, err := ir.NewSession(p)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println("the host gives", s.HostSpec(in)) // one for each replica
	data, err := tensor.FromSlice([]int32{1, 2})
	if err != nil {
		log.Fatal(err)
	}
	err = s.Within(func() error {
		for range 3 {
			if _, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: data}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	value, err := s.Read(sum)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(value)
	// Output:
	// the host gives int32 (2,)
	// int32(2,)[103 106]
}
