package schedule

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// drawable has a schedule for each thing that a drawing can say. Not all are correct.
func drawable() map[string]*Schedule {
	out := right()
	out["root"] = fromRank1(twoRanks(Reduce, 3, nil, nil))
	out["apart"] = allToAll2()
	again := allReduce2()
	again.Again = true
	out["again"] = again
	out["all marks"] = &Schedule{Collective: Scatter, Size: 3, Chunks: 3, Root: 2, Apart: true, Again: true,
		Programs: make([]Program, 3)}
	out["barrier"] = &Schedule{Collective: Barrier, Size: 1, Chunks: 1, Programs: make([]Program, 1)}
	out["empty rounds"] = twoRanks(AllReduce, 1, Program{{}, moves(send(In(0, 1), 1)), {}, {}}, Program{{}})
	out["only empty rounds"] = twoRanks(AllReduce, 1, Program{{}, {}}, nil)
	out["bases"] = twoRanks(AllReduce, 9, Program{both(steps(
		send(Part(3, 2, 5, 2), 1), recv(Part(3, 0, 8, 1), 1), fold(Tmp(1, 4, 1), Part(12, 3, 4, 1), 1)),
		move(Out(0, 9), Part(2, 0, 0, 9)), reduce(Tmp(2, 1, 2), Part(2, 0, 1, 2)))}, nil)
	out["strides"] = twoRanks(AllReduce, 9, Program{both(steps(
		send(Out(8, 5).Strided(2, 3), 1), recv(Part(3, 0, 8, 9).Strided(1, 8), 1),
		fold(Tmp(1, 4, 2).Strided(1, 3), Part(1, 0, 4, 2).Strided(1, 3), 1)),
		move(Out(0, 9).Strided(8, 1), In(7, 4).Strided(3, 8)), reduce(Tmp(2, 1, 2), Part(2, 0, 1, 2)))}, nil)
	maps.Copy(out, customs())
	out["a copy among the moves"] = twoRanks(AllReduce, 1, Program{moves(move(Out(0, 1), In(0, 1)))}, nil)
	return out
}

// TestParse reads drawings, as they are and with all that they need not have been drawn with.
func TestParse(t *testing.T) {
	t.Parallel()
	for name, s := range drawable() {
		drawing := s.String()
		var tight strings.Builder
		tight.WriteString("# made by hand\n\n")
		for l := range strings.Lines(drawing) {
			if strings.Contains(l, "|") {
				cells := strings.Split(l, "|")
				for i := range cells {
					cells[i] = strings.TrimSpace(cells[i])
				}
				l = strings.Join(cells, "|") + "\r\n"
			}
			tight.WriteString(l + "\n")
		}
		for _, text := range []string{drawing, tight.String(), strings.TrimSuffix(drawing, "\n")} {
			got, err := Parse([]byte(text))
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
				continue
			}
			if diff := cmp.Diff(s, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: read another schedule (-drawn +read):\n%s\n%s", name, diff, text)
			}
		}
	}
	if s, err := Parse([]byte(strings.Replace(allReduce2().String(), "S0[0]<1", "S0[0 of 0-]<1", 1))); err != nil ||
		s.Programs[0][0].Moves[1].Dst != Tmp(0, 0, 1) {
		t.Errorf("a base that is the first chunk: %v", err)
	}
}

