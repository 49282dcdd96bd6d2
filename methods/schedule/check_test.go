package schedule

import (
	"errors"
	"fmt"
	"github.com/google/go-cmp/cmp"
	"slices"
	"strings"
	"testing"
)

// right are schedules that Check must accept.
func right() map[string]*Schedule {
	return map[string]*Schedule{
		"all-reduce":            allReduce2(),
		"reduce-scatter":        reduceScatter2(),
		"all-gather":            allGather2(),
		"all-to-all":            allToAll2(),
		"broadcast":             broadcast2(),
		"all-reduce over three": ownFirst(),
		"alone": {Collective: AllReduce, Size: 1, Chunks: 1,
			Programs: []Program{{then(move(Out(0, 1), In(0, 1)))}}},
		"own operand anywhere in a fold": {Collective: ReduceScatter, Size: 3, Chunks: 3, Programs: []Program{
			{moves(send(In(1, 1), 1), send(In(2, 1), 2), fold(Out(0, 1), In(0, 1), 1), fold(Out(0, 1), Out(0, 1), 2))},
			{both(steps(send(In(0, 1), 0), send(In(2, 1), 2),
				recv(Tmp(0, 1, 1), 0), reduce(Tmp(0, 1, 1), In(1, 1)), fold(Tmp(0, 1, 1), Tmp(0, 1, 1), 2),
			), move(Out(1, 1), Tmp(0, 1, 1)))},
			{both(steps(send(In(0, 1), 0), send(In(1, 1), 1),
				recv(Tmp(0, 2, 1), 0), fold(Tmp(0, 2, 1), Tmp(0, 2, 1), 1), reduce(Tmp(0, 2, 1), In(2, 1)),
			), move(Out(2, 1), Tmp(0, 2, 1)))},
		}},
		"a slot of two chunks, of which one is sent alone": {Collective: Broadcast, Size: 3, Chunks: 2,
			Programs: []Program{
				{both(steps(send(In(0, 2), 1), send(In(1, 1), 2)), move(Out(0, 2), In(0, 2)))},
				{moves(recv(Tmp(3, 0, 2), 0)), both(steps(send(Tmp(3, 0, 1), 2)), move(Out(0, 2), Tmp(3, 0, 2)))},
				{moves(recv(Out(1, 1), 0)), moves(recv(Out(0, 1), 1))},
			}},
		"programs of different length": twoRanks(Broadcast, 2,
			Program{moves(send(In(0, 1), 1)), moves(send(In(1, 1), 1)), then(move(Out(0, 2), In(0, 2)))},
			Program{moves(recv(Out(0, 1), 0)), moves(recv(Out(1, 1), 0))}),
		"strided":              stridedAllReduce(),
		"strided blocks":       stridedAllToAll(),
		"round the last chunk": roundTheLast(),
	}
}

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	for name, s := range right() {
		r, err := Examine(s)
		if err := errors.Join(err, Check(s)); err != nil || r.Waste.Unused > 0 {
			t.Errorf("%s: %v, waste %v\n%v", name, err, r.Waste, s)
		}
	}
}

