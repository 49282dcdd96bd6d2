package methods

// clockwiseRing sends fragments round the ring: each rank owns one of k. A reduce-scatter or all-gather takes k-1
// rounds, in each of which every rank sends n/k elements to the next.
//
//	all-reduce, 3 ranks, 3 chunks, 4 rounds
//	round | rank 0   | rank 1   | rank 2
//	------+----------+----------+---------
//	    0 | I2>1     | I0>2     | I1>0
//	      | O1=I1+<2 | O2=I2+<0 | O0=I0+<1
//	    1 | O1>1     | O2>2     | O0>0
//	      | O0=I0+<2 | O1=I1+<0 | O2=I2+<1
//	    2 | O0>1     | O1>2     | O2>0
//	      | O2<2     | O0<0     | O1<1
//	    3 | O2>1     | O0>2     | O1>0
//	      | O1<2     | O2<0     | O0<1
//
//	all-reduce, 4 ranks, 4 chunks, 6 rounds
//	round   0       1       2       3       4       5
//	rank 0 ─●───⊕─ ─●───⊕─ ─●───⊕─ ─●───▲─ ─●───▲─ ─●───▲─
//	        │   │   │   │   │   │   │   │   │   │   │   │
//	rank 1 ─⊕─●─│─ ─⊕─●─│─ ─⊕─●─│─ ─▼─●─│─ ─▼─●─│─ ─▼─●─│─
//	          │ │     │ │     │ │     │ │     │ │     │ │
//	rank 2 ─●─⊕─│─ ─●─⊕─│─ ─●─⊕─│─ ─●─▼─│─ ─●─▼─│─ ─●─▼─│─
//	        │   │   │   │   │   │   │   │   │   │   │   │
//	rank 3 ─⊕───●─ ─⊕───●─ ─⊕───●─ ─▼───●─ ─▼───●─ ─▼───●─
//
//draw:clockwise_ring all-reduce 3
//shape:clockwise_ring all-reduce 4
var clockwiseRing = ringForm{
	rings: 1, fragments: 1, reach: wholeRing,
	lanes: func(s Spec, rank int) []lane {
		return []lane{newLane(rank, s.Ring, false)}
	},
}
