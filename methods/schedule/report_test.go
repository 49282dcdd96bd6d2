package schedule

import (
	"errors"
	"fmt"
	"github.com/google/go-cmp/cmp"
	"strings"
	"testing"
)

// TestReportTables are golden.
func TestReportTables(t *testing.T) {
	uneven := &Schedule{Collective: Scatter, Size: 3, Chunks: 6, Root: 1, Programs: []Program{
		{moves(recv(Tmp(0, 0, 6), 1)), both(steps(send(Tmp(0, 0, 6), 2)), move(Out(0, 2), Part(0, 0, 0, 2)))},
		{both(steps(send(In(0, 6), 0)), move(Out(2, 2), In(2, 2)))},
		{{}, moves(recv(Tmp(0, 0, 6), 0)), then(move(Out(4, 2), Part(0, 0, 4, 2)))},
	}}
	again := &Schedule{Collective: Barrier, Size: 20, Chunks: 1}
	for rank := range again.Size {
		p := Program{}
		src, out := In(0, 1), Tmp(0, 0, 1)
		for i := range 5 {
			if i > 0 {
				src, out = out, Tmp(i%2, 0, 1)
			}
			p = append(p, moves(send(src, (rank+1<<i)%again.Size), fold(out, src, (rank-1<<i+again.Size)%again.Size)))
		}
		p[4].Then = steps(move(Out(0, 1), out))
		again.Programs = append(again.Programs, p)
	}
	for _, c := range []struct {
		s    *Schedule
		want string
	}{
		{byRank0(2, 1), `all-reduce, 3 ranks, 1 chunk
                           schedule      least
rounds                            2          1
messages                          4
most in flight at a rank          2
peers at once                     2
chunks of scratch                 0
most chunks sent                  2          2
most chunks received              2          2
chunks sent, by rank     2 1 1
chunks received, by rank 2 1 1
order                    one on all ranks
waste                    none
`},
		{uneven, `scatter, 3 ranks, 6 chunks
                           schedule      least
rounds                            3          2
messages                          2
most in flight at a rank          1
peers at once                     1
chunks of scratch                 6
most chunks sent                  6          4
most chunks received              6          2
chunks sent, by rank     6 6 0
chunks received, by rank 6 0 6
waste                    0 chunks sent again, 4 chunks never used, first rank 2 at the end: what was put into slot 0 was never read: chunk 0 of ranks [1]
`},
		{again, `barrier, 20 ranks, 1 chunk
                           schedule      least
rounds                            5          5
messages                        100
most in flight at a rank          2
peers at once                     1
chunks of scratch                 2
most chunks sent                  5          2
most chunks received              5          2
chunks sent, by rank     5 each
chunks received, by rank 5 each
order                    differs by rank
waste                    none
`},
	} {
		r, err := c.s.Report()
		if err != nil {
			t.Errorf("%v\n%v", err, c.s)
		}
		if diff := cmp.Diff(c.want, r.String()); diff != "" {
			t.Errorf("table (-want +got):\n%s", diff)
		}
	}
	many := Report{Sent: make([]int, 17), Received: []int{}}
	many.Sent[3] = 5
	if got := byRank(many.Sent); got != "0 to 5" {
		t.Errorf("17 ranks: %q", got)
	}
	if got := (Report{}).String(); got == "" {
		t.Error("no table of the zero Report")
	}
}

