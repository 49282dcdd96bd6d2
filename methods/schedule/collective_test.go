package schedule

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestContractTable: the table in the comment of Contract is that of the rows.
func TestContractTable(t *testing.T) {
	source, err := os.ReadFile("collective.go")
	if err != nil {
		t.Fatal(err)
	}
	holdings := map[Holding]string{Whole: "Whole", Own: "Own", Blocks: "Blocks", AtRoot: "AtRoot"}
	from := map[Holding]string{Own: "its owner", Blocks: "the rank of its block", AtRoot: "the root"}
	for _, c := range Collectives() {
		k := c.Contract()
		combined, source1 := "", from[k.Input]
		if k.Combines {
			combined, source1 = "yes", "all ranks"
		}
		line := strings.TrimRight(fmt.Sprintf("//\t%-15s %-8s %-8s %-10s %s",
			c, holdings[k.Input], holdings[k.Output], combined, source1), " ")
		if !strings.Contains(string(source), line+"\n") {
			t.Errorf("the comment of Contract has no line %q", line)
		}
	}
}

// TestHolding has what a rank of three holds of six chunks, and of ten elements.
func TestHolding(t *testing.T) {
	for _, c := range []struct {
		h              Holding
		rank           int
		lo, hi, length int
	}{
		{Whole, 1, 0, 6, 10}, {Blocks, 1, 0, 6, 10}, {Own, 0, 0, 2, 4}, {Own, 2, 4, 6, 4}, {AtRoot, 1, 0, 6, 10}, {AtRoot, 2, 0, 0, 10},
	} {
		if lo, hi := c.h.chunks(c.rank, 1, 3, 6); lo != c.lo || hi != c.hi {
			t.Errorf("holding %d: rank %d holds chunks %d to %d, want %d to %d", c.h, c.rank, lo, hi, c.lo, c.hi)
		}
		if n := c.h.Elements(10, 3); n != c.length {
			t.Errorf("holding %d: %d of 10 elements, want %d", c.h, n, c.length)
		}
	}
}

// TestAgain has an all-reduce by dissemination, in which some contributions of three ranks count twice.
func TestAgain(t *testing.T) {
	s := &Schedule{Collective: AllReduce, Size: 3, Chunks: 1}
	for rank := range 3 {
		s.Programs = append(s.Programs, Program{
			moves(send(In(0, 1), (rank+1)%3), fold(Tmp(0, 0, 1), In(0, 1), (rank+2)%3)),
			both(steps(send(Tmp(0, 0, 1), (rank+2)%3), fold(Tmp(1, 0, 1), Tmp(0, 0, 1), (rank+1)%3)),
				move(Out(0, 1), Tmp(1, 0, 1))),
		})
	}
	mustFail(t, s, "takes a contribution twice")
	s.Again = true
	if r, err := Examine(s); err != nil || !r.Again || r.OneOrder || r.CheckOrder() != nil {
		t.Errorf("%+v, %v", r, err)
	}
	s.Programs[0], s.Programs[1], s.Programs[2] = s.Programs[0][:1], s.Programs[1][:1], s.Programs[2][:1]
	for rank := range 3 {
		r := &s.Programs[rank][0]
		r.Then = append(r.Then, move(Out(0, 1), Tmp(0, 0, 1)))
	}
	mustFail(t, s, "want chunk 0 of all 3 ranks") // again is not never
}