// TestForm breaks one thing at a time that can be seen without running anything.
func TestForm(t *testing.T) {
	t.Parallel()
	first := func(s *Schedule) *Step { return &s.Programs[0][0].Moves[0] }
	second := func(s *Schedule) *Step { return &s.Programs[0][0].Moves[1] }
	last := func(s *Schedule) *Step { return &s.Programs[0][0].Then[0] }
	for _, c := range []struct {
		want  string
		base  func() *Schedule
		wreck func(*Schedule)
	}{
		{"schedule: unknown collective 200", allReduce2, func(s *Schedule) { s.Collective = 200 }},
		{"schedule: size 0, want 1 or more", allReduce2, func(s *Schedule) { s.Size, s.Programs = 0, nil }},
		{"schedule: size -1, want 1 or more", allReduce2, func(s *Schedule) { s.Size = -1 }},
		{"schedule: 1 programs for 2 ranks", allReduce2, func(s *Schedule) { s.Programs = s.Programs[:1] }},
		{"schedule: 3 programs for 2 ranks", allReduce2, func(s *Schedule) { s.Programs = append(s.Programs, nil) }},
		{"schedule: 0 chunks, want 1 or more", allReduce2, func(s *Schedule) { s.Chunks = 0 }},
		{"schedule: 1048577 chunks, want at most 1048576", allReduce2, func(s *Schedule) { s.Chunks = maxChunks + 1 }},
		{"schedule: contributions that count again in all-gather, which combines none", allGather2, func(s *Schedule) { s.Again = true }},
		{"schedule: -2 chunks, want 1 or more", reduceScatter2, func(s *Schedule) { s.Chunks = -2 }},
		{"schedule: 3 chunks of reduce-scatter are not a multiple of 2 ranks", reduceScatter2, func(s *Schedule) { s.Chunks = 3 }},
		{"schedule: 3 chunks of all-gather are not a multiple of 2 ranks", allGather2, func(s *Schedule) { s.Chunks = 3 }},
		{"schedule: 5 chunks of all-to-all are not a multiple of 2 ranks", allToAll2, func(s *Schedule) { s.Chunks = 5 }},
		{"schedule: root 2 of broadcast over 2 ranks", broadcast2, func(s *Schedule) { s.Root = 2 }},
		{"schedule: root -1 of broadcast over 2 ranks", broadcast2, func(s *Schedule) { s.Root = -1 }},
		{"schedule: root 1 of all-reduce over 2 ranks", allReduce2, func(s *Schedule) { s.Root = 1 }},
		{"schedule: buffers apart in broadcast, which is not of blocks as an all-to-all is", broadcast2, func(s *Schedule) { s.Apart = true }},

		{"rank 0 round 0 move 0 (Verb(9) O? I0 1): unknown verb", allReduce2, func(s *Schedule) { first(s).Verb = 9 }},
		{"rank 0 round 0 then 0 (Verb(5) O0 I0 -1): unknown verb", allReduce2, func(s *Schedule) { last(s).Verb = 5 }},
		{"rank 0 round 0 then 0 (O0<1): a message stands among the moves", allReduce2, func(s *Schedule) { *last(s) = recv(Out(0, 1), 1) }},
		{"rank 0 round 0 move 0 (O0=I0): a copy stands after the moves", allReduce2, func(s *Schedule) { *first(s) = move(Out(0, 1), In(0, 1)) }},
		{"rank 0 round 0 move 0 (I0>2): peer 2 of 2 ranks", allReduce2, func(s *Schedule) { first(s).Peer = 2 }},
		{"rank 0 round 0 move 0 (I0>-1): peer -1 of 2 ranks", allReduce2, func(s *Schedule) { first(s).Peer = -1 }},
		{"rank 0 round 0 move 0 (I0>0): peer 0 of 2 ranks", allReduce2, func(s *Schedule) { first(s).Peer = 0 }},
		{"rank 0 round 0 then 0 (O0=I0): a local step has peer -1", allReduce2, func(s *Schedule) { last(s).Peer = 0 }},
		{"rank 0 round 0 move 0 (I0>1): one span too many", allReduce2, func(s *Schedule) { first(s).Dst = Out(0, 1) }},
		{"rank 0 round 0 move 1 (S0[0]<1): one span too many", allReduce2, func(s *Schedule) { second(s).Src = In(0, 1) }},

		{"(S0[0]>1): unknown buffer 3", allReduce2, func(s *Schedule) { first(s).Src.Buf = 3 }},
		{"(I0<1): the input is never written", allReduce2, func(s *Schedule) { second(s).Dst = In(0, 1) }},
		{"(I0=I0): the input is never written", allReduce2, func(s *Schedule) { last(s).Dst = In(0, 1) }},
		{"(I0+O0): the input is never written", allReduce2, func(s *Schedule) { *last(s) = reduce(In(0, 1), Out(0, 1)) }},
		{"(S-1[0]<1): slot -1", allReduce2, func(s *Schedule) { second(s).Dst.Slot = -1 }},
		{"(S1048576[0]<1): slot 1048576, want 0 to 1048575", allReduce2, func(s *Schedule) { second(s).Dst.Slot = maxSlots }},
		{"(I0>1): slot 1", allReduce2, func(s *Schedule) { first(s).Src.Slot = 1 }},
		{"(I1>1): chunks 1 to 1 of 0 to 0", allReduce2, func(s *Schedule) { first(s).Src.First = 1 }},
		{"(I-1>1): chunks -1 to -1 of 0 to 0", allReduce2, func(s *Schedule) { first(s).Src.First = -1 }},
		{"(I0-1>1): chunks 0 to 1 of 0 to 0", allReduce2, func(s *Schedule) { first(s).Src.Count = 2 }},
		{"(I0--1>1): chunks 0 to -1 of 0 to 0", allReduce2, func(s *Schedule) { first(s).Src.Count = 0 }},
		{"(S0[1 of 0-]<1): chunks 1 to 1 of 0 to 0", allReduce2, func(s *Schedule) { second(s).Dst.First = 1 }},
		{"(S0[0 of 1-]<1): a slot that begins with chunk 1 has no chunk 0", allReduce2, func(s *Schedule) { second(s).Dst.Base = 1 }},
		{"(S0[0 of -1-]<1): a slot that begins with chunk -1 has no chunk 0", allReduce2, func(s *Schedule) { second(s).Dst.Base = -1 }},
		{"(I0>1): a slot that begins with chunk 1 has no chunk 0", allReduce2, func(s *Schedule) { first(s).Src.Base = 1 }},
		{"(I1>1): chunks 1 to 1 of 0 to 0", allGather2, func(s *Schedule) { first(s).Src.First = 1 }},
		{"(O1=I1+<1): chunks 1 to 1 of 0 to 0", reduceScatter2, func(s *Schedule) { *second(s) = fold(Out(1, 1), In(1, 1), 1) }},
		{"(O0=I1+<1): source and destination have chunks of different sizes", reduceScatter2, func(s *Schedule) { second(s).Src = In(1, 1) }},
		{"(O0-1=I2): source and destination have chunks of different sizes", allToAll2, func(s *Schedule) { last(s).Src = In(2, 1) }},
		{"(O0-1=I1-2): source and destination have chunks of different sizes", allToAll2, func(s *Schedule) { last(s).Src = In(1, 2) }},
	} {
		s := c.base()
		c.wreck(s)
		mustFail(t, s, strings.ReplaceAll(c.want, "O?", Span{}.String()))
	}
}

