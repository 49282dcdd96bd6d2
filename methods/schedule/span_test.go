package schedule

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// stridedAllReduce is the all-reduce of four chunks over two ranks: each folds every second chunk and gives it back.
func stridedAllReduce() *Schedule {
	rank := func(own, peer int) Program {
		mine, theirs := Out(own, 2).Strided(1, 2), Out(peer, 2).Strided(1, 2)
		in := mine
		in.Buf = Input
		give := theirs
		give.Buf = Input
		return Program{moves(send(give, peer), fold(mine, in, peer)), moves(send(mine, peer), recv(theirs, peer))}
	}
	return twoRanks(AllReduce, 4, rank(0, 1), rank(1, 0))
}

// stridedAllToAll is the all-to-all of three chunks to a block over two ranks. The first and the last chunk of a block
// go in one message, and lie in places 0 and 5 of a slot between.
func stridedAllToAll() *Schedule {
	rank := func(own, peer int) Program {
		ends, middle := Out(peer, 2).Strided(1, 2), Out(peer+1, 1)
		give := ends
		give.Buf = Input
		slot := Part(0, 0, 0, 2).Strided(1, 5)
		return Program{both(
			steps(send(give, 1-own/3), send(In(peer+1, 1), 1-own/3), recv(slot, 1-own/3), recv(middle, 1-own/3)),
			move(Out(own, 3), In(own, 3)), move(ends, slot))}
	}
	return twoRanks(AllToAll, 6, rank(0, 3), rank(3, 0))
}

// roundTheLast is the all-gather over three ranks in which everyone has its own chunk and the next after a round. Then
// rank 2 sends rank 1 both of its chunks, 2 and 0, of which rank 1 has the first.
func roundTheLast() *Schedule {
	s := &Schedule{Collective: AllGather, Size: 3, Chunks: 3}
	for rank := range 3 {
		next, before := (rank+1)%3, (rank+2)%3
		s.Programs = append(s.Programs, Program{
			both(steps(send(In(rank, 1), before), recv(Out(next, 1), next)), move(Out(rank, 1), In(rank, 1))),
		})
	}
	slot := Part(0, 0, 2, 2).Strided(1, 1)
	last := []Round{
		moves(recv(Out(2, 1), 1), send(Out(1, 1), 2)),
		both(steps(recv(slot, 2), send(Out(2, 1), 0)), move(Out(2, 2).Strided(1, 1), slot)),
		moves(send(Out(2, 2).Strided(1, 1), 1), recv(Out(1, 1), 0)),
	}
	for rank := range 3 {
		s.Programs[rank] = append(s.Programs[rank], last[rank])
	}
	return s
}

// TestStridedChunks: the chunks of a span by their numbers, one after the other and by runs are the same, in every span
// that is accepted, and none comes twice.
func TestStridedChunks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sp   Span
		want []int // of 8 chunks
		runs string
	}{
		{Out(2, 3), []int{2, 3, 4}, "O2-4"},
		{Out(1, 4).Strided(1, 2), []int{1, 3, 5, 7}, "O1 O3 O5 O7"},
		{In(5, 4).Strided(1, 1), []int{5, 6, 7, 0}, "I5-7 I0"},
		{Out(1, 5).Strided(2, 3), []int{1, 2, 4, 5, 7}, "O1-2 O4-5 O7"},
		{Part(2, 0, 2, 3).Strided(1, 7), []int{2, 1, 0}, "S2[2 of 0-] S2[1 of 0-] S2[0]"},
		{Out(6, 6).Strided(3, 4), []int{6, 7, 0, 2, 3, 4}, "O6-7 O0 O2-4"},
		{Out(3, 2).Strided(2, 5), []int{3, 4}, "O3-4"},
	} {
		var runs []string
		for _, r := range c.sp.AppendRuns(nil, 8) {
			runs = append(runs, r.String())
		}
		if have := chunksOf(c.sp, 8); !slices.Equal(have, c.want) || strings.Join(runs, " ") != c.runs {
			t.Errorf("%v: %v in runs %v, want %v in %s", c.sp, have, runs, c.want, c.runs)
		}
	}
	r := rand.New(rand.NewPCG(1, 7))
	accepted, twice := 0, 0
	for range 20000 {
		n := 2 + r.IntN(14)
		sp := Span{Buf: Scratch, First: r.IntN(n), Count: 1 + r.IntN(n), Stride: 1 + r.IntN(n), Run: 1 + r.IntN(4)}
		err := checkStride(&sp, 0, n, n)
		if sp.Stride == n || sp.Run >= sp.Count {
			if err == nil {
				t.Errorf("%v of %d chunks is accepted", sp, n)
			}
			continue
		}
		have := chunksOf(sp, n)
		once := slices.Compact(slices.Sorted(slices.Values(have)))
		if (err == nil) != (len(once) == len(have)) {
			t.Fatalf("%v of %d chunks, which are %v: error %v", sp, n, have, err)
		}
		if err != nil {
			twice++
			continue
		}
		accepted++
		at, i := sp.walk(n), 0
		for _, run := range sp.AppendRuns(nil, n) {
			for f := run.First; f < run.First+run.Count; f, i = f+1, i+1 {
				if w := at.next(); w != f || w != have[i] {
					t.Fatalf("%v of %d chunks: chunk %d is %d by itself, %d by runs, %d one after the other", sp, n, i,
						have[i], f, w)
				}
			}
		}
		if i != sp.Count {
			t.Fatalf("%v of %d chunks: %d in its runs", sp, n, i)
		}
		for lo := range n { // as if the slot began there
			sp.Base = lo
			if err := checkStride(&sp, 0, n, n); (err == nil) != (once[0] >= lo) {
				t.Fatalf("%v of %d chunks: error %v", sp, n, err)
			}
		}
	}
	if accepted < 2000 || twice < 2000 {
		t.Errorf("%d accepted, %d with a chunk twice, so that this says little", accepted, twice)
	}
}

