package schedule

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// customs are schedules of contracts of a program's own, which Check accepts.
func customs() map[string]*Schedule {
	build := func(b *Builder) *Schedule {
		s, err := b.Build()
		if err != nil {
			panic(err)
		}
		return s
	}
	chain := NewBuilderFor(Scan(4, 2))
	for rank := range 3 {
		for chunk := range 2 {
			chain.Fold(rank+chunk, rank, rank+1, chunk, 1)
		}
	}
	doubling := NewBuilderFor(Scan(6, 3))
	for t, d := 0, 1; d < 6; t, d = t+1, 2*d {
		for rank := range 6 - d {
			doubling.Fold(t, rank, rank+d, 0, 3)
		}
	}
	halo, err := Exchange([][]int{{3, 1}, {0, 2}, {1, 3}, {2, 0}}, [][]int{{3, 1}, {0, 2}, {1, 3}, {2, 0}})
	if err != nil {
		panic(err)
	}
	ring := NewBuilderFor(halo)
	for rank, chunks := range halo.Inputs {
		ring.Copy(0, rank, (rank+3)%4, chunks[0], 1)
		ring.Copy(0, rank, (rank+1)%4, chunks[1], 1)
	}
	experts := NewBuilderFor(Experts([][]int{{2, 0, 1}, {3, 0, 0}, {0, 1, 5}}))
	experts.Copy(0, 0, 2, 1, 1)
	experts.Copy(1, 1, 0, 2, 1)
	experts.Copy(0, 2, 1, 3, 1)
	// By way of rank 1, that holds both chunks in another order and wants none.
	relay := NewBuilderFor(&CustomContract{Inputs: [][]int{{1, 0}, {}, {2}}, Outputs: [][]int{{}, {}, {0, 2, 1}}})
	relay.Copy(0, 0, 1, 0, 1)
	relay.Copy(0, 0, 1, 1, 1)
	relay.Copy(1, 1, 2, 0, 2)
	// One message of chunks whose numbers lie apart, and that lie in another order at each side.
	lists := &CustomContract{Inputs: [][]int{{3, 4, 0, 1}, {2}}, Outputs: [][]int{{}, {0, 1, 3, 4}},
		Sizes: []int{2, 1, 1, 3, 1, 0}}
	odd := &Schedule{Collective: Custom, Size: 2, Chunks: 6, Custom: lists, Programs: []Program{
		{moves(send(In(0, 4).Strided(2, 3), 1))}, {moves(recv(Out(0, 4).Strided(2, 3), 0))},
	}}
	return map[string]*Schedule{
		"strides":           odd,
		"a scan by a chain": build(chain), "a scan by doubling": build(doubling), "an exchange": build(ring),
		"experts": build(experts), "a relay": build(relay), "an exclusive scan": exclusive(4),
		"a scan alone": {Collective: Custom, Size: 1, Chunks: 1, Custom: Scan(1, 1),
			Programs: []Program{{then(move(Out(0, 1), In(0, 1)))}}},
		"again": {Collective: Custom, Size: 2, Chunks: 1, Custom: Scan(2, 1), Again: true, Programs: []Program{
			{both(steps(send(In(0, 1), 1)), move(Out(0, 1), In(0, 1))), moves(send(In(0, 1), 1))},
			{moves(fold(Out(0, 1), In(0, 1), 0)), moves(fold(Out(0, 1), Out(0, 1), 0))},
		}},
	}
}

// exclusive is a chain in which a rank keeps what comes, and sends on that with its own.
func exclusive(ranks int) *Schedule {
	s := &Schedule{Collective: Custom, Size: ranks, Chunks: 1, Custom: ExclusiveScan(ranks, 1),
		Programs: make([]Program, ranks)}
	for rank := range ranks {
		p := make(Program, ranks-1)
		switch {
		case rank == 0:
			p[0] = moves(send(In(0, 1), 1))
		case rank < ranks-1:
			// The own one is copied first: Output may be Input.
			p[0].Then = append(p[0].Then, move(Tmp(0, 0, 1), In(0, 1)))
			p[rank-1].Moves = append(p[rank-1].Moves, recv(Out(0, 1), rank-1))
			p[rank-1].Then = append(p[rank-1].Then, reduce(Tmp(0, 0, 1), Out(0, 1)))
			p[rank] = moves(send(Tmp(0, 0, 1), rank+1))
			if rank == 1 {
				p[0] = Round{Moves: steps(recv(Tmp(1, 0, 1), 0)), Then: steps(
					move(Tmp(0, 0, 1), In(0, 1)), reduce(Tmp(0, 0, 1), Tmp(1, 0, 1)), move(Out(0, 1), Tmp(1, 0, 1)))}
			}
		default:
			p[rank-1] = moves(recv(Out(0, 1), rank-1))
		}
		s.Programs[rank] = p
	}
	return s
}

