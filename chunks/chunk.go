package chunks

import (
	"cmp"
	"slices"
)

// Chunk is the part of a result that one IPU holds. Data belongs to whoever made the chunk.
type Chunk[T any] struct {
	Data   []T
	Index  int // which fragment of the result it is
	Offset int // place of its IPU within a rank of several IPUs; 0 where ranks have one
}

// Chunks is what a scatter within a replica leaves: one chunk for each IPU, by IPU id.
type Chunks[T any] struct {
	List []Chunk[T]

	// Original is the scattered input by reference: row p is that of IPU p. The memory and the lengths are those that
	// the scatter was given, so that its shuffles can be undone. It may be nil.
	Original [][]T
}

// NewChunks returns n empty chunks, to be set one by one, by IPU id, or all at once. A negative n is taken as 0,
// and one too large for any memory panics, as make does.
func NewChunks[T any](n int) Chunks[T] {
	return Chunks[T]{List: make([]Chunk[T], max(n, 0))}
}

// Concat returns the data of all chunks, joined as by the function [Concat].
func (c Chunks[T]) Concat() []T { return Concat(c.List) }

// Concat sorts chunks by offset, those of equal offset by index, and returns their data joined in a new slice. Chunks
// with both equal stay in the order given: that is no error, since a fresh [NewChunks] is full of them.
func Concat[T any](list []Chunk[T]) []T {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b Chunk[T]) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Index, b.Index))
	})
	total := 0
	for _, c := range sorted {
		total += len(c.Data)
	}
	joined := make([]T, 0, total)
	for _, c := range sorted {
		joined = append(joined, c.Data...)
	}
	return joined
}
