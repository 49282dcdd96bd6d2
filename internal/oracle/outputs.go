package oracle

import (
	"slices"

	"gogcl.dev/chunks"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// Call is a collective as every rank of a group calls it.
type Call struct {
	Collective schedule.Collective
	Operator   Operator // of a reduction
	Root       int      // of a broadcast
	Counts     []int    // by rank: the length of its part; nil: of equal parts. Not of an all-to-all: see AllToAllV
}

// Outputs is what a call gives each rank, from the inputs by rank. It makes new slices, of which ranks may share one.
func Outputs[T tensor.Element](c Call, in [][]T) [][]T {
	parts, out, reduces := make([][]Part, len(in)), make([][]T, len(in)), false
	for rank := range in {
		if c.Counts != nil {
			parts[rank] = PartsV(c.Collective, c.Counts, rank, c.Root)
		} else {
			parts[rank] = Parts(c.Collective, len(in), rank, c.Root, len(in[0]))
		}
		reduces = reduces || slices.ContainsFunc(parts[rank], func(p Part) bool { return p.From == Reduced })
	}
	reduced := func(int) []T { return nil }
	if reduces {
		reduced = reductions(c.Operator, in)
	}
	for rank := range in {
		out[rank] = joined(parts[rank], in, reduced(rank))
	}
	return out
}

// AllToAllV is what an all-to-all gives each rank when rank r sends sent[r][i] elements to rank i, one part after the
// other.
func AllToAllV[T tensor.Element](in [][]T, sent [][]int) [][]T {
	out := make([][]T, len(in))
	for from := range in {
		first := 0
		for to, count := range sent[from] {
			out[to] = append(out[to], in[from][first:first+count]...)
			first += count
		}
	}
	return out
}

// AllReduce is Outputs of an all-reduce.
func AllReduce[T tensor.Element](op Operator, in [][]T) [][]T {
	reduced, out := reductions(op, in), make([][]T, len(in))
	for rank := range in {
		out[rank] = reduced(rank)
	}
	return out
}

// ReduceScatterMapped is what a reduce-scatter gives each rank when a mapping says which elements are on which IPU:
// each IPU's segment is scattered on its own, and a rank has its shards by IPU.
func ReduceScatterMapped[T tensor.Element](op Operator, in [][]T, m chunks.Mapping) [][]T {
	reduced, out := reductions(op, in), make([][]T, len(in))
	for rank := range in {
		var parts []Part
		first := 0
		for _, count := range m {
			parts = append(parts, shard(len(in), rank, first, count)...)
			first += count
		}
		out[rank] = joined(parts, in, reduced(rank))
	}
	return out
}

// AllGatherMapped is what an all-gather with a mapping gives every rank from the shards of ReduceScatterMapped: the
// elements in their order before, without the zeros.
func AllGatherMapped[T tensor.Element](shards [][]T, m chunks.Mapping) []T {
	out, first := []T{}, 0
	for _, count := range m {
		per := (count + len(shards) - 1) / len(shards)
		for _, s := range shards {
			some := min(per, count)
			out = append(out, s[first:first+some]...)
			count -= some
		}
		first += per
	}
	return out
}

// reductions is the reduction by rank: the same for all, but with Local, and a copy in a group of one.
func reductions[T tensor.Element](op Operator, in [][]T) func(rank int) []T {
	if op == Local {
		return func(rank int) []T { return slices.Clone(in[rank]) }
	}
	all := Reduce(op, in)
	return func(int) []T { return all }
}

// joined is parts, one after the other.
func joined[T tensor.Element](parts []Part, in [][]T, reduced []T) []T {
	out := []T{}
	for _, p := range parts {
		switch p.From {
		case Reduced:
			out = append(out, reduced[p.First:p.First+p.Count]...)
		case Zeros:
			out = append(out, make([]T, p.Count)...)
		default:
			out = append(out, in[p.From][p.First:p.First+p.Count]...)
		}
	}
	return out
}