// TestCustom: schedules of contracts of a program's own are accepted, by sets and by sums, with their reports.
func TestCustom(t *testing.T) {
	t.Parallel()
	for name, s := range customs() {
		exact, err := Examine(s)
		if err != nil {
			t.Errorf("%s: %v\n%v", name, err, s)
			continue
		}
		if s.Again {
			continue
		}
		if sums, err := ExamineSums(s); err != nil || !reflect.DeepEqual(exact, sums) {
			t.Errorf("%s: by sums %v, %+v, by sets %+v", name, err, sums, exact)
		}
		if exact.Rounds < exact.Least.Rounds || most(exact.Sent) < exact.Least.Sent ||
			most(exact.Received) < exact.Least.Received {
			t.Errorf("%s does with less than the least: %+v", name, exact)
		}
	}
	r, err := Examine(customs()["a scan by doubling"])
	if err != nil || !strings.HasPrefix(r.String(), "custom scan, 6 ranks, 3 chunks\n") || !r.OneOrder || r.RankOrder ||
		r.Least != (Bounds{Rounds: 3, Sent: 3, Received: 3}) {
		t.Errorf("%v\n%v%+v", err, r, r)
	}
	r, err = Examine(customs()["a scan by a chain"])
	if err != nil || !r.OneOrder || !r.RankOrder || r.Least != (Bounds{Rounds: 2, Sent: 2, Received: 2}) ||
		!strings.Contains(r.String(), "\norder                    that of the ranks\n") {
		t.Errorf("%v\n%v%+v", err, r, r)
	}
	if r, err := Examine(customs()["an exchange"]); err != nil || r.Least != (Bounds{2, 2, 2}) && r.Ports == 1 ||
		r.Least.Sent != 2 || strings.Contains(r.String(), "order") {
		t.Errorf("%v\n%v%+v", err, r, r.Least)
	}
}

// TestCustomLarge: more than 64 ranks are proved by their sums, and what is wrong is named by sets.
func TestCustomLarge(t *testing.T) {
	t.Parallel()
	const ranks = 200
	b := NewBuilderFor(Scan(ranks, 2))
	for t, d := 0, 1; d < ranks; t, d = t+1, 2*d {
		for rank := range ranks - d {
			b.Fold(t, rank, rank+d, 0, 2)
		}
	}
	s, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(s); err != nil {
		t.Error(err)
	}
	own := *s.Custom
	own.Wants = append([][][]int{}, own.Wants...)
	own.Wants[3] = [][]int{{0, 1, 2, 3}, {0, 2, 3}}
	s.Custom = &own
	const want = "schedule: rank 3 ends with chunk 1 of ranks [0 1 2 3] as chunk 1 of the output, want chunk 1 of ranks [0 2 3]"
	if err := Check(s); err == nil || firstLine(err) != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}

// TestCustomCounterexamples: what is missing, doubled or of another rank is named.
func TestCustomCounterexamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		base, want string
		wreck      func(s *Schedule)
	}{
		{"a scan by a chain", "schedule: rank 2 ends with chunk 0 of ranks [1 2] as chunk 0 of the output, want chunk 0 of " +
			"ranks [0 1 2]", func(s *Schedule) { // rank 1 sends its own
			s.Programs[1][1].Moves[0].Src = In(0, 1)
		}},
		{"an exchange", "schedule: rank 1 round 0 move 2 (O1<0): the message (I0>1) has chunks of other sizes",
			func(s *Schedule) {
				p := s.Programs[0][0].Moves
				p[0].Src, p[1].Src = p[1].Src, p[0].Src
			}},
		{"an exchange", "schedule: rank 0 round 0 move 0 (I2>1): rank 0 does not have chunk 2 there, one after the other",
			func(s *Schedule) { s.Programs[0][0].Moves[0] = send(In(2, 1), 1) }},
		{"an exchange", "schedule: rank 1 round 0 move 0 (I0>0): rank 1 does not have chunk 0 there, one after the other",
			func(s *Schedule) { s.Programs[1][0].Moves[0] = send(In(0, 1), 0) }},
		{"an exchange", "schedule: rank 0 ends with nothing as chunk 7 of the output, want chunk 7 of ranks [3]",
			func(s *Schedule) {
				s.Programs[0][0].Moves = s.Programs[0][0].Moves[:3]
				s.Programs[3][0].Moves = append(s.Programs[3][0].Moves[:0:0], s.Programs[3][0].Moves[0],
					s.Programs[3][0].Moves[2], s.Programs[3][0].Moves[3])
			}},
		{"strides", "schedule: rank 0 round 0 move 0 (I0-1:3x4>1): rank 0 does not have chunks 3 to 4 there, one after the other",
			func(s *Schedule) { s.Custom.Inputs[0] = []int{4, 3, 0, 1} }},
		{"a relay", "schedule: rank 2 round 1 move 0 (O0-1<1): rank 2 does not have chunks 0 to 1 there, one after the other",
			func(s *Schedule) { s.Programs[2][1].Moves[0].Dst = Out(0, 2) }},
	} {
		s := customs()[c.base]
		c.wreck(s)
		if err := Check(s); err == nil || firstLine(err) != c.want {
			t.Errorf("%s: error %v\nwant  %s\n%v", c.base, err, c.want, s)
		}
	}
}

