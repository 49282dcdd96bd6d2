package collective_test

import (
	"context"
	"fmt"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func spec(d tensor.DType, shape ...int) ir.Spec { return ir.Spec{DType: d, Shape: shape} }

func group(t commgroup.Type, size, stride int) commgroup.Group {
	return commgroup.Group{Type: t, Size: size, Stride: stride}
}

// groupsOf are groups for so many replicas.
func groupsOf(replicas int) []commgroup.Group {
	all := []commgroup.Group{{}, group(commgroup.Consecutive, 1, 0)}
	if replicas == 4 {
		all = append(all, group(commgroup.Consecutive, 2, 0), group(commgroup.Consecutive, 2, 2),
			group(commgroup.Orthogonal, 2, 0), must(commgroup.Lists([][]int{{0, 3}, {1, 2}})))
	}
	return all
}

// fixture is a program with its inputs and outputs, whose data is by replica.
type fixture struct {
	*ir.Program
	t   testing.TB
	in  map[*ir.Stream]*tensor.Tensor
	out []*ir.Stream
}

func newFixture(t testing.TB, replicas int) *fixture {
	return &fixture{Program: ir.New(replicas), t: t, in: map[*ir.Stream]*tensor.Tensor{}}
}

// input is a tensor of the main graph, whose element i on replica r is value(r, i).
func (f *fixture) input(s ir.Spec, value func(replica, i int) float64) *ir.Tensor {
	f.t.Helper()
	n := f.Replicas()
	stream := f.HostToDevice(fmt.Sprintf("in%d", len(f.in)), s)
	shape := s.Shape
	if n > 1 {
		shape = append(tensor.Shape{n}, shape...)
	}
	data := must(tensor.New(s.DType, shape...))
	for k := range data.Len() {
		setElement(data, k, value(k/s.Elements(), k%s.Elements()))
	}
	f.in[stream] = data
	return f.Main().HostLoad(stream)
}

// output is the number of an output of the program.
func (f *fixture) output(t *ir.Tensor) int {
	s := f.DeviceToHost(fmt.Sprintf("out%d", len(f.out)), t.Spec())
	f.out = append(f.out, s)
	f.Main().HostStore(s, t)
	return len(f.out) - 1
}

// session makes a session, which the test closes.
func (f *fixture) session() *ir.Session {
	f.t.Helper()
	s, err := ir.NewSession(f.Program)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.t.Error(err)
		}
	})
	return s
}

// run runs the program once, and returns by output and replica its elements.
func (f *fixture) run() [][][]float64 {
	f.t.Helper()
	return f.runIn(f.session())
}

func (f *fixture) runIn(s *ir.Session) [][][]float64 {
	f.t.Helper()
	got, err := s.Run(context.Background(), f.in)
	if err != nil {
		f.t.Fatal(err)
	}
	var out [][][]float64
	for _, stream := range f.out {
		out = append(out, byReplica(got[stream], f.Replicas()))
	}
	return out
}

// byReplica is the elements of a tensor of all replicas.
func byReplica(t *tensor.Tensor, replicas int) [][]float64 {
	out := make([][]float64, replicas)
	for r := range out {
		out[r] = []float64{}
	}
	for k := range t.Len() {
		r := k / (t.Len() / replicas)
		out[r] = append(out[r], element(t, k))
	}
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// element is an element as a number: true is 1.
func element(t *tensor.Tensor, i int) float64 {
	switch t.DType() {
	case tensor.Bool:
		if must(tensor.Of[bool](t))[i] {
			return 1
		}
		return 0
	case tensor.I8:
		return float64(must(tensor.Of[int8](t))[i])
	case tensor.I16:
		return float64(must(tensor.Of[int16](t))[i])
	case tensor.I32:
		return float64(must(tensor.Of[int32](t))[i])
	case tensor.I64:
		return float64(must(tensor.Of[int64](t))[i])
	case tensor.U8:
		return float64(must(tensor.Of[uint8](t))[i])
	case tensor.U16:
		return float64(must(tensor.Of[uint16](t))[i])
	case tensor.U32:
		return float64(must(tensor.Of[uint32](t))[i])
	case tensor.U64:
		return float64(must(tensor.Of[uint64](t))[i])
	case tensor.F16:
		return float64(must(tensor.Of[tensor.Float16](t))[i].Float32())
	case tensor.BF16:
		return float64(must(tensor.Of[tensor.BFloat16](t))[i].Float32())
	case tensor.F32:
		return float64(must(tensor.Of[float32](t))[i])
	}
	return must(tensor.Of[float64](t))[i]
}

// setElement sets an element to a number: bool to whether it is odd.
func setElement(t *tensor.Tensor, i int, v float64) {
	switch t.DType() {
	case tensor.Bool:
		must(tensor.Of[bool](t))[i] = int(v)%2 != 0
	case tensor.I8:
		must(tensor.Of[int8](t))[i] = int8(v)
	case tensor.I16:
		must(tensor.Of[int16](t))[i] = int16(v)
	case tensor.I32:
		must(tensor.Of[int32](t))[i] = int32(v)
	case tensor.I64:
		must(tensor.Of[int64](t))[i] = int64(v)
	case tensor.U8:
		must(tensor.Of[uint8](t))[i] = uint8(v)
	case tensor.U16:
		must(tensor.Of[uint16](t))[i] = uint16(v)
	case tensor.U32:
		must(tensor.Of[uint32](t))[i] = uint32(v)
	case tensor.U64:
		must(tensor.Of[uint64](t))[i] = uint64(v)
	case tensor.F16:
		must(tensor.Of[tensor.Float16](t))[i] = tensor.Float16FromFloat32(float32(v))
	case tensor.BF16:
		must(tensor.Of[tensor.BFloat16](t))[i] = tensor.BFloat16FromFloat32(float32(v))
	case tensor.F32:
		must(tensor.Of[float32](t))[i] = float32(v)
	case tensor.F64:
		must(tensor.Of[float64](t))[i] = v
	}
}
