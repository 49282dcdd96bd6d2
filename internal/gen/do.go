package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/gcl"
)

// do makes the call and looks at the result.
func (c *call) do(ctx context.Context, cm *gcl.Comm, rank int) error {
	made.byRanks.Add(int64(c.runs))
	if rank == 0 {
		made.calls.Add(int64(c.runs))
		made.byKind[c.k].Add(int64(c.runs))
	}
	if c.k == barrier {
		return cm.Barrier(ctx)
	}
	c.prepare()
	r := source(c.id, 3, uint64(rank))
	forms := []string{"fresh", "to", "to", "inplace", "do", "batch", "batchT", "alloc"}
	switch {
	case c.k == execute:
		forms = []string{"exec", "execT"}
	case c.k == mappedScatter, c.k == mappedGather:
		forms = []string{"fresh", "to"}
	case c.several && c.tensors:
		forms = []string{"tensors", "tensorsTo", "tensorsTo", "tensorsIn"}
	case c.several:
		forms = []string{"many", "manyTo", "manyTo", "manyIn", "batch"}
		if len(c.opds) == 1 || len(c.opds) == 0 && c.k.byCounts() { // a Batch of nothing has no counts
			forms = forms[:4]
		}
		switch c.k {
		case allReduce, reduceScatter, broadcast, reduce:
			forms = append(forms, "tensorsTo1") // of one dimension: the same call
		}
	}
	form := forms[r.IntN(len(forms))]
	if form == "many" || form == "tensors" {
		if !c.k.hasMany() {
			form += "To"
		}
	}
	if form == "inplace" || form == "manyIn" || form == "tensorsIn" {
		switch c.k {
		case allReduce, allToAll, broadcast:
		case reduce:
			if form != "inplace" {
				form = strings.TrimSuffix(form, "In") + "To"
			}
		case allToAllV:
			for t := range c.opds {
				if !sameCounts(&c.opds[t], rank) {
					form = "to"
					if c.several {
						form = "manyTo"
						if c.tensors {
							form = "tensorsTo"
						}
					}
					break
				}
			}
		default:
			form = map[string]string{"inplace": "to", "manyIn": "manyTo", "tensorsIn": "tensorsTo"}[form]
		}
	}
	made.byForm.add(c.k.String() + " " + form)
	in := r.IntN(3) == 0 || strings.HasSuffix(form, "In") || form == "inplace"
	if form == "fresh" || form == "many" || form == "tensors" {
		in = false
	}
	bs := make([]*buffers, len(c.opds))
	which := make([]int, len(c.opds))
	for t := range c.opds {
		var err error
		if bs[t], err = c.lay(cm, t, rank, in, r.Uint64()); err != nil {
			return err
		}
		which[t] = c.opds[t].shape
		if !c.several {
			which[t] = r.IntN(4)
		}
		if form == "tensorsTo1" {
			which[t] = 0
		}
	}
	if form == "inplace" || strings.HasSuffix(form, "In") { // reduce: other ranks have one buffer, too
		for t, b := range bs {
			if c.k == reduce && rank != c.root {
				b.dst = b.src
			} else if len(b.dst) > 0 && &b.dst[0] != &b.src[0] {
				panic(fmt.Sprint("not in place: ", c, t))
			}
		}
	}
	var again func(context.Context) error
	for run := range c.runs {
		var expect [][]byte
		for t, b := range bs {
			for i := range b.all {
				b.all[i] = garbage(c.opds[t].dt, i)
			}
			if b.src != nil && !(c.k == scatter && rank != c.root) && !(c.k == scatterV && rank != c.root) {
				copy(b.src, c.in[t][rank])
			}
			e := slices.Clone(b.all)
			if w := c.want(t, rank); w != nil && form != "fresh" && form != "many" && form != "tensors" {
				copy(e[b.dstAt:], w)
			}
			expect = append(expect, e)
		}
		got, err := c.invoke(ctx, cm, rank, form, bs, which, &again)
		if err != nil {
			return fmt.Errorf("call %x run %d form %s %v: %w", c.id, run, form, c, err)
		}
		for t, b := range bs {
			if !bytes.Equal(b.all, expect[t]) {
				i := 0
				for b.all[i] == expect[t][i] {
					i++
				}
				end := min(i+16, len(b.all))
				return &wrong{fmt.Sprintf("WRONG: call %x run %d form %s in=%v rank %d operand %d: byte %d of the buffers"+
					" (dst at %d): got %x want %x: %v",
					c.id, run, form, in, rank, t, i, b.dstAt, b.all[i:end], expect[t][i:end], c)}
			}
			if form == "fresh" || form == "many" || form == "tensors" {
				w := c.want(t, rank)
				if !bytes.Equal(got[t], w) || got[t] == nil && len(w) > 0 {
					return &wrong{fmt.Sprintf("WRONG: call %x run %d form %s rank %d operand %d: got %.64x want %.64x: %v",
						c.id, run, form, rank, t, got[t], w, c)}
				}
			}
		}
	}
	return free(cm, bs)
}

// wrong is the error of a result that is not that of the oracle.
type wrong struct{ text string }

func (w *wrong) Error() string { return w.text }
