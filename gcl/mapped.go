package gcl

import (
	"context"

	"gogcl.dev/chunks"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// doMapped carries out a collective on the segments into which a mapping cuts an array.
func doMapped[T tensor.Element](ctx context.Context, c *Comm, collective schedule.Collective, dst, src []T,
	m chunks.Mapping, op Operator, fresh bool) error {
	return c.doList(ctx, &list{
		ask: newAsk(collective, op, 0), form: ofMapping, fresh: fresh, mapping: m,
		dtype: tensor.DTypeOf[T](), dst: tensor.Bytes(dst), src: tensor.Bytes(src),
	})
}

// ReduceScatterMapped is a reduce-scatter of data that lies on several IPUs of each replica, as m says: the segment
// of each IPU is scattered on its own, and padded with zeros on its own. The result is this rank's shards of all
// segments, in the order of the IPUs: of a segment of n elements, ceil(n/G). data is not changed.
//
//	[x y z w], m = {3, 1}, four ranks:  rank 0 [x w]  rank 1 [y 0]  rank 2 [z 0]  rank 3 [0 0]
//
// A mapping that has not as many elements as data is an error. All ranks must give the same mapping.
func ReduceScatterMapped[T tensor.Element](ctx context.Context, c *Comm, data []T, m chunks.Mapping,
	op Operator) ([]T, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var dst []T
	if n, err := m.PerRank(c.Size()); err == nil && m.Check(len(data)) == nil { // else it is refused
		dst = make([]T, n)
	}
	if err := doMapped(ctx, c, schedule.ReduceScatter, dst, data, m, op, true); err != nil {
		return nil, err
	}
	return dst, nil
}

// ReduceScatterMappedTo is ReduceScatterMapped with the result in dst, apart from data and as long as what
// ReduceScatterMapped returns, m.PerRank(G). What dst holds after an error is unspecified. It allocates nothing once a
// call like it has been made.
func ReduceScatterMappedTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, m chunks.Mapping,
	op Operator) error {
	return doMapped(ctx, c, schedule.ReduceScatter, dst, data, m, op, false)
}

// AllGatherMapped undoes ReduceScatterMapped: from the shards of all ranks it puts the segments together and returns
// them one after the other, in the order that the data had before it was scattered, without the padding. data, as
// long as what ReduceScatterMapped returns for the same m, is not changed. All ranks must give the same mapping.
func AllGatherMapped[T tensor.Element](ctx context.Context, c *Comm, data []T, m chunks.Mapping) ([]T, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var dst []T
	// else it is refused
	if n, err := m.PerRank(c.Size()); err == nil && n == len(data) && fits(n, c.Size(), tensor.DTypeOf[T]().Size()) {
		total, _ := m.Elements()
		dst = make([]T, total)
	}
	if err := doMapped(ctx, c, schedule.AllGather, dst, data, m, 0, true); err != nil {
		return nil, err
	}
	return dst, nil
}

// AllGatherMappedTo is AllGatherMapped with the result in dst, apart from data and as long as the mapping. What dst
// holds after an error is unspecified. It allocates nothing once a call like it has been made.
func AllGatherMappedTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, m chunks.Mapping) error {
	return doMapped(ctx, c, schedule.AllGather, dst, data, m, 0, false)
}