// mustFail checks that a schedule is refused with a text.
func mustFail(t *testing.T, s *Schedule, want string) {
	t.Helper()
	if err := Check(s); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v,\nwant one with %q", err, want)
	}
}

// TestFlight has rounds whose moves may not be in flight together.
func TestFlight(t *testing.T) {
	t.Parallel()
	quiet := Program{moves(recv(Tmp(0, 0, 1), 0), send(In(0, 1), 0))}
	for _, c := range []struct {
		name, want string
		rank0      Round
	}{
		{"a reduction before anything has arrived", "schedule: rank 0 round 0: move 0 (O0+I0) is not part of a fold",
			moves(reduce(Out(0, 1), In(0, 1)), send(In(0, 1), 1), recv(Out(0, 1), 1))},
		{"a reduction behind a send", "schedule: rank 0 round 0: move 2 (O0+I0) is not part of a fold",
			moves(recv(Out(0, 1), 1), send(In(0, 1), 1), reduce(Out(0, 1), In(0, 1)))},
		{"a reduction into another span than the step before", "schedule: rank 0 round 0: move 2 (S1[0]+I0) is not " +
			"part of a fold",
			moves(send(In(0, 1), 1), recv(Out(0, 1), 1), reduce(Tmp(1, 0, 1), In(0, 1)))},
		{"two receives into one span", "moves 1 and 2 both use O0 in one round",
			moves(send(In(0, 1), 1), recv(Out(0, 1), 1), recv(Out(0, 1), 1))},
		{"a send of what arrives", "moves 0 and 1 both use O0 in one round",
			moves(recv(Out(0, 1), 1), send(Out(0, 1), 1))},
		{"what is sent is overwritten", "moves 0 and 1 both use O0 in one round",
			moves(send(Out(0, 1), 1), recv(Out(0, 1), 1))},
		{"one slot twice", "moves 1 and 2 both use S0[0] in one round",
			moves(send(In(0, 1), 1), recv(Tmp(0, 0, 1), 1), recv(Tmp(0, 0, 1), 1))},
		{"a fold that begins anew", "moves 1 and 2 both use O0 in one round",
			moves(send(In(0, 1), 1), fold(Out(0, 1), In(0, 1), 1), fold(Out(0, 1), In(0, 1), 1))},
		{"a fold goes on behind a send", "moves 0 and 2 both use O0 in one round",
			moves(recv(Out(0, 1), 1), send(In(0, 1), 1), fold(Out(0, 1), Out(0, 1), 1))},
		{"a fold whose operand is being received", "moves 1 and 2 both use S0[0] in one round",
			moves(send(In(0, 1), 1), recv(Tmp(0, 0, 1), 1), fold(Out(0, 1), Tmp(0, 0, 1), 1))},
		{"two operands of a replica's own between two links", "schedule: rank 0 round 0: move 3 (O0+S1[0]) follows " +
			"another local step of its fold",
			moves(send(In(0, 1), 1), recv(Out(0, 1), 1), reduce(Out(0, 1), In(0, 1)), reduce(Out(0, 1), Tmp(1, 0, 1)))},
	} {
		t.Run(c.name, func(t *testing.T) {
			mustFail(t, twoRanks(AllReduce, 1, Program{c.rank0}, quiet), c.want)
		})
	}
	t.Run("only with Output being Input", func(t *testing.T) {
		// Rank 0 sends its input and receives into the same place of its output.
		s := twoRanks(AllToAll, 2,
			Program{both(steps(send(In(1, 1), 1), recv(Out(1, 1), 1)), move(Out(0, 1), In(0, 1)))},
			Program{both(steps(send(In(0, 1), 0), recv(Out(0, 1), 0)), move(Out(1, 1), In(1, 1)))})
		s.Apart = false
		mustFail(t, s, "schedule: rank 0 round 0: moves 0 and 1 both use O1 in one round")
		mustFail(t, s, "with Output being Input: ")
		s.Apart = true
		if err := Check(s); err != nil {
			t.Error(err)
		}
	})
}

