package methods

import "gogcl.dev/methods/schedule"

// Bruck returns the Generator of the all-gather and the all-to-all by Bruck, in the fewest rounds there are for any
// number of ranks k, with one message to one rank in each. Messages are strided spans: see schedule.Span.
//
//	k ranks, n bytes    rounds = messages of a rank    sent by each rank
//	all-gather          ceil(log2 k)                   n (k-1)/k
//	all-to-all          ceil(log2 k)                   n d/k, d the ones in 1 to k-1 as binary numbers
//
// In round t of the all-gather a rank has its own chunk and those of the 2^t-1 ranks behind it in the circle. It sends
// all of them to the rank 2^t before it, but in the last round only those that are missing there. In the all-to-all the
// block for the rank i places further travels by the binary digits of i: in round t all blocks with digit t set go to
// the rank 2^t further. There they lie in scratch memory as far from the rank's own number as before. Blocks that
// travel later are copied beside them.
//
// The all-gather sends the fewest bytes there are. The all-to-all sends some log2(k)/2 times as many as one message to
// each rank would.
//
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient Algorithms for All-to-All Communications in Multiport
// Message-Passing Systems", 1997.
//
//	all-gather, 3 ranks, 3 chunks, 2 rounds
//	round | rank 0 | rank 1 | rank 2
//	------+--------+--------+-------
//	    0 | I0>2   | I1>0   | I2>1
//	      | O1<1   | O2<2   | O0<0
//	      | then   | then   | then
//	      | O0=I0  | O1=I1  | O2=I2
//	    1 | I0>1   | I1>2   | I2>0
//	      | O2<2   | O0<0   | O1<1
//
//	all-to-all, 4 ranks, 4 chunks, 2 rounds
//	round | rank 0               | rank 1                 | rank 2            | rank 3
//	------+----------------------+------------------------+-------------------+---------------------
//	    0 | I1:2x2>1             | I2:2x2>2               | I3:2x2>3          | I0:2x2>0
//	      | S0[1:2x2 of 0-]<3    | S0[2:2x2 of 0-]<0      | S0[3:2x2 of 0-]<1 | S0[0:2x2]<2
//	      | then                 | then                   | then              | then
//	      | S0[2 of 0-]=I2       | S0[3 of 0-]=I3         | S0[0]=I0          | S0[1 of 0-]=I1
//	    1 | S0[2-3 of 0-]>2      | S0[3:1x2 of 0-]>3      | S0[0-1]>0         | S0[1-2 of 0-]>1
//	      | S1[2-3 of 0-]<2      | S1[3:1x2 of 0-]<3      | S1[0-1]<0         | S1[1-2 of 0-]<1
//	      | then                 | then                   | then              | then
//	      | O0=I0                | O1=I1                  | O2=I2             | O3=I3
//	      | O3=S0[1 of 0-]       | O0=S0[2 of 0-]         | O1=S0[3 of 0-]    | O2=S0[0]
//	      | O2:3x2=S1[2-3 of 0-] | O3:3x2=S1[3:1x2 of 0-] | O0:3x2=S1[0-1]    | O1:3x2=S1[1-2 of 0-]
//
//	all-gather, 6 ranks, 6 chunks, 3 rounds
//	round   0       1           2
//	chunks  1       2           2
//	rank 0 ─▲───●─ ─▲─────●─── ─●─────▲───
//	        │   │   │     │     │     │
//	rank 1 ─●─▲─│─ ─│─▲───│─●─ ─│─●───│─▲─
//	          │ │   │ │   │ │   │ │   │ │
//	rank 2 ─▲─●─│─ ─●─│─▲─│─│─ ─▼─│─●─│─│─
//	        │   │     │ │ │ │     │ │ │ │
//	rank 3 ─●─▲─│─ ─▲─●─│─│─│─ ─●─▼─│─│─│─
//	          │ │   │   │ │ │   │   │ │ │
//	rank 4 ─▲─●─│─ ─│───●─▼─│─ ─│───▼─●─│─
//	        │   │   │       │   │       │
//	rank 5 ─●───▼─ ─●───────▼─ ─▼───────●─
//
//draw:bruck all-gather 3
//draw:bruck all-to-all 4
//shape:bruck all-gather 6
func Bruck() Generator {
	return described{bruck, trafficOfBruck, onlyOf(chunkEach, schedule.AllGather, schedule.AllToAll)}
}

