package methods

// bidirectionalRingPair sends half the data each way, so that links are used in both directions: each rank owns two
// fragments of 2k. The rounds are those of a one-way ring with messages half as long.
//
//	all-gather, 3 ranks, 6 chunks, 2 rounds
//	round | rank 0    | rank 1    | rank 2
//	------+-----------+-----------+----------
//	    0 | I0>1      | I2>2      | I4>0
//	      | O4<2      | O0<0      | O2<1
//	      | I1>2      | I3>0      | I5>1
//	      | O3<1      | O5<2      | O1<0
//	      | then      | then      | then
//	      | O0-1=I0-1 | O2-3=I2-3 | O4-5=I4-5
//	    1 | O4>1      | O0>2      | O2>0
//	      | O2<2      | O4<0      | O0<1
//	      | O3>2      | O5>0      | O1>1
//	      | O5<1      | O1<2      | O3<0
//
//	all-gather, 5 ranks, 10 chunks, 4 rounds
//	round   0       1       2       3
//	rank 0 ─▲───▲─ ─▲───▲─ ─▲───▲─ ─▲───▲─
//	        │   │   │   │   │   │   │   │
//	rank 1 ─▼─▲─│─ ─▼─▲─│─ ─▼─▲─│─ ─▼─▲─│─
//	          │ │     │ │     │ │     │ │
//	rank 2 ─▲─▼─│─ ─▲─▼─│─ ─▲─▼─│─ ─▲─▼─│─
//	        │   │   │   │   │   │   │   │
//	rank 3 ─▼─▲─│─ ─▼─▲─│─ ─▼─▲─│─ ─▼─▲─│─
//	          │ │     │ │     │ │     │ │
//	rank 4 ───▼─▼─ ───▼─▼─ ───▼─▼─ ───▼─▼─
//
//draw:bidirectional_ring_pair all-gather 3
//shape:bidirectional_ring_pair all-gather 5
var bidirectionalRingPair = ringForm{
	rings: 1, fragments: 2, reach: wholeRing,
	lanes: func(s Spec, rank int) []lane {
		return bothWays(rank, s.Ring)
	},
}

// bothWays are the lanes of the two directions of a ring, each with a fragment of its own.
func bothWays(rank int, ring []int) []lane {
	with, against := newLane(rank, ring, false), newLane(rank, ring, true)
	against.fragment = 1
	return []lane{with, against}
}
