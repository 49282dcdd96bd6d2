package methods

import "gogcl.dev/methods/schedule"

// Circulant returns the Generator of the reduce-scatter, the all-gather and the all-reduce that halve and double
// without leaving ranks out, whatever their number k. All three send the fewest bytes there are. The first two take the
// fewest rounds.
//
//	k ranks, n bytes    rounds              sent by each rank
//	reduce-scatter        ceil(log2 k)       n (k-1)/k
//	all-gather            ceil(log2 k)       n (k-1)/k
//	all-reduce          2 ceil(log2 k)      2n (k-1)/k
//
// At first a rank has chunks for all k ranks, in the order in which these follow it round the circle, its own first. In
// each round it keeps the nearer half of them, the larger one if they are odd in number, and sends the others that many
// places further, to a rank that has chunks for the same ranks in its nearer half, and folds them. The all-gather takes
// the same steps back. Chunks past the last rank go in a message of their own.
//
// Each element is combined on one rank, and not in the order of the ranks. So the Generator does no request with
// RankOrder.
//
// Source: Träff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2025,
// doi.org/10.34726/10760.
//
//	reduce-scatter, 3 ranks, 3 chunks, 2 rounds
//	round | rank 0   | rank 1   | rank 2
//	------+----------+----------+---------
//	    0 | I2>2     | I0>0     | I1>1
//	      | O0=I0+<1 | O1=I1+<2 | O2=I2+<0
//	    1 | I1>1     | I2>2     | I0>0
//	      | O0+<2    | O1+<0    | O2+<1
//
//	all-reduce, 5 ranks, 5 chunks, 6 rounds
//	round   0           1           2       3       4           5
//	chunks  2           1           1       1       1           2
//	rank 0 ─⊕─────●─── ─●─────⊕─── ─●───⊕─ ─▲───●─ ─▲─────●─── ─●─────▲───
//	        │     │     │     │     │   │   │   │   │     │     │     │
//	rank 1 ─│─⊕───│─●─ ─│─●───│─⊕─ ─⊕─●─│─ ─●─▲─│─ ─│─▲───│─●─ ─│─●───│─▲─
//	        │ │   │ │   │ │   │ │     │ │     │ │   │ │   │ │   │ │   │ │
//	rank 2 ─●─│─⊕─│─│─ ─⊕─│─●─│─│─ ─●─⊕─│─ ─▲─●─│─ ─●─│─▲─│─│─ ─▼─│─●─│─│─
//	          │ │ │ │     │ │ │ │   │   │   │   │     │ │ │ │     │ │ │ │
//	rank 3 ───●─│─⊕─│─ ───⊕─│─●─│─ ─⊕─●─│─ ─●─▲─│─ ───●─│─▼─│─ ───▼─│─●─│─
//	            │   │       │   │     │ │     │ │       │   │       │   │
//	rank 4 ─────●───⊕─ ─────⊕───●─ ───⊕─●─ ───●─▼─ ─────●───▼─ ─────▼───●─
//
//draw:circulant reduce-scatter 3
//shape:circulant all-reduce 5
func Circulant() Generator {
	return swept(func(r Request) ([]sweep, error) {
		err := r.only(schedule.AllReduce, schedule.ReduceScatter, schedule.AllGather)
		return []sweep{{circulantLeg(axis{1, max(r.Size, 1)})}}, err
	})
}