// TestRun has schedules of good form that go wrong on the way.
func TestRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		s          *Schedule
	}{
		{"a send without a receive", "schedule: rank 0 round 0: deadlock: rank 1 never receives (I0>1)",
			twoRanks(Broadcast, 1, Program{both(steps(send(In(0, 1), 1), send(In(0, 1), 1)),
				move(Out(0, 1), In(0, 1)))}, Program{moves(recv(Out(0, 1), 0))})},
		{"a send to a rank that has ended", "schedule: rank 0 round 1: deadlock: rank 1 never receives (I0>1)",
			twoRanks(Broadcast, 1, Program{{}, moves(send(In(0, 1), 1))}, Program{{}})},
		{"a receive without a send", "schedule: rank 1 round 0 move 0 (O0<0): deadlock: rank 0 never sends it",
			twoRanks(Broadcast, 1, nil, Program{moves(recv(Out(0, 1), 0))})},
		{"a receive in another round than the send", "schedule: rank 1 round 0 move 0 (O0<0): deadlock: rank 0 never " +
			"sends it",
			twoRanks(Broadcast, 1, Program{{}, moves(send(In(0, 1), 1))}, Program{moves(recv(Out(0, 1), 0))})},
		{"a message shorter than the receive", "schedule: rank 1 round 0 move 0 (O0-1<0): the message (I0>1) has " +
			"chunks of other sizes",
			twoRanks(Broadcast, 2, Program{moves(send(In(0, 1), 1))}, Program{moves(recv(Out(0, 2), 0))})},
		{"a message of another chunk", "schedule: rank 1 round 0 move 0 (O1<0): the message (I0>1) has chunks of " +
			"other sizes",
			twoRanks(Broadcast, 2, Program{moves(send(In(0, 1), 1))}, Program{moves(recv(Out(1, 1), 0))})},
		{"an empty slot", "schedule: rank 0 round 0 then 0 (O0=S0[0]): nothing was put into slot 0",
			twoRanks(Broadcast, 1, Program{then(move(Out(0, 1), Tmp(0, 0, 1)))}, nil)},
		{"an empty slot below a full one", "schedule: rank 0 round 0 then 1 (O0=S0[0]): nothing was put into slot 0",
			twoRanks(Broadcast, 1, Program{then(move(Tmp(1, 0, 1), In(0, 1)), move(Out(0, 1), Tmp(0, 0, 1)))}, nil)},
		{"a slot that holds less", "schedule: rank 0 round 0 then 1 (O0-1=S0[0-1]): slot 0 holds chunks 0 to 0",
			twoRanks(Broadcast, 2, Program{then(move(Tmp(0, 0, 1), In(0, 1)), move(Out(0, 2), Tmp(0, 0, 2)))}, nil)},
		{"a slot that holds another chunk", "schedule: rank 0 round 0 then 1 (O1=S0[1]): slot 0 holds chunks 0 to 1",
			twoRanks(Broadcast, 2, Program{then(move(Tmp(0, 0, 2), In(0, 2)), move(Out(1, 1), Tmp(0, 1, 1)))}, nil)},
		{"an input that is not there", "schedule: rank 1 round 0 then 0 (O0=I0): rank 1 has nothing there: in " +
			"broadcast only the root has, rank 0",
			twoRanks(Broadcast, 1, nil, Program{then(move(Out(0, 1), In(0, 1)))})},
		{"an output before it is written",
			"schedule: rank 0 round 1 move 0 (O0-1>1): chunk 1 of O0-1 was never written",
			twoRanks(AllGather, 2, Program{then(move(Out(0, 1), In(0, 1))), moves(send(Out(0, 2), 1))},
				Program{{}, moves(recv(Tmp(0, 0, 2), 0))})},
		{"an own operand that is not there", "schedule: rank 1 round 0 move 0 (O0=I0+<0): rank 1 has nothing there: " +
			"in broadcast only the root has, rank 0",
			twoRanks(Broadcast, 1, Program{moves(send(In(0, 1), 1))}, Program{moves(fold(Out(0, 1), In(0, 1), 0))})},
		{"a reduction into nothing", "schedule: rank 0 round 0 then 0 (O0+I0): chunk 0 of O0 was never written",
			twoRanks(AllReduce, 1, Program{then(reduce(Out(0, 1), In(0, 1)))}, nil)},
		{"a slot begun in two ways at once", "schedule: rank 0 round 0: move 1 begins slot 0 with chunk 1, another " +
			"with chunk 0 in one round",
			twoRanks(Broadcast, 2, Program{moves(recv(Tmp(0, 0, 1), 1), recv(Tmp(0, 1, 1), 1))}, nil)},
		{"what is sent, overwritten", "schedule: rank 0 round 1 then 0 (S0[0]=I0): the round sends what it " +
			"overwrites (move 0, S0[0]>1), and is not the last",
			overwriting(move(Tmp(0, 0, 1), In(0, 1)))},
		{"a slot that is sent, begun anew", "schedule: rank 0 round 1 then 0 (S0[1]=I1): the round sends what it " +
			"overwrites (move 0, S0[0]>1), and is not the last",
			overwriting(move(Tmp(0, 1, 1), In(1, 1)))},
		{"the input that is sent, overwritten in place", "with Output being Input: schedule: rank 0 round 0 then 1 " +
			"(O0=S0[0]): the round sends what it overwrites (move 0, I0>1), and is not the last",
			twoRanks(Broadcast, 1,
				Program{both(steps(send(In(0, 1), 1)), move(Tmp(0, 0, 1), In(0, 1)), move(Out(0, 1), Tmp(0, 0, 1))),
					{}},
				Program{moves(recv(Out(0, 1), 0)), {}})},
		{"what is sent and folded, overwritten", "schedule: rank 0 round 1 then 0 (S1[0]=S0[0]): the round sends " +
			"what it overwrites (move 0, S1[0]>1), and is not the last",
			foldsWhatItSends()},
		{"a slot in place of the output", "schedule: rank 1 ends with nothing as chunk 0 of the output, want chunk 0 of",
			twoRanks(Broadcast, 1, Program{both(steps(send(In(0, 1), 1)), move(Out(0, 1), In(0, 1)))},
				Program{moves(recv(Tmp(0, 0, 1), 0))})},
		{"chunks mixed up", "combines chunk 2 with chunk 0",
			twoRanks(AllToAll, 4, Program{both(steps(send(In(2, 2), 1), fold(Out(2, 2), In(2, 2), 1)),
				move(Out(0, 2), In(0, 2)))}, allToAll2().Programs[1])},
		{"a contribution twice by a fold", "schedule: rank 0 round 1 then 0 (O0+S0[0]): takes a contribution twice: " +
			"chunk 0 of ranks [1] and chunk 0 of ranks [0 1]",
			twoRanks(AllReduce, 1, Program{allReduce2().Programs[0][0], then(reduce(Out(0, 1), Tmp(0, 0, 1)))},
				allReduce2().Programs[1])},
		{"a contribution twice by a message", "schedule: rank 0 round 1 move 0 (O0+<1): takes a contribution twice",
			twoRanks(AllReduce, 1, append(allReduce2().Programs[0], moves(fold(Out(0, 1), Out(0, 1), 1))),
				append(allReduce2().Programs[1], moves(send(In(0, 1), 0))))},
	} {
		t.Run(c.name, func(t *testing.T) { mustFail(t, c.s, c.want) })
	}
}