// TestCustomForm breaks a contract, or what a schedule says of it, one thing at a time.
func TestCustomForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want  string
		wreck func(s *Schedule)
	}{
		{"schedule: a custom collective without a contract, want one in Schedule.Custom", func(s *Schedule) { s.Custom = nil }},
		{"schedule: all-reduce with a contract of a program's own, want the collective custom",
			func(s *Schedule) { s.Collective = AllReduce }},
		{"schedule: custom scan: a contract of 2 ranks, and the schedule has 4", func(s *Schedule) { s.Custom = Scan(2, 2) }},
		{"schedule: custom scan: a contract of 3 chunks, and the schedule has 2", func(s *Schedule) { s.Custom = Scan(4, 3) }},
		{"schedule: root 1 of custom over 4 ranks", func(s *Schedule) { s.Root = 1 }},
		{`schedule: custom Scan: the name "Scan", want letters a to z, digits and hyphens`,
			func(s *Schedule) { s.Custom.Name = "Scan" }},
		{`schedule: custom ` + strings.Repeat("a", 65) + `: the name "` + strings.Repeat("a", 40) +
			`..." of 65 letters, want 64 at most`, func(s *Schedule) { s.Custom.Name = strings.Repeat("a", 65) }},
		{"schedule: custom scan: outputs of 3 ranks, and inputs of 4",
			func(s *Schedule) { s.Custom.Outputs = s.Custom.Outputs[:3] }},
		{"schedule: custom scan: wants of 3 ranks, and inputs of 4",
			func(s *Schedule) { s.Custom.Wants = s.Custom.Wants[:3] }},
		{"schedule: custom scan: no rank's output holds a chunk", func(s *Schedule) { s.Custom.Outputs = make([][]int, 4) }},
		{"schedule: custom scan: 1048577 chunks, want at most 1048576",
			func(s *Schedule) { s.Custom.Outputs[1] = []int{1 << 20} }},
		{"schedule: custom scan: 1 sizes for 2 chunks", func(s *Schedule) { s.Custom.Sizes = []int{1} }},
		{"schedule: custom scan: chunk 1 has size -1, want sizes of 0 to 2147483647 in all",
			func(s *Schedule) { s.Custom.Sizes = []int{1, -1} }},
		{"schedule: custom scan: chunk 1 has size 1, want sizes of 0 to 2147483647 in all",
			func(s *Schedule) { s.Custom.Sizes = []int{1<<31 - 1, 1} }},
		{"schedule: custom scan: chunk -1 in the input of rank 2, want 0 to 1048575",
			func(s *Schedule) { s.Custom.Inputs[2] = []int{0, -1} }},
		{"schedule: custom scan: chunk 1 is in the output of rank 2 twice",
			func(s *Schedule) { s.Custom.Outputs[2] = []int{1, 1} }},
		{"schedule: custom scan: chunk 0 in the input of rank 0 has size 0: want no chunk where there is nothing",
			func(s *Schedule) { s.Custom.Sizes = []int{0, 1} }},
		{"schedule: custom scan: wants of 1 chunks at rank 2, whose output holds 2",
			func(s *Schedule) { s.Custom.Wants[2] = s.Custom.Wants[2][:1] }},
		{"schedule: custom scan: nobody contributes to chunk 1 of the output of rank 2",
			func(s *Schedule) { s.Custom.Wants[2] = [][]int{{0}, nil} }},
		{"schedule: custom scan: ranks 0-1 contribute to chunk 0 of the output of rank 1, and nothing is combined: want one",
			func(s *Schedule) { s.Custom.Combines = false }},
		{"schedule: custom scan: rank 4, after rank 0, contributes to chunk 1 of the output of rank 2: want ranks below 4, " +
			"ascending", func(s *Schedule) { s.Custom.Wants[2] = [][]int{{0}, {0, 4}} }},
		{"schedule: custom scan: rank 1, after rank 1, contributes to chunk 1 of the output of rank 2: want ranks below 4, " +
			"ascending", func(s *Schedule) { s.Custom.Wants[2] = [][]int{{0}, {1, 1}} }},
		{"schedule: custom scan: rank 0 contributes to chunk 1 of the output of rank 0, and its input does not hold it",
			func(s *Schedule) { s.Custom.Inputs[0] = []int{0} }},
		{"schedule: contributions that count again in custom, which combines none", func(s *Schedule) {
			s.Custom, s.Again = Experts([][]int{{1, 1, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}), true
		}},
	} {
		s := customs()["a scan by a chain"]
		own := Scan(4, 2)
		own.Inputs, own.Outputs = append([][]int{}, own.Inputs...), append([][]int{}, own.Outputs...)
		s.Custom = own
		c.wreck(s)
		if err := Check(s); err == nil || err.Error() != c.want {
			t.Errorf("error %v\nwant  %s", err, c.want)
		}
	}
	for _, c := range []*CustomContract{nil, {}, Scan(0, 1), Scan(1, -1), Scan(1<<20, 1<<20), ExclusiveScan(1, 1),
		Experts([][]int{{1, 1, 1}, {1}})} {
		if err := c.Check(); err == nil {
			t.Errorf("%+v is a contract", c)
		}
	}
}

