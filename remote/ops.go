package remote

import (
	"errors"
	"fmt"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// An entry is said by a number, or computed: an input that is a scalar of int32, int64 or uint32.
type place struct {
	buffer   *Buffer
	offset   int
	computed bool
}

func (p place) String() string {
	if p.computed {
		return fmt.Sprintf("buffer %d", p.buffer.id)
	}
	return fmt.Sprintf("buffer %d entry %d", p.buffer.id, p.offset)
}

// OrderKey implements ir.Ordered: what is done to a buffer is done in the order in which it was built.
func (p place) OrderKey() any { return p.buffer }

// Kind implements ir.Kinded: how drawings colour it.
func (p place) Kind() string { return "remote" }

// check looks at the place, of which an input is the offset if it is computed.
func (p place) check(in []ir.Spec) error {
	if !p.computed {
		return p.buffer.checkOffset(p.offset)
	}
	offset := in[len(in)-1]
	switch offset.DType {
	case tensor.I32, tensor.I64, tensor.U32:
		if len(offset.Shape) == 0 {
			return nil
		}
	}
	return errors.New("the offset must be a scalar of int32, int64 or uint32")
}

// bind finds the entries, and returns a function for the number of the one that is meant.
func (p place) bind(m *ir.Memory) (Entries, func() (int, error), error) {
	s, err := storesOf(m, p.buffer.program)
	if err != nil {
		return nil, nil, err
	}
	e := s.of(m.Replica, p.buffer)
	if !p.computed {
		err := p.buffer.checkOffset(p.offset)
		return e, func() (int, error) { return p.offset, nil }, err
	}
	var value func() int64
	switch t := m.In[len(m.In)-1]; t.DType() {
	case tensor.I32:
		v, _ := tensor.Of[int32](t)
		value = func() int64 { return int64(v[0]) }
	case tensor.I64:
		v, _ := tensor.Of[int64](t)
		value = func() int64 { return int64(v[0]) }
	default:
		v, _ := tensor.Of[uint32](t)
		value = func() int64 { return int64(v[0]) }
	}
	return e, func() (int, error) {
		k := value()
		if int64(int(k)) != k {
			return 0, p.buffer.noEntry(k)
		}
		return int(k), p.buffer.checkOffset(int(k))
	}, nil
}

// entry is what ir.Storer asks for.
func (p place) entry() (at, of int) {
	if p.computed {
		return -1, p.buffer.entries
	}
	return p.offset, p.buffer.entries
}

// loadOp loads an entry.
type loadOp struct{ place }

// Entry implements ir.Storer.
func (o *loadOp) Entry() (at, of int, stores bool) {
	at, of = o.entry()
	return at, of, false
}

func (o *loadOp) Name() string   { return "remote load" }
func (o *loadOp) String() string { return "remote load " + o.place.String() }

func (o *loadOp) Infer(in []ir.Spec) ([]ir.Spec, error) {
	if err := o.check(in); err != nil {
		return nil, err
	}
	return []ir.Spec{o.buffer.spec}, nil
}

func (o *loadOp) Bind(m *ir.Memory) (func() error, error) {
	e, offset, err := o.bind(m)
	if err != nil {
		return nil, err
	}
	dst := m.Out[0].Bytes()
	return func() error {
		k, err := offset()
		if err != nil {
			return err
		}
		return e.Load(k, dst)
	}, nil
}

// loadIntoOp loads an entry into a tensor where it lies.
type loadIntoOp struct{ loadOp }

func (o *loadIntoOp) Updates() []int { return []int{0} }

func (o *loadIntoOp) Infer(in []ir.Spec) ([]ir.Spec, error) {
	if err := o.buffer.Validate(in[0], 1); err != nil {
		return nil, err
	}
	return o.loadOp.Infer(in)
}

// storeOp stores a tensor to an entry.
type storeOp struct{ place }

// Entry implements ir.Storer.
func (o *storeOp) Entry() (at, of int, stores bool) {
	at, of = o.entry()
	return at, of, true
}

func (o *storeOp) Name() string   { return "remote store" }
func (o *storeOp) String() string { return "remote store " + o.place.String() }

func (o *storeOp) Infer(in []ir.Spec) ([]ir.Spec, error) {
	if err := o.buffer.Validate(in[0], 1); err != nil {
		return nil, err
	}
	return nil, o.check(in)
}

func (o *storeOp) Bind(m *ir.Memory) (func() error, error) {
	e, offset, err := o.bind(m)
	if err != nil {
		return nil, err
	}
	src := m.In[0].Bytes()
	return func() error {
		k, err := offset()
		if err != nil {
			return err
		}
		return e.Store(k, src)
	}, nil
}

// Load adds a load of an entry to a graph, and returns what is loaded, a new tensor. Errors, which stick to the
// program: no buffer, one of another program, an entry that does not exist.
func Load(g *ir.Graph, b *Buffer, offset int) *ir.Tensor {
	return apply1(&loadOp{place{buffer: b, offset: offset}}, b, g)
}

// LoadAt is Load of an entry whose number is computed: a scalar of int32, int64 or uint32. That there is no such entry
// is an error of the run.
func LoadAt(b *Buffer, offset *ir.Tensor) *ir.Tensor {
	return apply1(&loadOp{place{buffer: b, computed: true}}, b, nil, offset)
}

// LoadInto adds a load of an entry into a tensor where it lies, and returns the tensor as it is from then on. It must
// be of the buffer's spec; other errors are those of Load.
func LoadInto(dst *ir.Tensor, b *Buffer, offset int) *ir.Tensor {
	return apply1(&loadIntoOp{loadOp{place{buffer: b, offset: offset}}}, b, nil, dst)
}

// LoadIntoAt is LoadInto of an entry whose number is computed.
func LoadIntoAt(dst *ir.Tensor, b *Buffer, offset *ir.Tensor) *ir.Tensor {
	return apply1(&loadIntoOp{loadOp{place{buffer: b, computed: true}}}, b, nil, dst, offset)
}

// Store adds a store of a tensor to an entry; its arguments stand as those of LoadInto. It must be of the buffer's
// spec; other errors are those of Load. Loads and stores of one buffer run in the order in which they are built.
func Store(t *ir.Tensor, b *Buffer, offset int) {
	apply1(&storeOp{place{buffer: b, offset: offset}}, b, nil, t)
}

// StoreAt is Store to an entry whose number is computed.
func StoreAt(t *ir.Tensor, b *Buffer, offset *ir.Tensor) {
	apply1(&storeOp{place{buffer: b, computed: true}}, b, nil, t, offset)
}

// apply1 adds an operation on a buffer, and returns its output or nil.
func apply1(op ir.Op, b *Buffer, g *ir.Graph, in ...*ir.Tensor) *ir.Tensor {
	for _, t := range in {
		if g == nil && t != nil {
			g = t.Graph()
		}
	}
	switch {
	case g == nil && b != nil && b.program != nil:
		b.program.Fail(op.Name(), errors.New("neither a graph nor a tensor of one"))
		return nil
	case g == nil:
		return ir.Apply1(op, nil, in...)
	case g != nil && b == nil:
		return ir.Apply1(refusedOp{op.Name(), errors.New("no buffer")}, g)
	case g != nil && b.program != g.Program():
		return ir.Apply1(refusedOp{op.Name(), fmt.Errorf("buffer %d is of another program", b.id)}, g)
	}
	if b != nil {
		b.used = true
	}
	if out := ir.Apply(op, g, in...); len(out) > 0 {
		return out[0]
	}
	return nil
}

// refusedOp is an operation that cannot be.
type refusedOp struct {
	name string
	err  error
}

func (o refusedOp) Name() string                          { return o.name }
func (o refusedOp) Infer([]ir.Spec) ([]ir.Spec, error)    { return nil, o.err }
func (o refusedOp) Bind(*ir.Memory) (func() error, error) { return nil, o.err }
