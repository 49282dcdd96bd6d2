package methods

// anticlockwiseRing is clockwiseRing the other way round.
//
//	reduce-scatter, 3 ranks, 3 chunks, 2 rounds
//	round | rank 0      | rank 1      | rank 2
//	------+-------------+-------------+------------
//	    0 | I1>2        | I2>0        | I0>1
//	      | S0[2]=I2+<1 | S0[0]=I0+<2 | S0[1]=I1+<0
//	    1 | S0[2]>2     | S0[0]>0     | S0[1]>1
//	      | O0=I0+<1    | O1=I1+<2    | O2=I2+<0
//
//	reduce-scatter, 4 ranks, 4 chunks, 3 rounds
//	round   0       1       2
//	rank 0 ─⊕───●─ ─⊕───●─ ─⊕───●─
//	        │   │   │   │   │   │
//	rank 1 ─●─⊕─│─ ─●─⊕─│─ ─●─⊕─│─
//	          │ │     │ │     │ │
//	rank 2 ─⊕─●─│─ ─⊕─●─│─ ─⊕─●─│─
//	        │   │   │   │   │   │
//	rank 3 ─●───⊕─ ─●───⊕─ ─●───⊕─
//
//draw:anticlockwise_ring reduce-scatter 3
//shape:anticlockwise_ring reduce-scatter 4
var anticlockwiseRing = ringForm{
	rings: 1, fragments: 1, reach: wholeRing,
	lanes: func(s Spec, rank int) []lane {
		return []lane{newLane(rank, s.Ring, true)}
	},
}
