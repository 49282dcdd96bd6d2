package remote

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/commgroup"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Variable is a value at an entry of a buffer, which every replica has of its own and begins with, or its shard of it.
type Variable struct {
	name   string
	buffer *Buffer
	offset int
	host   ir.Spec          // of what it begins with, in the host's shape; invalid after an error
	data   *tensor.Tensor   // what it begins with; nil with a FirstValue, or once it is given up
	first  *firstValue      // nil: data
	groups commgroup.Group  // of replicas that begin with the same value
	gather *commgroup.Group // of replicas that have one value together; nil: each has all of it
	all    bool
	dtype  tensor.DType
	typed  bool // dtype is given
	wide   bool
	late   bool // it was made when a session had its buffers already
}

// VariableOption says something about a variable.
type VariableOption func(*Variable)

// Name gives a variable a name, which errors have, and the buffer too if that has none: see Buffer.Named.
func Name(name string) VariableOption { return func(v *Variable) { v.name = name } }

// DType converts the data to an element type. A number that it does not have is an error, but that floats round: once,
// to nearest even: see tensor.ConvertChecked.
func DType(d tensor.DType) VariableOption {
	return func(v *Variable) { v.dtype, v.typed = d, true }
}

// KeepWide keeps data of 64 bits as it is, where without it and without DType it becomes data of 32 bits.
func KeepWide() VariableOption { return func(v *Variable) { v.wide = true } }

// AllReplicas has Read read a variable from all replicas, or all gather groups if it is sharded.
func AllReplicas() VariableOption { return func(v *Variable) { v.all = true } }

// NewVariable makes a variable at an entry of a buffer. A number is a tensor.Scalar. Float64 becomes float32, int64
// int32 and uint64 uint32, unless an option says otherwise; after that the data must be of the buffer's spec, or as
// Groups and Sharded say. Where the storage has a value for the entry already, from a process before, it stays. Errors
// stick to the program: no data or buffer, an entry that does not exist, another shape or element type, groups that the
// number of replicas does not allow.
//
// The data is copied, and the copy kept for further sessions of the program, which begin with it too. With a [Dir] it
// is given up once a session has stored it, because the next one finds it in the files; if that is then told to use
// another storage, which has no value, it is an error. FirstValue, with nil for data, needs no copy.
func NewVariable(p *ir.Program, data *tensor.Tensor, b *Buffer, offset int, options ...VariableOption) *Variable {
	v := &Variable{buffer: b, offset: offset}
	for _, o := range options {
		if o != nil {
			o(v)
		}
	}
	if p == nil {
		return v
	}
	if err := v.set(p, data); err != nil {
		if v.name != "" {
			err = fmt.Errorf("%q: %w", v.name, err)
		}
		p.Fail("remote variable", err)
		return v
	}
	b.used = true
	of(p).initial = append(of(p).initial, v)
	return v
}

// called is the variable with its name, if it has one.
func (v *Variable) called() string {
	if v.name == "" {
		return "a variable without a name"
	}
	return fmt.Sprintf("variable %q", v.name)
}

// label names the variable in an error: by its name, else by where it is.
func (v *Variable) label() string {
	if v.name != "" || v.buffer == nil {
		return v.called()
	}
	return fmt.Sprintf("the variable at entry %d of buffer %d (made without remote.Name)", v.offset, v.buffer.id)
}

func (v *Variable) set(p *ir.Program, data *tensor.Tensor) error {
	switch {
	case v.buffer == nil:
		return errors.New("no buffer")
	case v.buffer.program != p:
		return fmt.Errorf("buffer %d is of another program", v.buffer.id)
	}
	if len(of(p).open) > 0 {
		v.late = true
		return errSession
	}
	if err := v.buffer.checkOffset(v.offset); err != nil {
		return err
	}
	for _, o := range of(p).initial {
		if o.buffer == v.buffer && o.offset == v.offset {
			return fmt.Errorf("entry %d of buffer %d has %s already", v.offset, v.buffer.id, o.called())
		}
	}
	if v.typed && !v.dtype.Valid() {
		return fmt.Errorf("element type %v does not exist", v.dtype)
	}
	host, err := v.hostSpec(data)
	if err != nil {
		return err
	}
	var converted *tensor.Tensor
	if data != nil {
		if converted, err = v.convert(data); err != nil {
			return err
		}
	}
	d, err := v.divide(host, p.Replicas())
	if err != nil {
		return err
	}
	if v.gather != nil {
		if err := v.buffer.SetMetaShape(d.full.Shape); err != nil {
			return err
		}
	}
	if err := v.buffer.nameBy(v); err != nil {
		return err
	}
	v.host, v.data = host, converted
	return nil
}

