package collective

import (
	"fmt"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// call is a collective of gcl on one tensor, whose shape does not matter.
type call struct {
	collective schedule.Collective
	operator   gcl.Operator
	root       int
	dst, src   *tensor.Tensor
}

// bind returns what carries out the call.
func (k call) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	of := typed[k.src.DType()]
	if of == nil || k.dst.DType() != k.src.DType() {
		return nil, fmt.Errorf("no collective of %v and %v", k.dst.DType(), k.src.DType())
	}
	return of(k, m, c)
}

// typed has bindTo for each element type.
var typed = map[tensor.DType]func(k call, m *ir.Memory, c *gcl.Comm) (func() error, error){
	tensor.Bool: bindTo[bool],
	tensor.I8:   bindTo[int8], tensor.I16: bindTo[int16], tensor.I32: bindTo[int32], tensor.I64: bindTo[int64],
	tensor.U8: bindTo[uint8], tensor.U16: bindTo[uint16], tensor.U32: bindTo[uint32], tensor.U64: bindTo[uint64],
	tensor.F16: bindTo[tensor.Float16], tensor.BF16: bindTo[tensor.BFloat16],
	tensor.F32: bindTo[float32], tensor.F64: bindTo[float64],
}

func bindTo[T tensor.Element](k call, m *ir.Memory, c *gcl.Comm) (func() error, error) {
	dst, err := tensor.Of[T](k.dst)
	if err != nil {
		return nil, err
	}
	src, err := tensor.Of[T](k.src)
	if err != nil {
		return nil, err
	}
	carry := map[schedule.Collective]func() error{
		schedule.AllReduce:     func() error { return gcl.AllReduceTo(m.Context(), c, dst, src, k.operator) },
		schedule.ReduceScatter: func() error { return gcl.ReduceScatterTo(m.Context(), c, dst, src, k.operator) },
		schedule.AllGather:     func() error { return gcl.AllGatherTo(m.Context(), c, dst, src) },
		schedule.AllToAll:      func() error { return gcl.AllToAllTo(m.Context(), c, dst, src) },
		schedule.Broadcast:     func() error { return gcl.BroadcastTo(m.Context(), c, dst, src, k.root) },
	}[k.collective]
	if carry == nil {
		return nil, fmt.Errorf("%v is no operation of graphs", k.collective)
	}
	return carry, nil
}
