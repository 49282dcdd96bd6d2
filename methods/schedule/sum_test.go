package schedule

import (
	"errors"
	"testing"
)

// TestSplitMix has the first numbers of SplitMix64 with the seed 1234567, as published with it.
func TestSplitMix(t *testing.T) {
	state := uint64(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
		16408922859458223821} {
		if got := splitMix(state); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
		state += splitMixStep
	}
}

// TestSums: the numbers of ranks differ, in both halves, and a sum carries.
func TestSums(t *testing.T) {
	const ranks = 1 << 16
	hi, lo := map[uint64]int{}, map[uint64]int{}
	for rank := range ranks {
		x := sumOf(rank)
		hi[x.hi], lo[x.lo] = rank, rank
	}
	if len(hi) != ranks || len(lo) != ranks {
		t.Errorf("%d and %d distinct halves of %d ranks", len(hi), len(lo), ranks)
	}
	if got, want := (sum{1, 1<<64 - 1}).plus(sum{2, 2}), (sum{4, 1}); got != want {
		t.Errorf("sum %v, want %v", got, want)
	}
	if a, b := sumOf(0).plus(sumOf(1)).plus(sumOf(2)), sumOfAll(3); a != b {
		t.Errorf("three ranks are %v, all of three %v", a, b)
	}
}

// TestSumsThatComeRoundAgain has a contribution count 2^128 times more, whose sum is 0: the count shows it.
func TestSumsThatComeRoundAgain(t *testing.T) {
	a, b := Tmp(0, 0, 1), Tmp(1, 0, 1)
	doubled := steps(move(a, In(0, 1)))
	for range 128 {
		doubled = append(doubled, move(b, a), reduce(a, b))
	}
	s := twoRanks(AllReduce, 1,
		Program{{Then: doubled}, both(steps(send(In(0, 1), 1), fold(Out(0, 1), In(0, 1), 1)), reduce(Out(0, 1), a))},
		Program{{}, moves(send(In(0, 1), 0), fold(Out(0, 1), In(0, 1), 0))})
	if _, err := ExamineSums(s); !errors.Is(err, errTwice) {
		t.Errorf("by sums: error %v, want one of a contribution that counts twice", err)
	}
	mustFail(t, s, "schedule: rank 0 round 0 then 2 (S0[0]+S1[0]): takes a contribution twice")
	if err := CheckSumsFirst(s); err == nil || err.Error() != Check(s).Error() {
		t.Errorf("by sums first: error %v, want that of Check", err)
	}
}

// TestSumsShowWhatCountsTwice has three ranks' results of as many contributions as there are ranks, of which one counts
// twice and one is missing: the sum shows it.
func TestSumsShowWhatCountsTwice(t *testing.T) {
	s := &Schedule{Collective: AllReduce, Size: 3, Chunks: 1, Programs: []Program{
		{both(steps(send(In(0, 1), 1), fold(Out(0, 1), In(0, 1), 1)), reduce(Out(0, 1), In(0, 1)))},
		{moves(send(In(0, 1), 0), fold(Out(0, 1), In(0, 1), 0), fold(Out(0, 1), Out(0, 1), 2)), moves(send(Out(0, 1), 2))},
		{moves(send(In(0, 1), 1)), moves(recv(Out(0, 1), 1))},
	}}
	const want = "schedule: rank 0 ends with chunk 0 of 3 ranks as chunk 0 of the output, want chunk 0 of all 3 ranks"
	if _, err := ExamineSums(s); err == nil || err.Error() != want {
		t.Errorf("by sums: error %v,\nwant %s", err, want)
	}
	mustFail(t, s, "rank 0 round 0 then 0 (O0+I0): takes a contribution twice: chunk 0 of ranks [0] and chunk 0 of ranks "+
		"[0 1]")
}

func TestTooMuchToKeep(t *testing.T) {
	s := &Schedule{Collective: Broadcast, Size: 1025, Chunks: maxChunks, Programs: make([]Program, 1025)}
	mustFail(t, s, "schedule: 1048576 chunks on 1025 ranks are 1074790400, and a check keeps 1073741824 at most")
}