func bruck(r Request) (*schedule.Schedule, error) {
	if err := r.only(schedule.AllGather, schedule.AllToAll); err != nil {
		return nil, err
	}
	b, err := r.builder(r.Size)
	if err != nil {
		return nil, err
	}
	k := r.Size
	if r.Collective == schedule.AllToAll {
		s := &schedule.Schedule{Collective: r.Collective, Size: k, Chunks: k}
		for rank := range k {
			s.Programs = append(s.Programs, r.bruckBlocks(rank))
		}
		return s, nil
	}
	for t := range r.treeRounds() {
		for rank := range k {
			b.CopyStrided(t, rank, (rank-1<<t+k)%k, rank, min(1<<t, k-1<<t), 1, 1)
		}
	}
	return b.Build()
}

func trafficOfBruck(r Request) (*schedule.Traffic, error) {
	if err := r.only(schedule.AllGather, schedule.AllToAll); err != nil {
		return nil, err
	}
	k := r.Size
	out := &schedule.Traffic{Size: k, Chunks: k}
	for t := range r.treeRounds() {
		flow := schedule.Flow{Move: -1 << t, Chunks: min(1<<t, k-1<<t)}
		if r.Collective == schedule.AllToAll {
			flow = schedule.Flow{Move: 1 << t, Chunks: withDigit(k, t)}
		}
		out.Rounds = append(out.Rounds, schedule.Alike{Times: 1, Flows: []schedule.Flow{flow}})
	}
	return out, nil
}

// bruckBlocks is the all-to-all. The block with i places to go in all lies in place rank+i, round the circle, of the
// Input at first, and then of slots 0 and 1 in turn.
func (s Spec) bruckBlocks(rank int) schedule.Program {
	k := s.Size
	// places is the part of src from i places further on, n chunks in such runs.
	places := func(src schedule.Span, i, n, run, stride int) schedule.Span {
		src.First, src.Count = (rank+i)%k, n
		if n > run {
			return plain(src.Strided(run, stride), k)
		}
		return plain(src.Strided(1, 1), k)
	}
	p := make(schedule.Program, max(s.treeRounds(), 1))
	src := schedule.In(0, 1)
	for t := range s.treeRounds() {
		step := 1 << t
		dst := schedule.Tmp(t%2, 0, 1)
		n := withDigit(k, t)
		p[t].Moves = append(p[t].Moves, send(places(src, step, n, step, 2*step), (rank+step)%k),
			recv(places(dst, step, n, step, 2*step), (rank-step+k)%k))
		if later := k - step - n; later > 0 { // of 2*step on, without digit t
			p[t].Then = append(p[t].Then,
				move(places(dst, 2*step, later, step, 2*step), places(src, 2*step, later, step, 2*step)))
		}
		src = dst
	}
	last := &p[len(p)-1]
	last.Then = append(last.Then, keep(rank, 1))
	for t := range s.treeRounds() { // the blocks that round t brought to their rank
		step := 1 << t
		n := min(step, k-step)
		from := schedule.Out((rank-step+k)%k, n)
		if n > 1 {
			from = plain(from.Strided(1, k-1), k)
		}
		last.Then = append(last.Then, move(from, places(schedule.Tmp(t%2, 0, 1), step, n, n, 1)))
	}
	return p
}

// plain is a span without a stride if its chunks, of k in all, follow each other.
func plain(sp schedule.Span, k int) schedule.Span {
	if runs := sp.AppendRuns(nil, k); len(runs) == 1 {
		return runs[0]
	}
	return sp
}
