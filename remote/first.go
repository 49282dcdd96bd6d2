package remote

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// firstValue is a function for what a variable begins with.
type firstValue struct {
	spec ir.Spec // in the host's shape
	fill func(first int, dst *tensor.Tensor) error
}

// FirstValue has a function make what a variable begins with, shard by shard. The variable is made with no data, and no
// copy is kept of what the function makes: so a model may be larger than memory.
//
// spec is what data would have: the variable's own shape, or with a leading dimension of the number of groups if there
// is more than one, and its element type, which no other option changes. fill writes elements first, first+1, ... of
// the flattened spec to all of dst, which has one dimension, one element or more, all of them zeros, and is the
// session's: fill does not keep it. A nil fill is for zeros, of which nothing is stored: for a variable that is to be
// loaded from a checkpoint.
//
// A session calls fill when it opens the program's buffers, for the elements that the storage has no value of: each
// once, in their order, one call at a time. In a job each process calls it for the shard of its replica. fill must not
// use the session. How many elements a shard has depends on the number of replicas. A fill that makes each element from
// its number alone has the same bits on any number of replicas: from a random generator that is seeded with the
// element's number, or from where a file has it.
//
// Errors, beside those of NewVariable, which stick to the program: data too, a DType other than spec's. An error of
// fill is one of the session.
func FirstValue(spec ir.Spec, fill func(first int, dst *tensor.Tensor) error) VariableOption {
	return func(v *Variable) {
		v.first = &firstValue{ir.Spec{Shape: spec.Shape.Clone(), DType: spec.DType}, fill}
	}
}

// hostSpec is the spec of what a variable begins with, in the host's shape and the variable's element type.
func (v *Variable) hostSpec(data *tensor.Tensor) (ir.Spec, error) {
	switch {
	case data == nil && v.first == nil:
		return ir.Spec{}, errors.New("no data, and no FirstValue to make it")
	case v.first == nil:
		return ir.Spec{Shape: data.Shape(), DType: v.element(data.DType())}, nil
	case data != nil:
		return ir.Spec{}, errors.New("data and a FirstValue, want one of the two")
	case v.typed && v.dtype != v.first.spec.DType:
		return ir.Spec{}, fmt.Errorf("a FirstValue of %v and a DType of %v, want the same", v.first.spec.DType, v.dtype)
	}
	if err := check(v.first.spec, 1); err != nil {
		return ir.Spec{}, fmt.Errorf("FirstValue: %w", err)
	}
	return v.first.spec, nil
}

// begin stores what a variable begins with, on replicas of this process where nothing is stored. scratch is for a
// shard; begin returns it, or a larger one, for the next variable.
func (v *Variable) begin(s *stores, replicas int, scratch []byte) ([]byte, error) {
	d, err := v.divide(v.host, replicas)
	if err != nil { // their number has changed
		return scratch, fmt.Errorf("remote: %s: %w", v.label(), err)
	}
	if v.first != nil && v.first.fill == nil {
		return scratch, nil
	}
	var unstored []int
	for _, r := range s.own {
		if !s.of(r, v.buffer).Stored(v.offset) {
			unstored = append(unstored, r)
		}
	}
	order := func(a, b int) int {
		return cmp.Or(cmp.Compare(d.copyOf(a, false), d.copyOf(b, false)),
			cmp.Compare(d.gather.RankOf(a), d.gather.RankOf(b)))
	}
	slices.SortStableFunc(unstored, order)
	var shard []byte
	for i, r := range unstored {
		if i == 0 || order(unstored[i-1], r) != 0 {
			if len(scratch) < d.shard.Bytes() {
				whole, err := tensor.New(tensor.U8, d.shard.Bytes()) // begins where any element type may
				if err != nil {
					return scratch, fmt.Errorf("remote: %s: %w", v.label(), err)
				}
				scratch = whole.Bytes()
			}
			shard = scratch[:d.shard.Bytes()]
			if err := v.fillShard(d, r, shard); err != nil {
				return scratch, fmt.Errorf("remote: %s: %w", v.label(), err)
			}
		}
		if err := s.of(r, v.buffer).Store(v.offset, shard); err != nil {
			return scratch, err
		}
	}
	return scratch, nil
}

// fillShard writes what a replica begins with to its shard.
func (v *Variable) fillShard(d division, replica int, shard []byte) error {
	value, rank := d.copyOf(replica, false), d.gather.RankOf(replica)
	clear(shard)
	switch {
	case v.data != nil:
		copy(shard, d.part(v.data, value, rank))
		return nil
	case v.first == nil:
		return fmt.Errorf("replica %d has nothing stored, and the data has been given up since a session has stored "+
			"it: "+
			"FirstValue makes it again", replica)
	}
	from, n := d.held(rank)
	if n == 0 {
		return nil
	}
	dst, err := tensor.View(d.full.DType, tensor.Shape{n}, shard[:n*d.full.DType.Size()])
	if err != nil {
		return err
	}
	first := value*d.full.Elements() + from
	if err := v.first.fill(first, dst); err != nil {
		return fmt.Errorf("FirstValue of elements %d to %d: %w", first, first+n-1, err)
	}
	return nil
}

// giveUp gives up the data of variables whose entries a session has stored, where the next session of the program finds
// them: in files. What is in memory ends with the session, and the next one begins with the data.
func (b *buffers) giveUp() {
	if _, lasts := b.storage.(Dir); !lasts {
		return
	}
	for _, v := range b.initial {
		v.data = nil
	}
}

// HostBytes implements ir.Hosted: the bytes of the variables' data.
func (b *buffers) HostBytes() int {
	sum := 0
	for _, v := range b.initial {
		if v.data != nil {
			sum += len(v.data.Bytes())
		}
	}
	return sum
}

// Initial implements ir.Initial: the variables' data. What FirstValue makes is not compared: each process makes the
// shard of its replica.
func (b *buffers) Initial(data func(what string, bytes []byte)) {
	for _, v := range b.initial {
		if v.data != nil {
			data("remote "+v.label(), v.data.Bytes())
		}
	}
}
