package msccl

import (
	"cmp"
	"slices"
	"sort"

	"gogcl.dev/methods/schedule"
)

// region is chunks of a gpu's scratch that steps use together. It is a slot of the schedule if each of its chunks
// always holds data of one number, and these numbers follow each other. Otherwise each chunk has a slot of its own.
type region struct {
	first, end int // chunks of the scratch, end exclusive
	together   bool
	base       int // number of the first chunk's data
}

// regions finds those of each gpu, in order.
func (g *graph) regions() [][]region {
	out := make([][]region, len(g.gpus))
	used := make([][]area, len(g.gpus))
	for i := range g.nodes {
		n := &g.nodes[i]
		for _, a := range []area{n.src, n.dst} {
			if a.buf == scratch && a.count > 0 {
				used[n.gpu] = append(used[n.gpu], a)
			}
		}
	}
	for rank, areas := range used {
		slices.SortFunc(areas, func(a, b area) int { return cmp.Compare(a.first, b.first) })
		for _, a := range areas {
			if last := len(out[rank]) - 1; last >= 0 && a.first < out[rank][last].end {
				out[rank][last].end = max(out[rank][last].end, a.first+a.count)
			} else {
				out[rank] = append(out[rank], region{first: a.first, end: a.first + a.count, together: true, base: -1})
			}
		}
	}
	period := g.chunks // numbers that are equal modulo this have chunks of one size
	if g.collective.Contract().Output == schedule.Blocks {
		period = g.chunks / len(g.gpus)
	}
	g.numbers(func(rank, chunk, number int) {
		r := regionOf(out[rank], chunk)
		base := ((number-chunk+r.first)%period + period) % period
		if r.base < 0 {
			r.base = base
		}
		r.together = r.together && r.base == base
	})
	for rank := range out {
		for i := range out[rank] {
			r := &out[rank][i]
			r.base = max(r.base, 0)
			r.together = r.together && r.base+r.end-r.first <= g.chunks
		}
	}
	return out
}

// regionOf finds the region of a chunk.
func regionOf(regions []region, chunk int) *region {
	return &regions[sort.Search(len(regions), func(i int) bool { return regions[i].end > chunk })]
}

// numbers calls wrote for each chunk that is written to scratch, with the number of the data.
func (g *graph) numbers(wrote func(rank, chunk, number int)) {
	holds := make([]map[location]int, len(g.gpus)) // the number of what lies in scratch or passes through
	for i := range holds {
		holds[i] = map[location]int{}
	}
	number := func(rank int, a area, k int) int {
		if a.buf == input || a.buf == output {
			return a.first + k
		}
		return holds[rank][location{a.buf, a.first + k}]
	}
	sent := map[int][]int{} // by the receive's node
	for _, i := range g.order {
		n := &g.nodes[i]
		if n.sends {
			list := make([]int, n.src.count)
			for k := range list {
				list[k] = number(n.gpu, n.src, k)
			}
			sent[n.matched] = list
			continue
		}
		for k := range n.dst.count {
			var v int
			switch {
			case n.receives:
				v = sent[i][k]
			case n.fold:
				v = number(n.gpu, n.dst, k)
			default:
				v = number(n.gpu, n.src, k)
			}
			if n.dst.buf != scratch && n.dst.buf != passing {
				continue
			}
			holds[n.gpu][location{n.dst.buf, n.dst.first + k}] = v
			if n.dst.buf == scratch {
				wrote(n.gpu, n.dst.first+k, v)
			}
		}
		delete(sent, i)
	}
}
