package methods

// meetInMiddleRing sends every fragment half way round in both directions, and the two halves of a reduction meet at
// its owner: floor(k/2) rounds instead of k-1, with fragments of n/k. With even k the clockwise lane reaches one place
// further, and in its last round the other direction has nothing to do.
//
//	reduce-scatter, 4 ranks, 4 chunks, 2 rounds
//	round | rank 0      | rank 1      | rank 2      | rank 3
//	------+-------------+-------------+-------------+------------
//	    0 | I2>1        | I3>2        | I0>3        | I1>0
//	      | I3>3        | I0>0        | I1>1        | I2>2
//	      | S0[1]=I1+<3 | S0[2]=I2+<0 | S0[3]=I3+<1 | S0[0]=I0+<2
//	      | O0=I0+<1    | O1=I1+<2    | O2=I2+<3    | O3=I3+<0
//	    1 | S0[1]>1     | S0[2]>2     | S0[3]>3     | S0[0]>0
//	      | O0+<3       | O1+<0       | O2+<1       | O3+<2
//
//	reduce-scatter, 6 ranks, 6 chunks, 3 rounds
//	round   0       1       2
//	rank 0 ─⊕───⊕─ ─⊕───⊕─ ─●───⊕─
//	        │   │   │   │   │   │
//	rank 1 ─⊕─⊕─│─ ─⊕─⊕─│─ ─⊕─●─│─
//	          │ │     │ │     │ │
//	rank 2 ─⊕─⊕─│─ ─⊕─⊕─│─ ─●─⊕─│─
//	        │   │   │   │   │   │
//	rank 3 ─⊕─⊕─│─ ─⊕─⊕─│─ ─⊕─●─│─
//	          │ │     │ │     │ │
//	rank 4 ─⊕─⊕─│─ ─⊕─⊕─│─ ─●─⊕─│─
//	        │   │   │   │   │   │
//	rank 5 ─⊕───⊕─ ─⊕───⊕─ ─⊕───●─
//
//draw:meet_in_middle_ring reduce-scatter 4
//shape:meet_in_middle_ring reduce-scatter 6
var meetInMiddleRing = ringForm{
	rings: 1, fragments: 1, reach: func(size int) int { return size / 2 },
	lanes: func(s Spec, rank int) []lane {
		with, against := newLane(rank, s.Ring, false), newLane(rank, s.Ring, true)
		with.reach = s.Size / 2
		against.reach = s.Size - 1 - with.reach
		return []lane{with, against}
	},
}
