package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Buffer is a number of entries outside the memory of the replicas, all of one shape and element type. Every replica
// has entries of its own: what it stores the others do not see.
type Buffer struct {
	program *ir.Program
	id      int
	name    string    // "" if it has none of its own
	first   *Variable // the one at the lowest entry that has a name; nil: there is none, or the buffer has its own
	spec    ir.Spec
	meta    tensor.Shape // nil until it is known
	entries int
	used    bool // something is built or stored on it
	late    bool // it was made when a session had its buffers already
}

// buffers are those of a program, and where they live.
type buffers struct {
	all     []*Buffer
	storage Storage
	initial []*Variable
	open    []*stores // of sessions
}

type buffersKey struct{}

func of(p *ir.Program) *buffers {
	return p.Attached(buffersKey{}, func() any { return &buffers{storage: Memory{}} }).(*buffers)
}

var errSession = errors.New("a session of the program has its buffers open")

// UseStorage says where the buffers of a program live; without it, in memory. It must be said before there is a
// session. Errors, which stick to the program: no storage, a session that has the program's buffers open already.
func UseStorage(p *ir.Program, s Storage) {
	switch {
	case s == nil:
		p.Fail("use storage", errors.New("no storage"))
		return
	case len(of(p).open) > 0:
		p.Fail("use storage", errSession)
		return
	}
	of(p).storage = s
}

// NewBuffer makes a buffer of 1 entry or more, of one shape and element type. They read as zeros until something is
// stored. What outlives the process wants a name, by Named or of a variable. Errors, which stick to the program: fewer
// entries, a spec that is not valid, a session that has the program's buffers open already.
func NewBuffer(p *ir.Program, spec ir.Spec, entries ...int) *Buffer {
	all := of(p)
	b := &Buffer{program: p, id: len(all.all) + 1, spec: ir.Spec{Shape: spec.Shape.Clone(), DType: spec.DType},
		entries: 1}
	if len(entries) > 0 {
		b.entries = entries[0]
	}
	err := check(spec, b.entries)
	if len(entries) > 1 {
		err = fmt.Errorf("%d numbers of entries, want one or none", len(entries))
	}
	if len(all.open) > 0 {
		b.late, err = true, errSession
	}
	if err != nil {
		p.Fail("remote buffer", err)
	}
	all.all = append(all.all, b)
	return b
}

// check returns an error if there can be no such buffer.
func check(spec ir.Spec, entries int) error {
	s := Spec{Buffer: "?", DType: spec.DType, Shape: spec.Shape, Entries: entries}
	_, err := s.entryBytes()
	return err
}

// ID returns the number of the buffer, which counts from 1 in each program.
func (b *Buffer) ID() int { return b.orNone().id }

var errNoBuffer = errors.New("remote: no buffer: NewBuffer makes one")

// made reports whether NewBuffer has made the buffer.
func (b *Buffer) made() bool { return b != nil && b.program != nil }

// orNone is the buffer, or one that stands for none.
func (b *Buffer) orNone() *Buffer {
	if b == nil {
		return &Buffer{}
	}
	return b
}

// Spec returns shape and element type of an entry. They never change but by Replace.
func (b *Buffer) Spec() ir.Spec {
	b = b.orNone()
	return ir.Spec{Shape: b.spec.Shape.Clone(), DType: b.spec.DType}
}

// MetaShape returns the shape of the tensor that the entries of all replicas are shards of, or nil if they are not.
func (b *Buffer) MetaShape() tensor.Shape { return b.orNone().meta.Clone() }

// SetMetaShape says which tensor the entries are shards of. It is fixed by the first use; another shape later is an
// error, also in a later process that finds the entries in the files of a [Dir]: those remember it.
func (b *Buffer) SetMetaShape(shape tensor.Shape) error {
	if !b.made() {
		return errNoBuffer
	}
	if err := shape.Validate(); err != nil {
		return fmt.Errorf("remote: buffer %d: meta shape: %w", b.id, err)
	}
	if b.meta != nil && !b.meta.Equal(shape) {
		return fmt.Errorf("remote: buffer %d has the meta shape %v, and cannot have %v", b.id, b.meta, shape)
	}
	b.meta = append(tensor.Shape{}, shape...)
	return nil
}

// Entries returns the number of entries.
func (b *Buffer) Entries() int { return b.orNone().entries }

// SetEntries changes the number of entries, to 1 or more, in sessions too, which must not be running. To have more
// keeps what is stored; to have fewer is an error once something is built on the buffer or there is a session.
func (b *Buffer) SetEntries(n int) error {
	if !b.made() {
		return errNoBuffer
	}
	if err := check(b.spec, n); err != nil {
		return fmt.Errorf("remote: buffer %d: %w", b.id, err)
	}
	all := of(b.program)
	if b.late {
		return fmt.Errorf("remote: buffer %d: %w", b.id, errSession)
	}
	if (b.used || len(all.open) > 0) && n < b.entries {
		return fmt.Errorf("remote: buffer %d is in use with %d entries and cannot have %d", b.id, b.entries, n)
	}
	if len(all.open) > 0 && n > b.entries {
		if err := all.room(b, n); err != nil {
			return err
		}
	}
	for _, s := range all.open {
		for _, r := range s.own {
			if err := s.of(r, b).Grow(n); err != nil {
				return err
			}
		}
	}
	b.entries = n
	return nil
}

