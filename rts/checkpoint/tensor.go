package checkpoint

import (
	"errors"
	"fmt"
	"math"

	"gogcl.dev/chunks"
	"gogcl.dev/internal/safetensors"
	"gogcl.dev/tensor"
)

// maxShards is what the five digits in the names of files can tell apart.
const maxShards = 99_999

// Tensor is a tensor that is saved or loaded. With one shard it is whole.
type Tensor struct {
	Name   string
	DType  tensor.DType
	Shape  tensor.Shape // of the whole
	Shards int          // 1 or more

	// Read returns shard k for Save, of shape (c,), c = ceil(n/Shards). It is looked at until the next call of any
	// Read. Padding may hold anything: it is saved as zeros. Load does not call Read, which may be nil then.
	Read func(k int) (*tensor.Tensor, error)

	// Write takes shard k from Load, of shape (c,) with zeros for padding. The memory is Load's, and is written to
	// after Write has returned. Save does not call Write, which may be nil then.
	Write func(k int, shard *tensor.Tensor) error

	// Own says whether this process has shard k, for a Directory of OpenTogether: Save reads no others, and Load writes
	// no others. Several processes may have it. Nil: it has all.
	Own func(k int) bool
}

// owns reports whether this process has shard k.
func (t *Tensor) owns(k int) bool { return t.Own == nil || t.Own(k) }

// layout is how n elements lie in shards.
type layout struct{ n, shards, per int }

// held is how many elements of shard k are no padding.
func (l layout) held(k int) int {
	lo, hi := chunks.SplitPadded(l.n, l.shards, l.shards, k)
	return hi - lo
}

// layoutOf is the layout of a tensor with shards >= 1. The error: more bytes, with padding, than an int can count.
func layoutOf(dtype tensor.DType, shape tensor.Shape, shards int) (layout, error) {
	n, err := shape.Elements()
	if err != nil {
		return layout{}, err
	}
	per := chunks.PerRank(n, shards)
	if per > math.MaxInt/dtype.Size()/shards {
		return layout{}, fmt.Errorf("%v of shape %v in %d shards has more bytes than an int can count",
			dtype, shape, shards)
	}
	return layout{n, shards, per}, nil
}

// check is the error of what cannot be a tensor of a checkpoint, and its layout.
func check(name string, dtype tensor.DType, shape tensor.Shape, shards int) (layout, error) {
	switch err := safetensors.CheckName(name); {
	case err != nil:
		return layout{}, err
	case name == "":
		return layout{}, errors.New("it has no name")
	case !dtype.Valid():
		return layout{}, fmt.Errorf("invalid element type %v", dtype)
	case shards < 1 || shards > maxShards:
		return layout{}, fmt.Errorf("%d shards, want 1 to %d", shards, maxShards)
	}
	if err := safetensors.CheckShape(shape); err != nil {
		return layout{}, err
	}
	return layoutOf(dtype, shape, shards)
}

// checkAll looks at the tensors of a call.
func checkAll(tensors []Tensor) ([]layout, error) {
	if err := safetensors.CheckCounts(len(tensors), 0); err != nil {
		return nil, err
	}
	seen := map[string]struct{}{}
	layouts := make([]layout, len(tensors))
	for i, t := range tensors {
		var err error
		layouts[i], err = check(t.Name, t.DType, t.Shape, t.Shards)
		if _, again := seen[t.Name]; again && err == nil {
			err = errors.New("a second one of that name")
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %.100q: %w", t.Name, err)
		}
		seen[t.Name] = struct{}{}
	}
	return layouts, nil
}