// narrow is what data of 64 bits becomes.
var narrow = map[tensor.DType]tensor.DType{tensor.F64: tensor.F32, tensor.I64: tensor.I32, tensor.U64: tensor.U32}

// Options are what some VariableOptions say together, for packages that make variables of their own out of these.
type Options struct{ v Variable }

// OptionsOf puts options together. One that is nil says nothing.
func OptionsOf(options ...VariableOption) Options {
	var o Options
	for _, option := range options {
		if option != nil {
			option(&o.v)
		}
	}
	return o
}

// ElementType returns the element type of a variable with these options whose data is of d.
func (o Options) ElementType(d tensor.DType) tensor.DType { return o.v.element(d) }

// Spec returns the spec of what a variable with these options begins with: that of data in the variable's element type,
// or if data is nil that of FirstValue.
func (o Options) Spec(data *tensor.Tensor) (ir.Spec, error) { return o.v.hostSpec(data) }

// Divided reports whether Groups or Sharded is among the options.
func (o Options) Divided() bool { return o.v.gather != nil || o.v.groups != (commgroup.Group{}) }

func (v *Variable) element(of tensor.DType) tensor.DType {
	if v.typed {
		return v.dtype
	}
	if n, is := narrow[of]; is && !v.wide {
		return n
	}
	return of
}

// convert gives data the element type that it is to have, in memory of its own.
func (v *Variable) convert(data *tensor.Tensor) (*tensor.Tensor, error) {
	to := v.element(data.DType())
	if to == data.DType() {
		return data.Clone(), nil
	}
	out, err := tensor.New(to, data.Shape()...)
	if err != nil {
		return nil, err
	}
	if err := tensor.ConvertChecked(out, data); err != nil {
		return nil, fmt.Errorf("data of %v: %w", data.DType(), err)
	}
	return out, nil
}

// Name returns the variable's name, or "" if it has none.
func (v *Variable) Name() string {
	if v == nil {
		return ""
	}
	return v.name
}

// Buffer returns the buffer that the variable is in, and the entry.
func (v *Variable) Buffer() (b *Buffer, offset int) {
	if v == nil {
		return nil, 0
	}
	return v.buffer, v.offset
}

// Load adds a load of the variable to a graph, and returns what is loaded, a new tensor of the buffer's spec.
func (v *Variable) Load(g *ir.Graph) *ir.Tensor {
	b, offset := v.Buffer()
	return Load(g, b, offset).Named(v.Name())
}

// Store adds a store of a tensor to the variable. It must be of the buffer's spec.
func (v *Variable) Store(t *ir.Tensor) {
	b, offset := v.Buffer()
	Store(t, b, offset)
}

