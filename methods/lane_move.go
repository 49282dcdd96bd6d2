package methods

import "gogcl.dev/methods/schedule"

// laneAllToAll forwards blocks along the lanes: at round t a rank sends on, from the rank t places behind, the blocks
// that have further to go, and so one block fewer each round. Blocks in transit lie in two sets of slots for each
// lane, used in turn. When Output is Input, what arrives in round 0 waits in a slot until the last round.
//
//	all-to-all, 4 ranks, 4 chunks, 3 rounds, apart
//	round | rank 0  | rank 1  | rank 2  | rank 3
//	------+---------+---------+---------+--------
//	    0 | I1>1    | I2>2    | I3>3    | I0>0
//	      | I2>1    | I3>2    | I0>3    | I1>0
//	      | I3>1    | I0>2    | I1>3    | I2>0
//	      | O3<3    | O0<0    | O1<1    | O2<2
//	      | S1[1]<3 | S1[2]<0 | S1[3]<1 | S1[0]<2
//	      | S2[2]<3 | S2[3]<0 | S2[0]<1 | S2[1]<2
//	      | then    | then    | then    | then
//	      | O0=I0   | O1=I1   | O2=I2   | O3=I3
//	    1 | S1[1]>1 | S1[2]>2 | S1[3]>3 | S1[0]>0
//	      | S2[2]>1 | S2[3]>2 | S2[0]>3 | S2[1]>0
//	      | O2<3    | O3<0    | O0<1    | O1<2
//	      | S5[1]<3 | S5[2]<0 | S5[3]<1 | S5[0]<2
//	    2 | S5[1]>1 | S5[2]>2 | S5[3]>3 | S5[0]>0
//	      | O1<3    | O2<0    | O3<1    | O0<2
//
//	all-to-all, 4 ranks, 4 chunks, 3 rounds
//	round   0       1       2
//	chunks  3       2       1
//	rank 0 ─●───▲─ ─●───▲─ ─●───▲─
//	        │   │   │   │   │   │
//	rank 1 ─▼─●─│─ ─▼─●─│─ ─▼─●─│─
//	          │ │     │ │     │ │
//	rank 2 ─●─▼─│─ ─●─▼─│─ ─●─▼─│─
//	        │   │   │   │   │   │
//	rank 3 ─▼───●─ ─▼───●─ ─▼───●─
//
//draw:clockwise_ring all-to-all 4
//shape:clockwise_ring all-to-all 4
func (s Spec) laneAllToAll(r ring) schedule.Program {
	p := r.rounds(0)
	own := r.lanes[0].self()
	for t := range p {
		moves := 0
		for _, l := range r.lanes {
			moves += 2 * max(l.reach-t, 0)
		}
		p[t].Moves = make([]schedule.Step, 0, moves)
		for _, l := range r.lanes {
			if t >= l.reach {
				continue
			}
			chunk := func(block int) int { return block*r.fragments + l.fragment }
			transit := func(t, d int) schedule.Span { // the block that has d places to go after round t
				return schedule.Tmp(2*s.Size*l.id+s.Size*(t%2)+d, chunk(l.ahead(d)), 1)
			}
			for d := 1; d <= l.reach-t; d++ { // what has d places to go
				src := schedule.In(chunk(l.ahead(d)), 1)
				if t > 0 {
					src = transit(t-1, d)
				}
				p[t].Moves = append(p[t].Moves, send(src, l.ahead(1)))
			}
			from := l.behind(t + 1)
			arrived := schedule.Out(chunk(from), 1)
			if t == 0 && s.InPlace {
				last := &p[len(p)-1]
				last.Then = append(last.Then, move(arrived, transit(t, 0)))
				arrived = transit(t, 0)
			}
			p[t].Moves = append(p[t].Moves, recv(arrived, l.behind(1)))
			for d := 1; d < l.reach-t; d++ {
				p[t].Moves = append(p[t].Moves, recv(transit(t, d), l.behind(1)))
			}
		}
	}
	p[0].Then = append(p[0].Then, keep(own*r.fragments, r.fragments))
	return p
}

// laneBroadcast is a pipelined chain: each lane cuts what it carries into m pieces, and the rank d places from the
// root passes piece i on at round i+d. The last of them arrives after reach-1+m rounds.
//
//	broadcast, 3 ranks, 2 chunks, 3 rounds
//	round | rank 0    | rank 1 | rank 2
//	------+-----------+--------+-------
//	    0 | I0>1      | O0<0   |
//	      | then      |        |
//	      | O0-1=I0-1 |        |
//	    1 | I1>1      | O0>2   | O0<1
//	      |           | O1<0   |
//	    2 | -         | O1>2   | O1<1
//
//	broadcast, 5 ranks, 3 chunks, 6 rounds
//	round   0   1     2     3     4     5
//	rank 0 ─●─ ─●─── ─●─── ───── ───── ───
//	        │   │     │
//	rank 1 ─▼─ ─▼─●─ ─▼─●─ ─●─── ───── ───
//	              │     │   │
//	rank 2 ─── ───▼─ ─●─▼─ ─▼─●─ ─●─── ───
//	                  │       │   │
//	rank 3 ─── ───── ─▼─── ─●─▼─ ─▼─●─ ─●─
//	                        │       │   │
//	rank 4 ─── ───── ───── ─▼─── ───▼─ ─▼─
//
//draw:clockwise_ring broadcast 3 pieces=2
//shape:clockwise_ring broadcast 5 pieces=3
func (s Spec) laneBroadcast(r ring) schedule.Program {
	m := s.pieces()
	p := r.rounds(m - 1)
	root := r.lanes[0].self() == s.Root
	for _, l := range r.lanes {
		d := 0 // places from the root
		for l.behind(d) != s.Root {
			d++
		}
		if d > l.reach {
			continue
		}
		for i := range m {
			piece := l.fragment*m + i
			if d > 0 {
				r := &p[i+d-1]
				r.Moves = append(r.Moves, recv(schedule.Out(piece, 1), l.behind(1)))
			}
			if d == l.reach {
				continue
			}
			src := schedule.Out(piece, 1)
			if root {
				src = schedule.In(piece, 1)
			}
			r := &p[i+d]
			r.Moves = append(r.Moves, send(src, l.ahead(1)))
		}
	}
	if root {
		p[0].Then = append(p[0].Then, keep(0, r.fragments*m))
	}
	return p
}
