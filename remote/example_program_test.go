package remote_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// A variable lives in a remote buffer: it is loaded, 2 is added to it in place, and what that gives is stored.
func ExampleVariable() {
	p := ir.New(1)
	number := ir.Spec{DType: tensor.I32}
	x := remote.NewVariable(p, tensor.Scalar(int32(1)), remote.NewBuffer(p, number, 1), 0, remote.Name("x"))
	out := p.DeviceToHost("out", number)

	loaded := x.Load(p.Main())
	loaded = ops.Accumulate(loaded, p.Main().Constant(tensor.Scalar(int32(2))))
	x.Store(loaded)
	p.Main().HostStore(out, loaded)

	s, err := ir.NewSession(p)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	got, err := s.Run(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	stored, err := x.Read(s)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("output", got[out])
	fmt.Println("stored", stored)
	// Output:
	// output int32()[3]
	// stored int32()[3]
}

// While one entry is added up, the next is loaded beside it.
func ExamplePrefetch() {
	p := ir.New(1)
	m := p.Main()
	number := ir.Spec{DType: tensor.I32}
	buffer := remote.NewBuffer(p, number, 3)
	for i, v := range []int32{1, 20, 300} {
		remote.NewVariable(p, tensor.Scalar(v), buffer, i)
	}
	out := p.DeviceToHost("sum", number)
	m.InSequence(func() {
		sum := remote.Load(m, buffer, 0)
		for i := 1; i < buffer.Entries(); i++ {
			next := remote.Prefetch(m, buffer, i)
			sum = ops.AddScalar(sum, 0) // what runs beside the load
			sum = ops.Add(sum, next.Wait())
		}
		m.HostStore(out, sum)
	})
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
	// Output: int32()[321]
}

// Two programs use the files of one directory. The second makes its variables in another order, and each finds its
// value by name.
func ExampleBuffer_Named() {
	dir, err := os.MkdirTemp("", "remote")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	number := ir.Spec{DType: tensor.I32}
	program := func(names ...string) {
		p := ir.New(1)
		remote.UseStorage(p, remote.Dir(dir))
		var variables []*remote.Variable
		for i, name := range names {
			buffer := remote.NewBuffer(p, number).Named(name)
			variables = append(variables, remote.NewVariable(p, tensor.Scalar(int32(i)), buffer, 0))
		}
		s, err := ir.NewSession(p)
		if err != nil {
			log.Fatal(err)
		}
		for i, v := range variables {
			value, err := v.Read(s)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(names[i], value)
		}
		if err := s.Close(); err != nil {
			log.Fatal(err)
		}
	}
	program("zero", "one")
	program("one", "zero")
	// Output:
	// zero int32()[0]
	// one int32()[1]
	// one int32()[1]
	// zero int32()[0]
}