// TestExchangeErrors: neighbours that disagree are errors.
func TestExchangeErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		to, from [][]int
		want     string
	}{
		{[][]int{{1}, {}}, [][]int{{}}, "schedule: an exchange of 2 ranks that send and 1 that receive"},
		{[][]int{{1}, {}}, [][]int{{}, {}}, "schedule: an exchange in which rank 0 sends a block to rank 1, which does not receive it"},
		{[][]int{{1}, {}}, [][]int{{}, {0, 0}}, "schedule: an exchange in which rank 1 receives a block of rank 0, which does not send it"},
	} {
		if _, err := Exchange(c.to, c.from); err == nil || err.Error() != c.want {
			t.Errorf("error %v\nwant  %s", err, c.want)
		}
	}
}

// TestCustomElements: buffers say how long chunks are, or are wrong.
func TestCustomElements(t *testing.T) {
	t.Parallel()
	experts := Experts([][]int{{2, 0, 1}, {3, 0, 0}, {0, 0, 0}}) // rank 0: 3 in, 5 out; 1: 3 in, 0 out; 2: 0 in, 1 out
	for _, c := range []struct {
		rank, in, out, elements int
		want                    string
	}{
		{0, 6, 10, 2, ""},
		{0, 0, 0, 0, ""},
		{1, 9, 0, 3, ""},
		{2, 0, 4, 4, ""},
		{0, 7, 10, 0, "the input has 7 elements and the destination 10, want a multiple of 3 in the input, the sizes of its chunks"},
		{0, 6, 11, 0, "the destination has 11 elements, want 10 for 6 of input: the chunks have sizes of 5 and of 3 in all"},
		{0, 6, 15, 0, "the destination has 15 elements, want 10 for 6 of input: the chunks have sizes of 5 and of 3 in all"},
		{1, 9, 1, 0, "the input has 9 elements and the destination 1, want a multiple of 3 and none"},
		{1, 8, 0, 0, "the input has 8 elements and the destination 0, want a multiple of 3 and none"},
		{2, 1, 4, 0, "the input has 1 elements and the destination 4, want none and a multiple of 1"},
		{3, 1, 4, 0, "rank 3 of a contract of 3 ranks"},
		{0, -1, 4, 0, "an input of -1 elements and a destination of 4"},
	} {
		n, err := experts.Elements(c.rank, c.in, c.out)
		if n != c.elements || fmt.Sprint(err) != c.want && (err != nil || c.want != "") {
			t.Errorf("rank %d, %d and %d: %d, %v\nwant %d, %s", c.rank, c.in, c.out, n, err, c.elements, c.want)
		}
	}
	none := &CustomContract{Inputs: [][]int{{}, {0}}, Outputs: [][]int{{}, {0}}}
	if _, err := none.Elements(0, 0, 0); err == nil || !strings.HasPrefix(err.Error(), "rank 0 holds no chunk") {
		t.Error(err)
	}
}

