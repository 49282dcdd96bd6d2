package methods

import (
	"slices"

	"gogcl.dev/methods/schedule"
)

// TorusRings returns the Generator of collectives on a torus by rings: a reduce-scatter along one dimension after the
// other, and an all-gather that takes the same steps back. Ranks are numbered with the first dimension fastest, as in
// cost.Torus, and all messages go to neighbours. dims are the places in each dimension. One that is 0 is chosen from
// the number of ranks, so that the dimensions are as alike as can be: TorusRings(0, 0) is for any number of ranks that
// is no prime, TorusRings(0, 0, 4) for what has 4 rings one upon the other. Without any there are two, both 0.
//
// An all-reduce on D dimensions cuts the data in 2D parts, all of which go at once: each begins in another dimension,
// one up and one down, so that all links of the torus are in use. A reduce-scatter or an all-gather alone goes up, with
// all of the data, one dimension after the other: the slowest one first, so that the chunks of a message lie side by
// side.
//
//	d1 x d2 x ... = N ranks,   chunks   rounds          sent by each rank   messages of a rank
//	n bytes                                                                 in a round, at most
//	all-reduce                 2D N     2 sum (d - 1)   2n (N-1)/N          2D
//	reduce-scatter             N          sum (d - 1)    n (N-1)/N          1
//	all-gather                 N          sum (d - 1)    n (N-1)/N          1
//
// A ring over all N ranks has 2 (N-1) rounds for as many bytes. Each element is combined on one rank, and not in the
// order of the ranks. So the Generator does no request with RankOrder. Ranks that the dimensions do not fit, such as a
// prime number, are an error that is errors.ErrUnsupported. A dimension below 0 or of 1 is an error.
//
// Sources: the phases, one dimension after the other, are those of Chan, Heimlich, Purkayastha and van de Geijn,
// "Collective communication: theory, practice, and experience", 2007. The parts that begin in different dimensions are
// those of Jain and Sabharwal, "Optimal Bucket Algorithms for Large MPI Collectives on Torus Interconnects", ICS 2010.
//
//	reduce-scatter, 4 ranks, 4 chunks, 2 rounds
//	round | rank 0          | rank 1            | rank 2          | rank 3
//	------+-----------------+-------------------+-----------------+------------------
//	    0 | I2-3>2          | I2-3>3            | I0-1>0          | I0-1>1
//	      | S0[0-1]=I0-1+<2 | S0[0-1]=I0-1+<3   | S0[2-3]=I2-3+<0 | S0[2-3]=I2-3+<1
//	    1 | S0[1 of 0-]>1   | S0[0]>0           | S0[3 of 2-]>3   | S0[2]>2
//	      | O0=S0[0]+<1     | O1=S0[1 of 0-]+<0 | O2=S0[2]+<3     | O3=S0[3 of 2-]+<2
//
//	reduce-scatter, 6 ranks, 6 chunks, 3 rounds
//	round   0       1       2
//	chunks  3       1       1
//	rank 0 ─⊕───── ─●───⊕─ ─●───⊕─
//	        │       │   │   │   │
//	rank 1 ─│─⊕─── ─⊕─●─│─ ─⊕─●─│─
//	        │ │       │ │     │ │
//	rank 2 ─│─│─⊕─ ───⊕─●─ ───⊕─●─
//	        │ │ │
//	rank 3 ─⊕─│─│─ ─●───⊕─ ─●───⊕─
//	          │ │   │   │   │   │
//	rank 4 ───⊕─│─ ─⊕─●─│─ ─⊕─●─│─
//	            │     │ │     │ │
//	rank 5 ─────⊕─ ───⊕─●─ ───⊕─●─
//
//	all-reduce, 4 ranks, 16 chunks, 4 rounds
//	round   0       1       2       3
//	chunks  4       2       2       4
//	rank 0 ─⊕─⊕─── ─⊕─⊕─── ─▲─▲─── ─▲─▲───
//	        │ │     │ │     │ │     │ │
//	rank 1 ─⊕─│─⊕─ ─⊕─│─⊕─ ─▼─│─▲─ ─▼─│─▲─
//	          │ │     │ │     │ │     │ │
//	rank 2 ─⊕─⊕─│─ ─⊕─⊕─│─ ─▲─▼─│─ ─▲─▼─│─
//	        │   │   │   │   │   │   │   │
//	rank 3 ─⊕───⊕─ ─⊕───⊕─ ─▼───▼─ ─▼───▼─
//
//	all-gather, 8 ranks, 8 chunks, 3 rounds
//	round   0   1     2
//	chunks  1   2     4
//	rank 0 ─▲─ ─▲─── ─▲───────
//	        │   │     │
//	rank 1 ─▼─ ─│─▲─ ─│─▲─────
//	            │ │   │ │
//	rank 2 ─▲─ ─▼─│─ ─│─│─▲───
//	        │     │   │ │ │
//	rank 3 ─▼─ ───▼─ ─│─│─│─▲─
//	                  │ │ │ │
//	rank 4 ─▲─ ─▲─── ─▼─│─│─│─
//	        │   │       │ │ │
//	rank 5 ─▼─ ─│─▲─ ───▼─│─│─
//	            │ │       │ │
//	rank 6 ─▲─ ─▼─│─ ─────▼─│─
//	        │     │         │
//	rank 7 ─▼─ ───▼─ ───────▼─
//
//draw:torus_2d reduce-scatter 4
//shape:torus_2d reduce-scatter 6
//shape:torus_2d all-reduce 4
//shape:torus_3d all-gather 8
func TorusRings(dims ...int) Generator {
	dims = slices.Clone(dims)
	if len(dims) == 0 {
		dims = []int{0, 0}
	}
	return swept(func(r Request) ([]sweep, error) { return torusRings(r, dims) })
}

func torusRings(r Request, dims []int) ([]sweep, error) {
	if err := r.only(schedule.AllReduce, schedule.ReduceScatter, schedule.AllGather); err != nil {
		return nil, err
	}
	dims, err := fitDims(dims, r.Size)
	if err != nil {
		return nil, err
	}
	axes := axesOf(dims)
	if r.Collective != schedule.AllReduce {
		slices.Reverse(axes)
		var s sweep
		for _, a := range axes {
			s = append(s, ringLeg(a, true))
		}
		return []sweep{s}, nil
	}
	var out []sweep
	for begin := range axes {
		for _, up := range []bool{true, false} {
			var s sweep
			for i := range axes {
				s = append(s, ringLeg(axes[(begin+i)%len(axes)], up))
			}
			out = append(out, s)
		}
	}
	return out, nil
}