// TestParseErrors has a text for each complaint.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	// table is a schedule of two ranks with a cell for each.
	table := func(a, b string) string {
		return "all-reduce, 2 ranks, 4 chunks, 1 round\nround | rank 0 | rank 1\n---\n0 | " + a + " | " + b + "\n"
	}
	const head = "all-reduce, 2 ranks, 4 chunks, 2 rounds\nround|rank 0|rank 1\n---\n"
	for _, c := range []struct{ text, want string }{
		{"", `line 1, column 1: the text ends before the title, want one such as "all-gather, 3 ranks, 3 chunks, 2 rounds"`},
		{"hello\n", `line 1, column 1: "hello" is no title, want one such as "all-gather, 3 ranks, 3 chunks, 2 rounds"`},
		{"all-rdeuce, 2 ranks, 2 chunks, 2 rounds", `line 1, column 1: unknown collective "all-rdeuce", want one of ` +
			`all-reduce, reduce-scatter, all-gather, all-to-all, broadcast, reduce, gather, scatter, barrier, custom`},
		{"all-reduce, x ranks, 2 chunks, 2 rounds", `line 1, column 13: "x ranks", want a number from 0 to 1048576`},
		{"all-reduce, 0 ranks, 2 chunks, 2 rounds", `line 1, column 13: 0 ranks, want 1 or more`},
		{"all-reduce, 2 ranks, 0 chunks, 2 rounds", `line 1, column 22: 0 chunks, want 1 or more`},
		{"all-reduce, 2 rank, 2 chunks, 2 rounds", `line 1, column 14: "2 rank", want "2 ranks"`},
		{"all-reduce, 2000000 ranks, 2 chunks, 2 rounds", `line 1, column 13: 2000000, want a number from 0 to 1048576`},
		{"all-reduce, 2 ranks, 99999999999999999999 chunks, 2 rounds",
			`line 1, column 22: 99999999999999999999, want a number from 0 to 1048576`},
		{"all-reduce, 02 ranks, 2 chunks, 2 rounds", `line 1, column 13: "02", want a number without zeros before it`},
		{"all-reduce, 2 ranks, 2 chunks, 2 rounds, twice",
			`line 1, column 42: "twice", want root and a rank, apart, or again, in this order`},
		{"reduce, 2 ranks, 2 chunks, 2 rounds, again, root 1",
			`line 1, column 45: "root 1", want root and a rank, apart, or again, in this order`},
		{"reduce, 2 ranks, 2 chunks, 2 rounds, root 2", `line 1, column 43: 2, want a number from 0 to 1`},
		{"reduce, 2 ranks, 2 chunks, 2 rounds, root 1th", `line 1, column 44: "th" after the root, want ", " or the end`},
		{"all-reduce, 2 ranks, 2 chunks, 2 rounds\n", `line 2, column 1: the text ends before the rounds, want a header ` +
			`such as "round | rank 0 | rank 1" and a line of hyphens`},
		{"all-reduce, 2 ranks, 2 chunks, 2 rounds\nstep | rank 0", `line 2, column 1: "step" in the header, want "round"`},
		{"all-reduce, 2 ranks, 2 chunks, 2 rounds\nround | rank 1", `line 2, column 9: "rank 1" in the header, want "rank 0"`},
		{"all-reduce, 2 ranks, 2 chunks, 2 rounds\nround | rank 0", `line 2, column 15: 1 rank in the header, and the title has 2`},
		{"all-reduce, 1 rank, 2 chunks, 2 rounds\nround | rank 0 | rank 1",
			`line 2, column 17: a column after that of the last of 1 rank`},
		{"all-reduce, 1 rank, 2 chunks, 2 rounds\nround | rank 0\n0 | I0>1", `line 3, column 1: want a line of hyphens below the header`},
		{head + "|I0>1|I0>0", `line 4, column 1: a row without the number of its round, want 0`},
		{head + "1|I0>1|I0>0", `line 4, column 1: "1" as the number of a round, want 0`},
		{head + "0.|I0>1|I0>0", `line 4, column 1: "0." as the number of a round, want 0`},
		{head + "0|I0>1|I0>0\n0|I0>1|I0>0", `line 5, column 1: "0" as the number of a round, want 1`},
		{head + "zero|I0>1|I0>0", `line 4, column 1: "zero", want a number from 0 to 1048576`},
		{head + "0|I0>1|I0>0\n1||\n2||", `line 6, column 1: round 2, and the title has 2 rounds`},
		{head + "0|I0>1|I0>0\n", `line 5, column 1: the text ends after 1 round, and the title has 2`},
		{head + "0|I0>1", `line 4, column 7: a row of 1 rank, want 2, one after each "|"`},
		{head + "0|-|\n|I0>1|", `line 5, column 2: "I0>1" in a round that is empty by its "-"`},
		{head + "0|I0>1|\n|-|", `line 5, column 2: "-" in a round that is not empty`},
		{head + "0|then|\n|-|", `line 5, column 2: "-" in a round that is not empty`},
		{head + "0|then|\n|O0=I0|\n|then|", `line 6, column 2: a second "then" in one round`},
		{table("X0>1", ""), `line 4, column 5: "X0>1", want a span such as I3, O0-2, O1-2:4x6, S1[5] or S1[5 of 2-]`},
		{table("I>1", ""), `line 4, column 6: ">1", want a number from 0 to 3`},
		{table("I4>1", ""), `line 4, column 6: 4, want a number from 0 to 3`},
		{table("I1-1>1", ""), `line 4, column 8: chunks 1 to 1, want a last chunk after the first`},
		{table("I3-2>1", ""), `line 4, column 8: chunks 3 to 2, want a last chunk after the first`},
		{table("I0-4>1", ""), `line 4, column 8: 4, want a number from 0 to 3`},
		{table("I0>", ""), `line 4, column 8: nothing, want a number from 0 to 1048576`},
		{table("I0", "I0>0"), `line 4, column 7: nothing after I0, want ">", "<", "+<" and a rank, or "=" or "+" and a span`},
		{table("", "I0>0 I1>0"), `line 4, column 12: " I1>0" after the step I0>0, want the end of the cell`},
		{table("I0:", ""), `line 4, column 8: nothing, want a number from 0 to 3`},
		{table("I0:0x3>1", ""), `line 4, column 8: a stride of 0, want 1 to 3`},
		{table("I0:4x2>1", ""), `line 4, column 8: 4, want a number from 0 to 3`},
		{table("I0:2>1", ""), `line 4, column 9: ">1" after a stride, want "x" and the number of chunks`},
		{table("I0:2x>1", ""), `line 4, column 10: ">1", want a number from 0 to 4`},
		{table("I0:2x5>1", ""), `line 4, column 10: 5, want a number from 0 to 4`},
		{table("I0:2x1>1", ""), `line 4, column 10: 1 chunk in runs of 1, want more than one run`},
		{table("I0-1:2x2>1", ""), `line 4, column 12: 2 chunks in runs of 2, want more than one run`},
		{table("I2-6:2x2>1", ""), `line 4, column 8: 6, want a number from 0 to 5`},
		{table("O0=", ""), `line 4, column 8: nothing, want a span such as I3, O0-2, O1-2:4x6, S1[5] or S1[5 of 2-]`},
		{table("O0+", ""), `line 4, column 8: nothing, want a span such as I3, O0-2, O1-2:4x6, S1[5] or S1[5 of 2-]`},
		{table("O0=I0+<", ""), `line 4, column 12: nothing, want a number from 0 to 1048576`},
		{table("O0=I0+1", ""), `line 4, column 10: "+1" after the step O0=I0, want the end of the cell`},
		{table("O0+<x", ""), `line 4, column 9: "x", want a number from 0 to 1048576`},
		{table("S[0]<1", ""), `line 4, column 6: "[0]<1", want a number from 0 to 1048575`},
		{table("S1048576[0]<1", ""), `line 4, column 6: 1048576, want a number from 0 to 1048575`},
		{table("S1<1", ""), `line 4, column 7: "<1" after slot 1, want "[" and its chunks`},
		{table("S1[x]<1", ""), `line 4, column 8: "x]<1", want a number from 0 to 3`},
		{table("S1[1<1", ""), `line 4, column 9: "<1" in a slot, want "]" or " of " and the chunk it begins with`},
		{table("S1[1 of x-]<1", ""), `line 4, column 13: "x-]<1", want a number from 0 to 1`},
		{table("S1[1 of 2-]<1", ""), `line 4, column 13: 2, want a number from 0 to 1`},
		{table("S1[1 of 0]<1", ""), `line 4, column 14: "]<1" after "of 0", want "-]"`},
		{table(strings.Repeat("Z", 50), ""), `line 4, column 5: "` + strings.Repeat("Z", 40) +
			`...", want a span such as I3, O0-2, O1-2:4x6, S1[5] or S1[5 of 2-]`},
	} {
		s, err := Parse([]byte(c.text))
		if err == nil || err.Error() != "schedule: "+c.want || s != nil {
			t.Errorf("error  %v\nwant   schedule: %s\nof\n%s", err, c.want, c.text)
		}
	}
}

// FuzzParse reads any text. What it takes is drawn and read again, to the same schedule.
func FuzzParse(f *testing.F) {
	for _, s := range drawable() {
		f.Add([]byte(s.String()))
	}
	files, err := filepath.Glob("../testdata/draw/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("%d drawings, error %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "schedule: line ") || s != nil {
				t.Errorf("error %v", err)
			}
			return
		}
		size := 0
		for _, p := range s.Programs {
			size += len(p)
		}
		if s.Size > len(text) || size > len(text) {
			t.Errorf("%d ranks, %d rounds of all, made of %d bytes", s.Size, size, len(text))
		}
		drawing := s.String()
		again, err := Parse([]byte(drawing))
		if err != nil {
			t.Fatalf("%v\n%s", err, drawing)
		}
		if diff := cmp.Diff(s, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("read another schedule (-drawn +read):\n%s\n%s", diff, drawing)
		}
	})
}