// TestCustomDrawing is golden.
func TestCustomDrawing(t *testing.T) {
	t.Parallel()
	const experts = `custom experts, 3 ranks, 5 chunks, 2 rounds
sizes 2 1 3 1 5
round | rank 0 | rank 1 | rank 2
------+--------+--------+-------
   in | 0-1    | 2      | 3-4
  out | 0, 2   | 3      | 1, 4
    0 | I1>2   | O3<2   | I3>1
      |        |        | O1<0
      | then   |        | then
      | O0=I0  |        | O4=I4
    1 | O2<1   | I2>0   | -
`
	if have := customs()["experts"].String(); have != experts {
		t.Errorf("drawn\n%s\nwant\n%s", have, experts)
	}
	const scan = `custom scan, 1 rank, 1 chunk, 1 round, combines
round | rank 0
------+-------
   in | 0
  out | 0 of 0
    0 | then
      | O0=I0
`
	if have := customs()["a scan alone"].String(); have != scan {
		t.Errorf("drawn\n%s\nwant\n%s", have, scan)
	}
}

// TestParseCustomErrors has a text for each complaint about a contract.
func TestParseCustomErrors(t *testing.T) {
	t.Parallel()
	const title = "custom, 2 ranks, 4 chunks, 0 rounds, combines\n"
	const head = title + "round|rank 0|rank 1\n---\n"
	for _, c := range []struct{ text, want string }{
		{"custom A, 2 ranks, 4 chunks, 0 rounds", `line 1, column 8: "A" as a name, want letters a to z, digits and hyphens`},
		{"custom , 2 ranks, 4 chunks, 0 rounds", `line 1, column 8: nothing as a name, want letters a to z, digits and hyphens`},
		{"custom, 2 ranks, 4 chunks, 0 rounds, combines, again", `line 1, column 48: "again", want root and a rank, apart, or again, in this order, and combines behind them`},
		{"all-reduce, 2 ranks, 4 chunks, 0 rounds, combines", `line 1, column 42: "combines", want root and a rank, apart, or again, in this order`},
		{title + "sizes 1 2", `line 2, column 10: sizes of 2 chunks, and the title has 4`},
		{title + "sizes 1x3 1x2", `line 2, column 11: sizes of more chunks than the title has, which are 4`},
		{title + "sizes 1 2y 3", `line 2, column 10: "y" after a size, want a blank, or "x" and how many chunks have it`},
		{title + "sizes 1  2", `line 2, column 9: nothing, want a number from 0 to 2147483647`},
		{title + "sizesx 1 2 3 4", `line 2, column 1: "sizesx 1 2 3 4" in the header, want "round"`},
		{"custom, 2 ranks, 4 chunks, 1 round\nround|rank 0|rank 1\n---\n0|I0>1|\nin|0|1", `line 5, column 1: "in", want a number from 0 to 1048576`},
		{head + "out|0|1", `line 4, column 1: "out", want a number from 0 to 1048576`},
		{head + "in|0|1\nin|0|1", `line 5, column 1: "in", want a number from 0 to 1048576`},
		{head + "in|0 of 1|1", `line 4, column 5: " of 1" in an input, want its chunks alone`},
		{head + "in|4|1", `line 4, column 4: 4, want a number from 0 to 3`},
		{head + "in|0-|1", `line 4, column 6: nothing, want a number from 0 to 3`},
		{head + "in|2-2|1", `line 4, column 6: 2 to 2, want a last number after the first`},
		{head + "in|0,1|1", `line 4, column 5: ",1" after a number, want ", " and the next, or the end`},
		{head + "in|0|1\nout|0|1 of 1", `line 5, column 7: "1 of 1": want who contributes to all chunks of outputs, as in "0 of 0-2", or to none`},
		{head + "in|0|1\nout|0 of 2|", `line 5, column 10: 2, want a number from 0 to 1`},
		{"all-reduce, 2 ranks, 4 chunks, 0 rounds\nround|rank 0|rank 1\n---\nin|0|1", `line 4, column 1: "in", want a number from 0 to 1048576`},
		{"custom, 8 ranks, 1000000 chunks, 0 rounds\nround|rank 0|rank 1|rank 2|rank 3|rank 4|rank 5|rank 6|rank 7\n---\nin" +
			strings.Repeat("|0-999999", 8), `line 4, column 40: more than 4194304 numbers in the lists of a contract`},
	} {
		s, err := Parse([]byte(c.text))
		if err == nil || err.Error() != "schedule: "+c.want || s != nil {
			t.Errorf("error  %v\nwant   schedule: %s\nof\n%.300s", err, c.want, c.text)
		}
	}
}