// TestWaste has schedules that do something in vain, and are right. Examine counts it, with what is first, and
// CheckWaste makes it an error.
func TestWaste(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *Schedule
		want Waste
	}{
		{"a chunk twice in a round, folded and kept", func() *Schedule {
			s := broadcast2()
			s.Programs[0][0].Moves = steps(send(In(0, 1), 1), send(In(0, 1), 1))
			s.Programs[1][0].Moves = steps(recv(Out(0, 1), 0), recv(Tmp(0, 0, 1), 0))
			return s
		}(), Waste{1, 1, "rank 1 round 0: S0[0]<0 brings chunk 0, which the rank has had"}},
		{"a chunk that has come, and was read in between", func() *Schedule {
			s := &Schedule{Collective: Broadcast, Size: 3, Chunks: 1, Programs: []Program{
				{both(steps(send(In(0, 1), 1)), move(Out(0, 1), In(0, 1))), moves(send(Out(0, 1), 1))},
				{moves(recv(Tmp(0, 0, 1), 0)), moves(send(Tmp(0, 0, 1), 2), recv(Out(0, 1), 0))},
				{{}, moves(recv(Out(0, 1), 1))},
			}}
			return s
		}(), Waste{1, 0, "rank 1 round 1: O0<0 brings chunk 0, which the rank has had"}},
		{"a chunk by way of a slot", twoRanks(AllGather, 2,
			Program{both(steps(send(In(0, 1), 1), recv(Out(1, 1), 1)), move(Out(0, 1), In(0, 1)))},
			Program{moves(send(In(1, 1), 0), recv(Tmp(0, 0, 1), 0)), both(nil, move(Out(0, 1), Tmp(0, 0, 1)),
				move(Out(1, 1), In(1, 1)))}), Waste{}},
		{"the own chunk sent round", &Schedule{Collective: AllGather, Size: 2, Chunks: 2, Programs: []Program{
			{both(steps(send(In(0, 1), 1), recv(Out(1, 1), 1)), move(Out(0, 1), In(0, 1))), moves(send(Out(1, 1), 1))},
			{moves(send(In(1, 1), 0), recv(Out(0, 1), 0)), moves(recv(Out(1, 1), 0))},
		}}, Waste{1, 0, "rank 1 round 1: O1<0 brings chunk 1, which the rank has had"}},
		{"overwritten before it was read", twoRanks(Broadcast, 1,
			Program{both(steps(send(In(0, 1), 1)), move(Out(0, 1), In(0, 1)), move(Out(0, 1), In(0, 1)))},
			Program{moves(recv(Out(0, 1), 0))}),
			Waste{0, 1, "rank 0 round 0: chunk 0 of O0 is overwritten before it was read"}},
		{"a slot written over", twoRanks(Broadcast, 1,
			Program{both(steps(send(In(0, 1), 1)), move(Tmp(0, 0, 1), In(0, 1)), move(Tmp(0, 0, 1), In(0, 1)),
				move(Out(0, 1), Tmp(0, 0, 1)))},
			Program{moves(recv(Out(0, 1), 0))}),
			Waste{0, 1, "rank 0 round 0: chunk 0 of S0[0] is overwritten before it was read"}},
		{"chunks of strides written over", func() *Schedule {
			s := stridedAllToAll()
			p := s.Programs[0]
			p[0].Then = append(p[0].Then, p[0].Then[len(p[0].Then)-1])
			return s
		}(), Waste{0, 2, "rank 0 round 0: chunk 3 of O3:2x2 is overwritten before it was read"}},
		{"a slot begun anew, and left", twoRanks(Broadcast, 2,
			Program{both(steps(send(In(0, 2), 1)), move(Out(0, 2), In(0, 2)), move(Tmp(0, 0, 1), In(0, 1)),
				move(Tmp(0, 1, 1), In(1, 1)))},
			Program{moves(recv(Out(0, 2), 0))}),
			Waste{0, 2, "rank 0 round 0: what was put into slot 0 was never read: chunk 0 of ranks [0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Examine(c.s)
			if err := errors.Join(err, Check(c.s)); err != nil {
				t.Fatalf("%v\n%v", err, c.s)
			}
			if r.Waste != c.want {
				t.Errorf("waste %+v, want %+v", r.Waste, c.want)
			}
			switch err := r.CheckWaste(); {
			case c.want == Waste{}:
				if err != nil {
					t.Error(err)
				}
			case err == nil || !strings.Contains(err.Error(), "data moves for nothing: ") ||
				!strings.Contains(err.Error(), c.want.First):
				t.Errorf("CheckWaste says %v, want %v", err, c.want)
			}
		})
	}
	const want = "1 chunk sent again, 2 chunks never used, first rank 3"
	if got := fmt.Sprint(Waste{1, 2, "rank 3"}); got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

// TestLeast holds the bounds against the table in their comment, for so many chunks that it comes out even.
func TestLeast(t *testing.T) {
	for n := 2; n <= 9; n++ {
		m := 2 * n
		most := m * (n - 1) / n
		for c, want := range map[Collective][2]int{
			AllReduce: {2 * most, 2 * most}, ReduceScatter: {most, most}, AllGather: {most, most},
			AllToAll: {most, most}, Broadcast: {m, m}, Reduce: {m, m}, Gather: {m / n, most}, Scatter: {most, m / n},
			Barrier: {2 * most, 2 * most},
		} {
			got := least(&Schedule{Collective: c, Size: n, Chunks: m}, 1)
			if got.Sent != want[0] || got.Received != want[1] {
				t.Errorf("%v over %d: %+v, want %v", c, n, got, want)
			}
		}
		rounds := least(&Schedule{Collective: AllReduce, Size: n, Chunks: 1}, 1).Rounds
		if 1<<rounds < n || 1<<(rounds-1) >= n {
			t.Errorf("%d rounds with one port over %d", rounds, n)
		}
		if got := least(&Schedule{Collective: AllReduce, Size: n, Chunks: 1}, n-1).Rounds; got != 1 {
			t.Errorf("%d rounds with %d ports over %d", got, n-1, n)
		}
	}
	if got := least(&Schedule{Collective: AllReduce, Size: 1, Chunks: 3}, 0); got != (Bounds{}) {
		t.Errorf("alone: %+v", got)
	}
}

// TestPorts counts peers, and not messages.
func TestPorts(t *testing.T) {
	r, err := twoRanks(Broadcast, 3,
		Program{both(steps(send(In(0, 1), 1), send(In(1, 1), 1), send(In(2, 1), 1)), move(Out(0, 3), In(0, 3)))},
		Program{moves(recv(Out(0, 1), 0), recv(Out(1, 1), 0), recv(Out(2, 1), 0))}).Report()
	if err != nil || r.Ports != 1 || r.InFlight != 3 || r.Messages != 3 {
		t.Errorf("%+v, error %v; want 1 port, 3 messages, all in flight", r, err)
	}
}