// overwriting is a schedule whose rank 0 sends slot 0 in round 1 and has a step after that.
func overwriting(then Step) *Schedule {
	return twoRanks(Broadcast, 2,
		Program{{Then: steps(move(Tmp(0, 0, 1), In(0, 1)))}, {Moves: steps(send(Tmp(0, 0, 1), 1)), Then: steps(then)},
			{}}, nil)
}

// foldsWhatItSends is a schedule whose rank 0 sends a slot and folds it into another, which then takes its place.
func foldsWhatItSends() *Schedule {
	return twoRanks(AllReduce, 1,
		Program{{Then: steps(move(Tmp(1, 0, 1), In(0, 1)))},
			both(steps(send(Tmp(1, 0, 1), 1), fold(Tmp(0, 0, 1), Tmp(1, 0, 1), 1)), move(Tmp(1, 0, 1), Tmp(0, 0, 1))),
			{}}, nil)
}

// TestOutcome has schedules that run to the end and leave the wrong thing behind.
func TestOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		s          *Schedule
	}{
		{"nothing", "schedule: rank 0 ends with nothing as chunk 0 of the output, want chunk 0 of all 2 ranks", twoRanks(AllReduce, 1, nil, nil)},
		{"the own contribution only", "schedule: rank 0 ends with chunk 0 of ranks [0] as chunk 0 of the output, " +
			"want chunk 0 of all 2 ranks",
			twoRanks(AllReduce, 1, Program{then(move(Out(0, 1), In(0, 1)))}, Program{then(move(Out(0, 1), In(0, 1)))})},
		{"one rank without the sum", "schedule: rank 1 ends with chunk 0 of ranks [1] as chunk 0 of the output, want " +
			"chunk 0 of all 2 ranks",
			twoRanks(AllReduce, 1, Program{moves(fold(Out(0, 1), In(0, 1), 1))},
				Program{both(steps(send(In(0, 1), 0)), move(Out(0, 1), In(0, 1)))})},
		{"a reduce-scatter without one shard", "schedule: rank 1 ends with nothing as chunk 1 of the output, want " +
			"chunk 1 of all 2 ranks",
			twoRanks(ReduceScatter, 2, Program{moves(fold(Out(0, 1), In(0, 1), 1))},
				Program{moves(send(In(0, 1), 0))})},
		{"an all-gather without the own shard", "schedule: rank 0 ends with nothing as chunk 0 of the output, want " +
			"chunk 0 of ranks [0]",
			twoRanks(AllGather, 2, Program{moves(send(In(0, 1), 1), recv(Out(1, 1), 1))},
				Program{moves(send(In(1, 1), 0), recv(Out(0, 1), 0))})},
		{"an all-to-all that keeps everything", "schedule: rank 0 ends with chunk 2 of ranks [0] as chunk 2 of the " +
			"output, want chunk 0 of ranks [1]",
			twoRanks(AllToAll, 4, Program{then(move(Out(0, 4), In(0, 4)))}, Program{then(move(Out(0, 4), In(0, 4)))})},
		{"an all-to-all with two blocks exchanged", "schedule: rank 0 ends with chunk 2 of ranks [1] as chunk 2 of " +
			"the output, want chunk 0 of ranks [1]",
			twoRanks(AllToAll, 4, allToAll2().Programs[0],
				Program{both(steps(send(In(2, 2), 0), recv(Out(0, 2), 0)), move(Out(2, 2), In(2, 2)))})},
		{"a broadcast that does not reach a rank", "schedule: rank 0 ends with nothing as chunk 0 of the output, " +
			"want chunk 0 of ranks [1]",
			fromRank1(twoRanks(Broadcast, 1, nil, Program{then(move(Out(0, 1), In(0, 1)))}))},
		{"a broadcast that forgets its root", "schedule: rank 1 ends with nothing as chunk 0 of the output, want " +
			"chunk 0 of ranks [1]",
			fromRank1(twoRanks(Broadcast, 1, Program{moves(recv(Out(0, 1), 1))}, Program{moves(send(In(0, 1), 0))}))},
	} {
		t.Run(c.name, func(t *testing.T) { mustFail(t, c.s, c.want) })
	}
}