// Read returns a copy, the caller's, of the variable's value in a session: in the shape of the data that it was made
// with, from the first replica of each group, or with AllReplicas of one value for each replica, with a leading
// dimension if there are several. A sharded one is put together of its shards, those of the first gather group of each
// group, or with AllReplicas of each gather group. It must not be called while the session runs.
//
// In a job (see ir.WithJob) it is the value of this process's replica. That of a sharded variable is gathered from the
// replicas that have it together, which is a collective: all processes call Read, in the same order.
func (v *Variable) Read(s *ir.Session) (*tensor.Tensor, error) {
	stores, d, err := v.in(s)
	if err != nil {
		return nil, err
	}
	if ctx, j := s.Job(); j != nil {
		out, err := v.readOf(ctx, j, stores, d)
		if err != nil {
			return nil, fmt.Errorf("remote: %s: %w", v.label(), err)
		}
		return out, nil
	}
	host := d.host(d.values)
	if v.all {
		host = d.host(d.gather)
	}
	out, err := tensor.New(host.DType, host.Shape...)
	if err != nil {
		return nil, fmt.Errorf("remote: %s: %w", v.label(), err)
	}
	shard := make([]byte, d.shard.Bytes())
	for r := range d.gather.Replicas() {
		k := d.copyOf(r, v.all)
		if !v.all && d.gather.GroupOf(r) != d.gather.GroupOf(d.values.Member(k, 0)) {
			continue // not the group's first
		}
		if err := stores.of(r, v.buffer).Load(v.offset, shard); err != nil {
			return nil, fmt.Errorf("remote: %s: %w", v.label(), err)
		}
		copy(d.part(out, k, d.gather.RankOf(r)), shard)
	}
	return out, nil
}

// readOf is Read in a job.
func (v *Variable) readOf(ctx context.Context, j ir.Job, stores *stores, d division) (*tensor.Tensor, error) {
	n := d.shard.Bytes()
	memory, err := tensor.New(tensor.U8, d.gather.Size()*n) // begins where any element type may
	if err != nil {
		return nil, err
	}
	r := j.Replica()
	at := d.gather.RankOf(r) * n
	shard := memory.Bytes()[at : at+n : at+n]
	if err := stores.of(r, v.buffer).Load(v.offset, shard); err != nil {
		if v.gather != nil {
			j.Abort(err) // the others wait
		}
		return nil, err
	}
	if v.gather != nil {
		if err := j.Gather(ctx, *v.gather, memory.Bytes(), shard); err != nil {
			return nil, err
		}
	}
	return tensor.View(d.full.DType, d.full.Shape, memory.Bytes()[:d.full.Bytes()]) // without the padding
}

// Write changes the variable's value in a session, on every replica. The tensor must be of the shape and element type
// of the data that the variable was made with, or with AllReplicas of what Read returns. It must not be called while
// the session runs.
//
// In a job it takes what Read returns too. It changes this process's replica, so all processes call it, with the same
// value. Nothing is sent.
func (v *Variable) Write(s *ir.Session, value *tensor.Tensor) error {
	stores, d, err := v.in(s)
	if err != nil {
		return err
	}
	want := d.host(d.values)
	if value == nil {
		return fmt.Errorf("remote: %s is given no value, want %v", v.label(), want)
	}
	given := ir.SpecOf(value)
	_, job := s.Job()
	one := job != nil && given.Equal(d.full)
	all := v.all && given.Equal(d.host(d.gather))
	if !one && !all && !given.Equal(want) {
		return fmt.Errorf("remote: %s is given %v, want %v", v.label(), given, want)
	}
	shard := make([]byte, d.shard.Bytes())
	for _, r := range stores.own {
		k := 0
		if !one {
			k = d.copyOf(r, all)
		}
		clear(shard[copy(shard, d.part(value, k, d.gather.RankOf(r))):])
		if err := stores.of(r, v.buffer).Store(v.offset, shard); err != nil {
			return fmt.Errorf("remote: %s: %w", v.label(), err)
		}
	}
	return nil
}

// in finds the entries of a session, and how the variable lies in them.
func (v *Variable) in(s *ir.Session) (*stores, division, error) {
	if v == nil || !v.buffer.made() {
		return nil, division{}, errors.New("remote: no variable: NewVariable makes one")
	}
	if v.late {
		return nil, division{}, fmt.Errorf("remote: %s: %w", v.label(), errSession)
	}
	if s == nil || !v.host.DType.Valid() || s.Program() != v.buffer.program {
		return nil, division{}, fmt.Errorf("remote: %s is of another program than the session", v.label())
	}
	d, err := v.divide(v.host, s.Program().Replicas())
	if err != nil {
		return nil, division{}, fmt.Errorf("remote: %s: %w", v.label(), err)
	}
	stores, err := storesOf(s, v.buffer.program)
	return stores, d, err
}
