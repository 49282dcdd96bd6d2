package methods

// quadDirectionalRing sends a quarter of the data each way on each of two rings: each rank owns four fragments of 4k.
// It pays where the two rings share no link; package topology says when that is so.
//
//	all-gather, 3 ranks, 12 chunks, 2 rounds
//	round | rank 0    | rank 1    | rank 2
//	------+-----------+-----------+------------
//	    0 | I0>1      | I4>2      | I8>0
//	      | O8<2      | O0<0      | O4<1
//	      | I1>2      | I5>0      | I9>1
//	      | O5<1      | O9<2      | O1<0
//	      | I2>1      | I6>2      | I10>0
//	      | O10<2     | O2<0      | O6<1
//	      | I3>2      | I7>0      | I11>1
//	      | O7<1      | O11<2     | O3<0
//	      | then      | then      | then
//	      | O0-3=I0-3 | O4-7=I4-7 | O8-11=I8-11
//	    1 | O8>1      | O0>2      | O4>0
//	      | O4<2      | O8<0      | O0<1
//	      | O5>2      | O9>0      | O1>1
//	      | O9<1      | O1<2      | O5<0
//	      | O10>1     | O2>2      | O6>0
//	      | O6<2      | O10<0     | O2<1
//	      | O7>2      | O11>0     | O3>1
//	      | O11<1     | O3<2      | O7<0
//
//	all-gather, 7 ranks, 28 chunks, 6 rounds
//	round   0-5
//	rank 0 ─▲───▲─────▲───▲─
//	        │   │     │   │
//	rank 1 ─▼─▲─│─▲───│─▲─│─
//	          │ │ │   │ │ │
//	rank 2 ─▲─▼─▼─│─▲─│─│─│─
//	        │     │ │ │ │ │
//	rank 3 ─▼─▲─▲─▼─│─│─│─│─
//	          │ │   │ │ │ │
//	rank 4 ─▲─▼─│─▲─▼─│─│─│─
//	        │   │ │   │ │ │
//	rank 5 ─▼─▲─▼─│───▼─│─│─
//	          │   │     │ │
//	rank 6 ───▼───▼─────▼─▼─
//
//draw:quad_directional_ring all-gather 3
//shape:quad_directional_ring all-gather 7 second=0,2,4,6,1,3,5
var quadDirectionalRing = ringForm{
	rings: 2, fragments: 4, reach: wholeRing,
	lanes: func(s Spec, rank int) []lane {
		lanes := append(bothWays(rank, s.Ring), bothWays(rank, s.Second)...)
		for i := range lanes {
			lanes[i].fragment = i
		}
		return lanes
	},
}