// Replace changes shape, element type and number of entries together. It is an error once something is built on the
// buffer.
func (b *Buffer) Replace(spec ir.Spec, entries int) error {
	if !b.made() {
		return errNoBuffer
	}
	if err := check(spec, entries); err != nil {
		return fmt.Errorf("remote: buffer %d: %w", b.id, err)
	}
	if b.used || len(of(b.program).open) > 0 {
		return fmt.Errorf("remote: buffer %d is in use with %v and cannot be replaced", b.id, b.spec)
	}
	b.spec, b.entries, b.meta = ir.Spec{Shape: spec.Shape.Clone(), DType: spec.DType}, entries, nil
	return nil
}

// Validate returns an error, which has both, if a tensor of that spec cannot be an entry of the buffer. With more than
// one shard it must be of the meta shape.
func (b *Buffer) Validate(spec ir.Spec, shards int) error {
	if !b.made() {
		return errNoBuffer
	}
	want := b.spec
	if shards > 1 {
		want.Shape = b.meta
	}
	if shards > 1 && b.meta == nil {
		return fmt.Errorf("remote: buffer %d has no meta shape, and the tensor is to be in %d shards", b.id, shards)
	}
	if shards < 1 {
		return fmt.Errorf("remote: %d shards, want 1 or more", shards)
	}
	if !spec.Equal(want) {
		return fmt.Errorf("remote: buffer %d has entries of %v, and the tensor is %v", b.id, want, spec)
	}
	return nil
}

// checkOffset returns an error if there is no such entry.
func (b *Buffer) checkOffset(offset int) error {
	if offset < 0 || offset >= b.entries {
		return b.noEntry(int64(offset))
	}
	return nil
}

// noEntry is the error of an entry that does not exist.
func (b *Buffer) noEntry(offset int64) error {
	return fmt.Errorf("buffer %d has entries 0 to %d, and the offset is %d", b.id, b.entries-1, offset)
}

// Lost returns the entries of the buffer that a replica has lost, in a session: what was being stored when a process
// died. To load one is an error until it is stored anew.
func (b *Buffer) Lost(s *ir.Session, replica int) ([]int, error) {
	e, err := b.in(s, replica)
	if err != nil {
		return nil, err
	}
	return e.Lost(), nil
}

