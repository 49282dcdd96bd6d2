package collective_test

import (
	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
)

// oracle is the collectives on what all replicas have, one element after the other.
type oracle struct{ layout commgroup.Layout }

// members are the replicas of a replica's group, and rank is its place.
func (o oracle) members(replica int) []int { return o.layout.Members(o.layout.GroupOf(replica)) }
func (o oracle) rank(replica int) int      { return o.layout.RankOf(replica) }

// each makes the output of each replica of the inputs of its group by rank.
func (o oracle) each(in [][]float64, f func(group [][]float64, rank int) []float64) [][]float64 {
	out := make([][]float64, len(in))
	for r := range in {
		var group [][]float64
		for _, m := range o.members(r) {
			group = append(group, in[m])
		}
		out[r] = f(group, o.rank(r))
	}
	return out
}

func fold(op gcl.Operator, values []float64) float64 {
	if len(values) == 1 {
		return values[0]
	}
	acc := values[0]
	if op == gcl.SquareAdd {
		acc *= acc
	}
	for _, v := range values[1:] {
		switch op {
		case gcl.Add, gcl.Mean:
			acc += v
		case gcl.Mul:
			acc *= v
		case gcl.Min, gcl.LogicalAnd:
			acc = min(acc, v)
		case gcl.Max, gcl.LogicalOr:
			acc = max(acc, v)
		case gcl.SquareAdd:
			acc += v * v
		}
	}
	if op == gcl.Mean {
		acc /= float64(len(values))
	}
	return acc
}

func (o oracle) allReduce(in [][]float64, op gcl.Operator) [][]float64 {
	return o.each(in, func(group [][]float64, rank int) []float64 {
		if op == gcl.Local {
			return group[rank]
		}
		out := make([]float64, len(group[0]))
		for i := range out {
			var values []float64
			for _, x := range group {
				values = append(values, x[i])
			}
			out[i] = fold(op, values)
		}
		return out
	})
}

func (o oracle) reduceScatter(in [][]float64, op gcl.Operator) [][]float64 {
	g := o.layout.Size()
	out := o.allReduce(in, op)
	for r, x := range out {
		part := make([]float64, (len(x)+g-1)/g)
		for i := range part {
			if k := o.rank(r)*len(part) + i; k < len(x) {
				part[i] = x[k]
			}
		}
		out[r] = part
	}
	return out
}

func (o oracle) allGather(in [][]float64) [][]float64 {
	return o.each(in, func(group [][]float64, _ int) (out []float64) {
		for _, x := range group {
			out = append(out, x...)
		}
		return out
	})
}

func (o oracle) allToAll(in [][]float64) [][]float64 {
	return o.each(in, func(group [][]float64, rank int) (out []float64) {
		for _, x := range group {
			k := len(x) / len(group)
			out = append(out, x[rank*k:(rank+1)*k]...)
		}
		return out
	})
}

func (o oracle) broadcast(in [][]float64, root int) [][]float64 {
	return o.each(in, func(group [][]float64, _ int) []float64 { return group[root] })
}