// TestBuilderForErrors: a Builder says what it cannot do for a contract of a program's own.
func TestBuilderForErrors(t *testing.T) {
	t.Parallel()
	swapped := &CustomContract{Inputs: [][]int{{1, 0}, {}}, Outputs: [][]int{{}, {0, 1}}}
	for _, c := range []struct {
		of   *CustomContract
		add  func(b *Builder)
		want string
	}{
		{nil, func(*Builder) {}, "schedule: a builder for no contract"},
		{&CustomContract{}, func(*Builder) {}, "schedule: size 0, want 1 to 65536"},
		{swapped, func(b *Builder) { b.Copy(0, 0, 1, 0, 2) }, "schedule: round 0: chunks 0 to 1 do not lie one after the other " +
			"in the input of rank 0: want a message of each"},
		{&CustomContract{Inputs: [][]int{{1, 0, 2, 4, 3}, {}}, Outputs: [][]int{{}, {0, 1, 3, 4}}},
			func(b *Builder) { b.CopyStrided(0, 0, 1, 0, 4, 2, 3) },
			"schedule: round 0: chunks 0-1:3x4 do not lie one after the other in the input of rank 0: want a message of each"},
		{swapped, func(b *Builder) { b.Fold(0, 0, 1, 0, 1) }, "schedule: round 0: a fold in custom, which combines nothing"},
	} {
		b := NewBuilderFor(c.of)
		c.add(b)
		if _, err := b.Build(); err == nil || err.Error() != c.want {
			t.Errorf("error %v\nwant  %s", err, c.want)
		}
	}
	if b := NewBuilder(Custom, 2, 0, 1); errors.Unwrap(b.err) != nil || b.err == nil {
		t.Errorf("error %v", b.err)
	}
}

// TestCustomDigest: whatever changes in a contract changes the digest.
func TestCustomDigest(t *testing.T) {
	t.Parallel()
	seen := map[[32]byte]int{}
	for i, change := range []func(c *CustomContract){
		func(*CustomContract) {},
		func(c *CustomContract) { c.Name = "other" },
		func(c *CustomContract) { c.Combines = false },
		func(c *CustomContract) { c.Sizes = []int{} },
		func(c *CustomContract) { c.Sizes = []int{1, 1} },
		func(c *CustomContract) { c.Wants = nil },
		func(c *CustomContract) { c.Wants = [][][]int{} },
		func(c *CustomContract) { c.Wants = c.Wants[:3] },
		func(c *CustomContract) { c.Inputs = c.Inputs[:3] },
		func(c *CustomContract) { c.Outputs = append(c.Outputs[:3:3], []int{1, 0}) },
		func(c *CustomContract) { c.Wants = append(c.Wants[:3:3], [][]int{{0, 1, 2}, {0, 1, 2, 3}}) },
	} {
		s := customs()["a scan by a chain"]
		own := *s.Custom
		s.Custom = &own
		change(&own)
		if before, known := seen[s.Digest()]; known {
			t.Errorf("changes %d and %d have one digest", before, i)
		}
		seen[s.Digest()] = i
	}
}

// TestCustomOfManyRuns: what a span of many runs has is looked up, where a search for each would take minutes.
func TestCustomOfManyRuns(t *testing.T) {
	t.Parallel()
	const chunks = 1 << 20
	list := inOrder(chunks)
	list[0], list[1] = 1, 0
	s := &Schedule{Collective: Custom, Size: 2, Chunks: chunks, Programs: make([]Program, 2),
		Custom: &CustomContract{Inputs: [][]int{list, {}}, Outputs: [][]int{{}, {0}}}}
	for range 8 {
		s.Programs[0] = append(s.Programs[0], moves(send(In(2, chunks/2-1).Strided(1, 2), 1)))
	}
	e := examination{schedule: s}
	if err := e.form(); err != nil {
		t.Error(err)
	}
}