// chunksOf lists the chunks of a span by their numbers.
func chunksOf(sp Span, chunks int) (out []int) {
	for i := range sp.Count {
		out = append(out, sp.chunk(i, chunks))
	}
	return out
}

// TestStridedRefused has strided spans that cannot be, and steps that go wrong by them.
func TestStridedRefused(t *testing.T) {
	t.Parallel()
	span := func(of *Span, stride, run int) { of.Stride, of.Run = stride, run }
	first := func(s *Schedule) *Step { return &s.Programs[0][0].Moves[0] }
	second := func(s *Schedule) *Step { return &s.Programs[0][0].Moves[1] }
	for _, c := range []struct {
		want  string
		base  func() *Schedule
		wreck func(*Schedule)
	}{
		{"runs of 0 chunks, each 2 after the one before: want at least 1, and strides of less than the 4 chunks",
			stridedAllReduce, func(s *Schedule) { span(&first(s).Src, 2, 0) }},
		{"runs of 1 chunks, each 0 after the one before: want at least 1", stridedAllReduce,
			func(s *Schedule) { span(&first(s).Src, 0, 1) }},
		{"runs of 1 chunks, each 4 after the one before", stridedAllReduce, func(s *Schedule) { span(&first(s).Src, 4, 1) }},
		{"runs of 1 chunks, each -1 after the one before", stridedAllReduce,
			func(s *Schedule) { span(&first(s).Src, -1, 1) }},
		{"2 chunks in runs of 2: one run has no stride", stridedAllReduce, func(s *Schedule) { first(s).Src.Run = 2 }},
		{"16777217 chunks in runs of 1, which are more than 16777216 runs", stridedAllReduce,
			func(s *Schedule) { first(s).Src.Count = 1<<24 + 1 }},
		{"5 chunks from chunk 1 on of 4", stridedAllReduce, func(s *Schedule) { first(s).Src.Count = 5 }},
		{"2 chunks from chunk 4 on of 4", stridedAllReduce, func(s *Schedule) { first(s).Src.First = 4 }},
		{"2 chunks from chunk -1 on of 4", stridedAllReduce, func(s *Schedule) { first(s).Src.First = -1 }},
		{"(I1:2x3>1): it has a chunk twice", stridedAllReduce, func(s *Schedule) { first(s).Src.Count = 3 }},
		{"(I1-2:1x3>1): it has a chunk twice", stridedAllReduce,
			func(s *Schedule) { first(s).Src.Count, first(s).Src.Stride, first(s).Src.Run = 3, 1, 2 }},
		{"(O0:1x2=I0:1x2+<1): it leaves chunks 0 to 0", reduceScatter2, func(s *Schedule) {
			*second(s) = fold(Out(0, 2).Strided(1, 1), In(0, 2).Strided(1, 1), 1)
		}},
		{"(S0[2:2x2]<1): it leaves chunks 2 to 3", stridedAllReduce,
			func(s *Schedule) { *second(s) = recv(Tmp(0, 2, 2).Strided(1, 2), 1) }},
		{"(S0[3:1x2]<1): it leaves chunks 3 to 3", stridedAllReduce,
			func(s *Schedule) { *second(s) = recv(Tmp(0, 3, 2).Strided(1, 1), 1) }},
		{"a slot that begins with chunk -1", stridedAllReduce,
			func(s *Schedule) { *second(s) = recv(Part(0, -1, 0, 2).Strided(1, 2), 1) }},
		{"(I1:2x2>1): base 1", stridedAllReduce, func(s *Schedule) { first(s).Src.Base = 1 }},
		{"(O0:2x2=I0:3x2+<1): source and destination have chunks of different sizes", stridedAllReduce,
			func(s *Schedule) { second(s).Src.Stride = 3 }},
		{"(O0-1=I0:2x2+<1): source and destination have chunks of different sizes", stridedAllReduce,
			func(s *Schedule) { second(s).Dst = Out(0, 2) }},
		{"the message (I1-2>1) has chunks of other sizes", stridedAllReduce, func(s *Schedule) { first(s).Src = In(1, 2) }},
		{"moves 0 and 1 both use O1:2x2 in one round", stridedAllReduce,
			func(s *Schedule) { s.Programs[0][1].Moves[0].Src = Out(0, 2) }},
		{"chunk 1 of O1:2x2 was never written", stridedAllReduce,
			func(s *Schedule) {
				m := s.Programs[0][1].Moves
				m[0].Src, m[1].Dst = m[1].Dst, m[0].Src
			}},
		{"the round sends what it overwrites (move 0, O0:2x2>1), and is not the last", stridedAllReduce,
			func(s *Schedule) {
				p := append(s.Programs[0], Round{})
				p[1].Then = steps(reduce(Out(2, 2).Strided(1, 1), In(2, 2).Strided(1, 1)))
				s.Programs[0] = p
			}},
		{"it reads chunks that it has written", stridedAllToAll, func(s *Schedule) {
			p := s.Programs[0]
			p[0].Then = append(p[0].Then, move(Out(0, 2).Strided(1, 3), Out(3, 2).Strided(1, 3)))
		}},
	} {
		s := c.base()
		c.wreck(s)
		mustFail(t, s, c.want)
	}
}