// Read returns a copy, the caller's, of an entry that a replica has in a session: zeros if nothing was stored. It must
// not be called while the session runs. Errors: a replica or an entry that does not exist, a replica of another process
// of a job, an entry that is lost.
func (b *Buffer) Read(s *ir.Session, replica, offset int) (*tensor.Tensor, error) {
	if _, err := b.at(s, replica, offset); err != nil {
		return nil, err
	}
	out, err := tensor.New(b.spec.DType, b.spec.Shape...)
	if err != nil {
		return nil, fmt.Errorf("remote: buffer %d: %w", b.id, err)
	}
	if err := b.ReadTo(s, replica, offset, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ReadTo is Read into a tensor of the caller's, which must be of the buffer's spec. After an error it may hold
// anything.
func (b *Buffer) ReadTo(s *ir.Session, replica, offset int, dst *tensor.Tensor) error {
	e, err := b.at(s, replica, offset)
	if err != nil {
		return err
	}
	if dst == nil {
		return fmt.Errorf("remote: buffer %d is given no tensor to read to, want %v", b.id, b.spec)
	}
	if err := b.Validate(ir.SpecOf(dst), 1); err != nil {
		return err
	}
	if err := e.Load(offset, dst.Bytes()); err != nil {
		return fmt.Errorf("remote: buffer %d: %w", b.id, err)
	}
	return nil
}

// Write stores a tensor to an entry of one replica in a session. It must be of the buffer's spec. It must not be called
// while the session runs. Errors: a replica or an entry that does not exist, another spec.
func (b *Buffer) Write(s *ir.Session, replica, offset int, value *tensor.Tensor) error {
	e, err := b.at(s, replica, offset)
	if err != nil {
		return err
	}
	if value == nil {
		return fmt.Errorf("remote: buffer %d is given no value, want %v", b.id, b.spec)
	}
	if err := b.Validate(ir.SpecOf(value), 1); err != nil {
		return err
	}
	if err := e.Store(offset, value.Bytes()); err != nil {
		return fmt.Errorf("remote: buffer %d: %w", b.id, err)
	}
	return nil
}

// at finds the entries of a replica in a session, of which one is wanted.
func (b *Buffer) at(s *ir.Session, replica, offset int) (Entries, error) {
	e, err := b.in(s, replica)
	if err != nil {
		return nil, err
	}
	if err := b.checkOffset(offset); err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	return e, nil
}

// in finds the entries of a replica in a session.
func (b *Buffer) in(s *ir.Session, replica int) (Entries, error) {
	if !b.made() {
		return nil, errNoBuffer
	}
	if s == nil || s.Program() != b.program {
		return nil, fmt.Errorf("remote: buffer %d is of another program than the session", b.id)
	}
	if b.late {
		return nil, fmt.Errorf("remote: buffer %d: %w", b.id, errSession)
	}
	if replica < 0 || replica >= b.program.Replicas() {
		return nil, fmt.Errorf("remote: replica %d of %d", replica, b.program.Replicas())
	}
	if !slices.Contains(s.Own(), replica) {
		return nil, fmt.Errorf("remote: replica %d is of another process, this one has replica %d", replica, s.Own())
	}
	stores, err := storesOf(s, b.program)
	if err != nil {
		return nil, err
	}
	return stores.of(replica, b), nil
}

// stores are the entries of a session's buffers, by replica and buffer.
type stores struct {
	all     *buffers
	own     []int       // the replicas of this process
	entries [][]Entries // nil for those of other processes
}

// openAll opens the entries of all buffers of a program on some replicas, and stores what variables begin with where
// nothing is stored.
func openAll(p *ir.Program, session sharer) func(replicas int) (ir.Shared, error) {
	return func(replicas int) (ir.Shared, error) {
		all := of(p)
		if err := all.checkKeys(); err != nil {
			return nil, err
		}
		own := session.Own()
		specs := all.specs(own, replicas)
		if d, is := all.storage.(Dir); is {
			if err := d.complete(specs, session); err != nil {
				return nil, err
			}
		}
		if d, is := all.storage.(roomy); is {
			if err := d.room(slices.Concat(specs...)); err != nil {
				return nil, err
			}
		}
		s := &stores{all: all, own: own, entries: make([][]Entries, replicas)}
		all.open = append(all.open, s)
		for i, r := range own {
			for _, spec := range specs[i] {
				e, err := all.storage.Open(spec)
				if err != nil {
					return nil, errors.Join(err, s.Close())
				}
				s.entries[r] = append(s.entries[r], e)
			}
		}
		var scratch []byte
		for _, v := range all.initial {
			var err error
			if scratch, err = v.begin(s, replicas, scratch); err != nil {
				return nil, errors.Join(err, s.Close())
			}
		}
		all.giveUp()
		return s, nil
	}
}

// roomy is a Storage that knows before anything is taken of it that there is too little room.
type roomy interface{ room([]Spec) error }

// room is the error of a storage without room for more entries of a buffer on all replicas of this process.
func (all *buffers) room(b *Buffer, entries int) error {
	d, is := all.storage.(roomy)
	if !is {
		return nil
	}
	var specs []Spec
	for _, s := range all.open {
		for _, own := range all.specs(s.own, b.program.Replicas()) {
			spec := own[b.id-1]
			spec.Entries = entries
			specs = append(specs, spec)
		}
	}
	return d.room(specs)
}

// specs are what is asked of the storage for some of so many replicas, by these and buffer.
func (all *buffers) specs(own []int, replicas int) [][]Spec {
	names, lowest := map[*Buffer][]string{}, map[*Buffer]*Variable{}
	for _, v := range all.initial {
		if l := lowest[v.buffer]; v.gather != nil && (l == nil || v.offset < l.offset) {
			lowest[v.buffer] = v
		}
		if names[v.buffer] == nil {
			names[v.buffer] = make([]string, v.buffer.entries)
		}
		names[v.buffer][v.offset] = v.name
	}
	specs := make([][]Spec, len(own))
	for i, r := range own {
		for _, b := range all.all {
			spec := Spec{Buffer: b.key(), Replica: r, DType: b.spec.DType, Shape: b.spec.Shape,
				Entries: b.entries, Number: b.id, Names: names[b], Whole: b.meta}
			if v := lowest[b]; v != nil {
				if gather, err := v.gather.Resolve(replicas); err == nil { // begin returns the error
					spec.Shard = gather.RankOf(r)
				}
			}
			specs[i] = append(specs[i], spec)
		}
	}
	return specs
}

// of returns the entries of a buffer on a replica.
func (s *stores) of(replica int, b *Buffer) Entries { return s.entries[replica][b.id-1] }

// Close implements ir.Shared.
func (s *stores) Close() error {
	var errs []error
	for _, own := range s.entries {
		for _, e := range own {
			errs = append(errs, e.Close())
		}
	}
	s.entries = nil
	s.all.open = slices.DeleteFunc(s.all.open, func(o *stores) bool { return o == s })
	return errors.Join(errs...)
}

// sharer is a session, or an operation's memory in it.
type sharer interface {
	Own() []int
	Job() (context.Context, ir.Job)
	Share(key any, open func(replicas int) (ir.Shared, error)) (ir.Shared, error)
}

// storesOf finds the entries of a session's buffers.
func storesOf(s sharer, p *ir.Program) (*stores, error) {
	shared, err := s.Share(buffersKey{}, openAll(p, s))
	if err != nil {
		return nil, err
	}
	return shared.(*stores), nil
}
