package rts_test

import (
	"context"
	"fmt"
	"log"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// Two replicas keep a half of a tensor each. They gather it, add to the whole, and store their halves again.
func ExampleRemoteVariable() {
	p := ir.New(2)
	data, err := tensor.FromSlice([]int32{1, 2}, 2)
	if err != nil {
		log.Fatal(err)
	}
	buffer := remote.NewBuffer(p, ir.Spec{DType: tensor.I32, Shape: tensor.Shape{1}})
	x := rts.RemoteVariable(p, data, buffer, 0, rts.Sharding{}, remote.Name("x"))

	more, err := tensor.FromSlice([]int32{3, 4}, 2)
	if err != nil {
		log.Fatal(err)
	}
	whole := x.Gather(x.Load(p.Main()))
	sum := ops.Add(whole, p.Main().Constant(more))
	x.Store(x.Sharding().Shard(sum))

	s, err := ir.NewSession(p)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run(context.Background(), nil); err != nil {
		log.Fatal(err)
	}
	got, err := x.Read(s)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)
	// Output: int32(2,)[4 6]
}

// The same with a variable that is loaded and stored by itself: the program works on the shards.
func ExampleNewVariable() {
	p := ir.New(2)
	data, err := tensor.FromSlice([]int32{1, 2}, 2)
	if err != nil {
		log.Fatal(err)
	}
	x, shard := rts.NewVariable(p, data, rts.Sharding{}, remote.Name("x"))

	more, err := tensor.FromSlice([]int32{3, 4}, 2)
	if err != nil {
		log.Fatal(err)
	}
	ops.Accumulate(shard, rts.Sharding{}.Shard(p.Main().Constant(more)))

	s, err := ir.NewSession(p)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run(context.Background(), nil); err != nil {
		log.Fatal(err)
	}
	got, err := x.Read(s)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)
	// Output: int32(2,)[4 6]
}

// A model of one layer, y = w x, learns that w is 3, on four replicas of which each has a quarter of w and of what Adam
// keeps of it.
func ExampleTrainer() {
	const n = 8
	p := ir.New(4)
	main := p.Main()
	zeros, err := tensor.New(tensor.F32, n)
	if err != nil {
		log.Fatal(err)
	}
	w := rts.RemoteVariable(p, zeros, remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{n / 4}}), 0,
		rts.Sharding{}, remote.Name("w"))
	x := p.HostToDevice("x", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{n}})
	number := p.HostToAll("step", ir.Spec{DType: tensor.I32})
	loss := p.DeviceToHost("loss", ir.Spec{DType: tensor.F32})

	model := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		x, w := in[0], in[1]
		return []*ir.Tensor{ops.ReduceMean(ops.Square(ops.Sub(ops.Mul(w, x), ops.MulScalar(x, 3))))}
	}, x.Spec(), w.Spec())
	step := rts.Trainer{Optimizer: rts.Adam{}}.Step([]rts.Layer{
		{Graph: model, Inputs: []*ir.Tensor{main.HostLoad(x)}, Params: []*rts.Variable{w}},
	}, main.Constant(tensor.Scalar(float32(0.1))), main.HostLoad(number))
	main.HostStore(loss, step.Outputs[0])

	s, err := ir.NewSession(p)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for i := range 201 {
		xs, err := tensor.New(tensor.F32, 4, n)
		if err != nil {
			log.Fatal(err)
		}
		v, err := tensor.Of[float32](xs)
		if err != nil {
			log.Fatal(err)
		}
		for k := range v {
			v[k] = float32((k+i)%5 - 2)
		}
		got, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{
			x: xs, number: tensor.Scalar(int32(i + 1)),
		})
		if err != nil {
			log.Fatal(err)
		}
		if i%100 == 0 {
			losses, err := tensor.Of[float32](got[loss])
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("step %3d: loss %.4f\n", i, losses[0])
		}
	}
	// Output:
	// step   0: loss 16.8750
	// step 100: loss 0.0007
	// step 200: loss 0.0000
}

// The same kind of model, in steps of four micro-batches on two replicas: its gradients are reduced once a step. The
// stream has one dimension more than the model's graph, and w, which begins as 0, comes to be 1/2 of what it should be:
// the gradient is that of the mean over all eight samples.
func ExampleTrainer_accumulate() {
	const micro = 4
	p := ir.New(2)
	main := p.Main()
	zero, err := tensor.New(tensor.F32, 1)
	if err != nil {
		log.Fatal(err)
	}
	w := rts.RemoteVariable(p, zero, remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{1}}), 0,
		rts.Sharding{}, remote.Name("w"))
	x := p.HostToDevice("x", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{micro, 1}})
	loss := p.DeviceToHost("loss", ir.Spec{DType: tensor.F32})

	model := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		x, w := in[0], in[1]
		return []*ir.Tensor{ops.ReduceMean(ops.Square(ops.Sub(ops.Mul(w, x), ops.MulScalar(x, 3))))}
	}, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{1}}, w.Spec())
	step := rts.Trainer{Optimizer: rts.SGD{}, Accumulate: micro}.Step([]rts.Layer{
		{Graph: model, Inputs: []*ir.Tensor{main.HostLoad(x)}, Params: []*rts.Variable{w}},
	}, main.Constant(tensor.Scalar(float32(0.25))), main.Constant(tensor.Scalar(int32(1))))
	main.HostStore(loss, step.Outputs[0])

	s, err := ir.NewSession(p)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	xs, err := tensor.FromSlice([]float32{1, -1, 1, -1, 1, 1, -1, -1}, 2, micro, 1)
	if err != nil {
		log.Fatal(err)
	}
	got, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{x: xs})
	if err != nil {
		log.Fatal(err)
	}
	now, err := w.Read(s)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got[loss], now)
	// Output: float32(2,)[9 9] float32(1,)[1.5]
}
