package gcl

import (
	"context"
	"fmt"
	"slices"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// ReduceScatterWithinReplica reduces over the IPUs of this replica, and leaves each with a part of the result. Row p is
// what IPU p has; rows are not changed. No other replica takes part. An IPU is a worker of its own, with a network to
// the others of its replica, and what they do is what replicas do across replicas: methods, implementations and
// operators of c's options are the same, over a ladder of IPUs.
//
// The n elements of a row are cut into k fragments, k being the number of IPUs, by chunks.Split: no fragment is padded,
// and with few elements some are empty. With the ladder's ring order, as in 0 2 4 5 3 1, the IPU at place f ends with
// fragment f as its chunk, of index f and offset 0. List is by IPU id, List[p].Data is new, and Original is rows
// itself.
//
// With Options.IPUsPerRank m, IPU p is at offset p mod m of rank p/m. Rows of equal offset are reduced together (Mean
// divides by k/m), must be of equal length, and are cut into k/m fragments; the chunk on IPU p is fragment p/m of those
// of its offset, with that index.
//
// Rank order, in which Options.Reproducible and the methods direct and broadcast reduce, is here the order of the
// fragments: that of the ring, or with several IPUs per rank that of the ranks.
//
// Beside the result it allocates less than a KiB. The first call for a number of IPUs connects them, for as long as c's
// connection lasts.
//
// Errors: no rows, more than [MaxIPUs], or another number of them than the topology given to Run has IPUs per replica;
// a number that m does not divide; rows of different length at one offset; an operator that does not take T. They name
// the IPU, and change nothing. A context that is done on the way aborts the communicator.
func ReduceScatterWithinReplica[T tensor.Element](ctx context.Context, c *Comm, rows [][]T,
	op Operator) (chunks.Chunks[T], error) {
	out := chunks.NewChunks[T](len(rows))
	out.Original = rows
	err := reduceWithin(ctx, c, schedule.ReduceScatter, rows, op, func(w *ipu, k call) error {
		n, g := len(rows[w.id]), w.equal
		w.parts = append(w.parts[:0], 0)
		for f := range g.Members {
			_, hi := chunks.Split(n, len(g.Members), f)
			w.parts = append(w.parts, hi)
		}
		part := make([]T, w.parts[g.Rank+1]-w.parts[g.Rank])
		out.List[w.id] = chunks.Chunk[T]{Data: part, Index: g.Rank, Offset: w.id % c.ipusPerRank()}
		k.dst, k.dstLen, k.parts.Bounds = tensor.Bytes(part), len(part), w.parts
		return w.do(g, k)
	})
	if err != nil {
		return chunks.Chunks[T]{}, err
	}
	return out, nil
}

// AllReduceWithinReplica reduces over the IPUs of this replica, and gives the result to each: k rows in, k new rows
// out, row p being IPU p's. With Options.IPUsPerRank m row p is the reduction of the rows of its own offset, p mod m,
// and as long as they are; else all rows are equal, to the bit. Beside the result it allocates less than a KiB. Rows,
// operators and errors are as for ReduceScatterWithinReplica.
func AllReduceWithinReplica[T tensor.Element](ctx context.Context, c *Comm, rows [][]T, op Operator) ([][]T, error) {
	out := make([][]T, len(rows))
	err := reduceWithin(ctx, c, schedule.AllReduce, rows, op, func(w *ipu, k call) error {
		row := make([]T, len(rows[w.id]))
		out[w.id] = row
		k.dst, k.dstLen = tensor.Bytes(row), len(row)
		return w.do(w.equal, k)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// reduceWithin carries out a reduction of rows. part is given each IPU's call, which lacks the output.
func reduceWithin[T tensor.Element](ctx context.Context, c *Comm, collective schedule.Collective, rows [][]T,
	op Operator, part func(*ipu, call) error) error {
	dtype := tensor.DTypeOf[T]()
	check := func() error {
		if err := op.Accepts(dtype); err != nil {
			return err
		}
		for p, m := c.ipusPerRank(), c.ipusPerRank(); p < len(rows); p++ {
			if first := p % m; len(rows[p]) != len(rows[first]) {
				return fmt.Errorf("the row of IPU %d has %d elements, that of IPU %d has %d; rows of one offset "+
					"(here %d of %d) are of equal length",
					p, len(rows[p]), first, len(rows[first]), first, m)
			}
		}
		return nil
	}
	whole := withinCall{collective: collective, operator: op, dtype: dtype, ipus: len(rows), check: check}
	for _, row := range rows {
		whole.elements += len(row)
	}
	whole.body = func(w *ipu) error {
		row := rows[w.id]
		return part(w, call{ask: newAsk(collective, op, 0), dtype: dtype, src: tensor.Bytes(row), srcLen: len(row)})
	}
	return c.within(ctx, &whole)
}

// AllGatherWithinReplica gives the chunks of all IPUs of this replica to each: k chunks in, k new rows out, each the
// in.Concat() of all. Chunk p is what IPU p has, and is not changed; its length may be any, that of
// ReduceScatterWithinReplica or another. Original is not looked at.
//
// The result is gathered in the order of the chunks as ReduceScatterWithinReplica leaves them. Where the IPUs have
// their chunks in another order each puts its row right, for which it needs as much memory again. Beside the result and
// that it allocates less than a KiB, and a word for each IPU.
//
// Errors: no chunks, more than [MaxIPUs], or another number of them than the topology given to Run has IPUs per
// replica; a number that Options.IPUsPerRank, m, does not divide; an offset that is not of 0 to m-1, an index that is
// not of 0 to k/m-1, two chunks with both equal; rows of more than 16 TiB together.
func AllGatherWithinReplica[T tensor.Element](ctx context.Context, c *Comm, in chunks.Chunks[T]) ([][]T, error) {
	k := len(in.List)
	out := make([][]T, k)
	dtype := tensor.DTypeOf[T]()
	var order []int // the IPUs in the order of Concat
	total := 0
	check := func() (err error) {
		if order, err = chunkOrder(in.List, c.ipusPerRank()); err != nil {
			return err
		}
		for p, chunk := range in.List {
			if !fits(len(chunk.Data)+total, k, dtype.Size()) {
				return fmt.Errorf("%d elements on IPUs 0 to %d, and %d on IPU %d, make %d rows that take more than "+
					"%d bytes together",
					total, p-1, len(chunk.Data), p, k, int64(maxBytes))
			}
			total += len(chunk.Data)
		}
		return nil
	}
	whole := withinCall{collective: schedule.AllGather, dtype: dtype, ipus: k, check: check}
	for _, chunk := range in.List {
		whole.elements += len(chunk.Data)
	}
	whole.body = func(w *ipu) error {
		g, own := w.every, in.List[w.id].Data
		w.parts = append(w.parts[:0], 0)
		moved := false
		for rank, p := range g.Members {
			w.parts = append(w.parts, w.parts[rank]+len(in.List[p].Data))
			moved = moved || order[rank] != p
		}
		row := make([]T, total)
		err := w.do(g, call{
			ask: newAsk(schedule.AllGather, 0, 0), dtype: dtype, parts: pack.Parts{Bounds: w.parts},
			src: tensor.Bytes(own), srcLen: len(own), dst: tensor.Bytes(row), dstLen: len(row),
		})
		if err == nil && moved {
			gathered := row
			row = make([]T, 0, total)
			for _, p := range order {
				rank := slices.Index(g.Members, p)
				row = append(row, gathered[w.parts[rank]:w.parts[rank+1]]...)
			}
		}
		out[w.id] = row
		return err
	}
	if err := c.within(ctx, &whole); err != nil {
		return nil, err
	}
	return out, nil
}

// chunkOrder lists the IPUs in the order in which Concat joins their chunks, each offset below m with each index below
// k/m being that of one of the k chunks, else an error.
func chunkOrder[T any](list []chunks.Chunk[T], m int) ([]int, error) {
	size := len(list) / m
	order := make([]int, len(list))
	for i := range order {
		order[i] = -1
	}
	for p, chunk := range list {
		switch {
		case chunk.Offset < 0 || chunk.Offset >= m:
			return nil, fmt.Errorf("the chunk of IPU %d has offset %d, want 0 to %d: ranks have %d IPUs "+
				"(Options.IPUsPerRank)", p, chunk.Offset, m-1, m)
		case chunk.Index < 0 || chunk.Index >= size:
			return nil, fmt.Errorf("the chunk of IPU %d has index %d, want 0 to %d: %d IPUs are %d ranks",
				p, chunk.Index, size-1, len(list), size)
		}
		at := &order[chunk.Offset*size+chunk.Index]
		if *at >= 0 {
			return nil, fmt.Errorf("the chunks of IPUs %d and %d both have index %d and offset %d",
				*at, p, chunk.Index, chunk.Offset)
		}
		*at = p
	}
	return order, nil
}