// TestInPlaceIsTried has a schedule that is right only as long as Output is not Input: the input is read after its
// place in the output has been written.
func TestInPlaceIsTried(t *testing.T) {
	t.Parallel()
	s := twoRanks(AllReduce, 1,
		Program{moves(fold(Out(0, 1), In(0, 1), 1)), moves(send(In(0, 1), 1))},
		Program{moves(send(In(0, 1), 0)), moves(fold(Out(0, 1), In(0, 1), 0))})
	mustFail(t, s, "with Output being Input: schedule: rank 1 round 1 move 0 (O0=I0+<0): takes a contribution twice")
}

func TestExamine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		s    *Schedule
		want Report
	}{
		{"all-reduce", allReduce2(), Report{Collective: AllReduce, Size: 2, Chunks: 1, Rounds: 1, Messages: 2, InFlight: 2,
			Ports: 1, Scratch: 1, Sent: []int{1, 1}, Received: []int{1, 1}, OneOrder: true, RankOrder: true,
			Least: Bounds{1, 1, 1}}},
		{"reduce-scatter", reduceScatter2(), Report{Collective: ReduceScatter, Size: 2, Chunks: 2, Rounds: 1, Messages: 2,
			InFlight: 2, Ports: 1, Sent: []int{1, 1}, Received: []int{1, 1}, OneOrder: true, RankOrder: true,
			Least: Bounds{1, 1, 1}}},
		{"all-to-all of two chunks a block", allToAll2(), Report{Collective: AllToAll, Size: 2, Chunks: 4, Rounds: 1,
			Messages: 2, InFlight: 2, Ports: 1, Sent: []int{2, 2}, Received: []int{2, 2}, OneOrder: true,
			RankOrder: true, Least: Bounds{1, 2, 2}}},
		{"broadcast", broadcast2(), Report{Collective: Broadcast, Size: 2, Chunks: 1, Rounds: 1, Messages: 1, InFlight: 1,
			Ports: 1, Sent: []int{1, 0}, Received: []int{0, 1}, OneOrder: true, RankOrder: true,
			Least: Bounds{1, 1, 1}}},
		{"everyone begins with its own: (0+1)+2, (1+0)+2, (2+0)+1", ownFirst(), Report{Collective: AllReduce, Size: 3,
			Chunks: 1, Rounds: 1, Messages: 6, InFlight: 4, Ports: 2, Scratch: 1, Sent: []int{2, 2, 2},
			Received: []int{2, 2, 2}, Least: Bounds{1, 2, 2},
			Order: "chunk 0 is (0+1)+2 at rank 0 and (0+2)+1 at rank 2"}},
		{"the last in rank order, the first not: (0+2)+1, (1+0)+2, (0+1)+2", lastInRankOrder(), Report{
			Collective: AllReduce, Size: 3, Chunks: 1, Rounds: 1, Messages: 6, InFlight: 4, Ports: 2, Scratch: 1,
			Sent: []int{2, 2, 2}, Received: []int{2, 2, 2}, Least: Bounds{1, 2, 2},
			Order: "chunk 0 is (0+2)+1 at rank 0 and (0+1)+2 at rank 1"}},
		{"everyone in one order, but not that of the ranks: (0+2)+1", byRank0(2, 1), Report{Collective: AllReduce, Size: 3,
			Chunks: 1, Rounds: 2, Messages: 4, InFlight: 2, Ports: 2, Sent: []int{2, 1, 1}, Received: []int{2, 1, 1},
			OneOrder: true, Least: Bounds{1, 2, 2}, Order: "chunk 0 is (0+2)+1 at rank 0"}},
		{"everyone in rank order: (0+1)+2", byRank0(1, 2), Report{Collective: AllReduce, Size: 3, Chunks: 1, Rounds: 2,
			Messages: 4, InFlight: 2, Ports: 2, Sent: []int{2, 1, 1}, Received: []int{2, 1, 1}, OneOrder: true,
			RankOrder: true, Least: Bounds{1, 2, 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Examine(c.s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value fmt.Stringer
		want  string
	}{
		{AllReduce, "all-reduce"}, {ReduceScatter, "reduce-scatter"}, {AllGather, "all-gather"}, {AllToAll, "all-to-all"}, {Broadcast, "broadcast"}, {Barrier, "barrier"},
		{Collective(200), "Collective(200)"},
		{Send, "send"}, {Recv, "recv"}, {RecvReduce, "recv-reduce"}, {Copy, "copy"}, {Fold, "fold"},
		{Verb(5), "Verb(5)"},
		{In(3, 1), "I3"}, {Out(0, 3), "O0-2"}, {Tmp(1, 5, 1), "S1[5]"}, {Tmp(12, 5, 4), "S12[5-8]"},
		{send(In(3, 2), 1), "I3-4>1"}, {recv(Out(2, 1), 0), "O2<0"},
		{fold(Out(1, 1), In(1, 1), 2), "O1=I1+<2"}, {fold(Out(1, 1), Out(1, 1), 2), "O1+<2"}, {fold(Tmp(0, 1, 1), Out(1, 1), 2), "S0[1]=O1+<2"},
		{move(Out(1, 1), Tmp(0, 1, 1)), "O1=S0[1]"}, {reduce(Out(1, 1), In(1, 1)), "O1+I1"},
		{Step{Verb: 7, Peer: 3, Src: In(1, 1), Dst: Out(2, 1)}, "Verb(7) O2 I1 3"},
	} {
		if got := c.value.String(); got != c.want {
			t.Errorf("%#v prints as %q, want %q", c.value, got, c.want)
		}
	}
	if got := Collectives(); len(got) != int(numCollectives)-2 || got[0] != AllReduce || slices.Contains(got, Barrier) {
		t.Errorf("Collectives() = %v", got)
	}
}
