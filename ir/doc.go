// Package ir builds programs of tensors once, and runs them on every replica.
//
// A [Program] has a number of replicas and a main [Graph]. Plain functions on tensors add operations to the graph of
// their inputs: Add(x, MatMul(y, w)). [Program.CreateGraph] makes a graph that others call. A [Session] runs the main
// graph on every replica, each on a goroutine of its own with memory of its own; data goes in and out by streams, and
// stays in variables.
//
//	p := ir.New(1)
//	spec := ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2, 2}}
//	in, out := p.HostToDevice("in", spec), p.DeviceToHost("out", spec)
//
//	x := p.Main().HostLoad(in)
//	increment := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
//		return []*ir.Tensor{ops.AddScalar(in[0], 1)}
//	}, x)
//	y := p.Main().Call(increment, x)[0]
//	p.Main().HostStore(out, y)
//
//	s, err := ir.NewSession(p)
//	if err != nil {
//		log.Fatal(err) // whatever was wrong with what was built
//	}
//	defer s.Close()
//	data, err := tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
//	if err != nil {
//		log.Fatal(err)
//	}
//	got, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: data})
//	if err != nil {
//		log.Fatal(err)
//	}
//	fmt.Println(got[out])
//
// It prints float32(2, 2)[[2 3] [4 5]].
//
// # Memory
//
// What is built has no data: a [Tensor] is a place in a program. Data is a tensor.Tensor, on the host: what is given to
// [Program.Variable] and [Graph.Constant] is copied, what is given to [Session.Run] is read during the run and not
// kept, and what Run and [Session.Read] return is the caller's. Each replica has memory of its own for variables and
// for what is alive for a while; a session makes all of it at once, and running takes no more. [Session.Report] says
// what for.
//
// # Errors
//
// Building does not fail at once: the first error sticks to the program, every tensor that depends on it is of no use,
// and NewSession returns it, with the operation, the names and shapes of its inputs, and the lines of the caller's code
// that led there.
//
// # Order
//
// Operations run in any order that respects the data: a tensor is made before it is read, and what changes one in place
// comes after all that were built before to read it and before all that were built after. Within [Graph.InSequence]
// they run in the order in which they were built. What [Graph.Start] calls runs beside what comes between it and
// [Started.Wait].
package ir
