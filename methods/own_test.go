package methods

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gogcl.dev/methods/schedule"
)

// KeepTable has the table of methods be what it was when the test ends. The test must not run in parallel: others go
// through All.
func KeepTable(t testing.TB) {
	before := current.Load()
	t.Cleanup(func() { current.Store(before) })
}

// StarForTests is a method that does all-reduces: rank 0 folds all others, and sends the result back.
var StarForTests = GeneratorFunc(func(r Request) (*schedule.Schedule, error) {
	if r.Collective != schedule.AllReduce || r.Size > 1<<10 {
		return nil, fmt.Errorf("a star does all-reduce only: %w", errors.ErrUnsupported)
	}
	b := schedule.NewBuilder(r.Collective, r.Size, 0, 1)
	for rank := 1; rank < r.Size; rank++ {
		b.Fold(0, rank, 0, 0, 1)
		b.Copy(1, 0, rank, 0, 1)
	}
	return b.Build()
})

// spoilt is StarForTests, changed by do.
func spoilt(do func(s *schedule.Schedule)) Generator {
	return GeneratorFunc(func(r Request) (*schedule.Schedule, error) {
		s, err := StarForTests(r)
		if err == nil {
			do(s)
		}
		return s, err
	})
}

func TestRegister(t *testing.T) {
	KeepTable(t)
	before := Values()
	if err := Register("star", StarForTests); err != nil {
		t.Fatal(err)
	}
	m, err := Parse("star")
	if err != nil || !m.Own() || m.String() != "star" {
		t.Fatalf("%v (%d), %v", m, m, err)
	}
	if text, err := m.MarshalText(); err != nil || string(text) != "star" {
		t.Errorf("text %q, %v", text, err)
	}
	var back Method
	if err := back.UnmarshalText([]byte("star")); err != nil || back != m {
		t.Errorf("back %v, %v", back, err)
	}
	if !slices.Equal(Values(), append(before, m)) || !slices.Contains(All(), m) || m.Rings() != 0 {
		t.Errorf("values %v, all %v, %d rings", Values(), All(), m.Rings())
	}
	if _, err := Parse("stars"); err == nil || !strings.Contains(err.Error(), "the closest is star") {
		t.Errorf("Parse(stars): %v", err)
	}
	if m.Prover() == nil || Direct.Prover() != nil || Method(200).Prover() != nil {
		t.Error("not just the registered method has a Prover")
	}

	s := Spec{Method: m, Collective: schedule.AllReduce, Size: 4, Pieces: 3}
	built, err := Build(s)
	if err != nil || schedule.Check(built) != nil || s.Chunks() != 1 {
		t.Fatalf("%v, %d chunks", err, s.Chunks())
	}
	for rank := range 4 {
		p, err := s.Program(rank)
		if err != nil || len(p) != 2 || len(p[0].Moves) == 0 {
			t.Errorf("rank %d: %v, %v", rank, p, err)
		}
	}
	if report, err := Examine(s); err != nil || report.Rounds != 2 || !report.RankOrder {
		t.Errorf("examined: %+v, %v", report, err)
	}
	built.Programs[0][0].Moves = nil // which is the caller's own
	if again, err := Build(s); err != nil || schedule.Check(again) != nil {
		t.Errorf("a schedule that its caller has changed comes back: %v", err)
	}
	alone, err := Build(Spec{Method: m, Collective: schedule.AllGather, Size: 1})
	if err != nil || schedule.Check(alone) != nil {
		t.Errorf("a group of one: %v", err)
	}
	for _, c := range []schedule.Collective{schedule.AllGather, schedule.Barrier} {
		_, err = Build(Spec{Method: m, Collective: c, Size: 4})
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), "star") {
			t.Errorf("%v by a star: %v", c, err)
		}
	}
}

func TestRegisterErrors(t *testing.T) {
	KeepTable(t)
	if err := Register("star", StarForTests); err != nil {
		t.Fatal(err)
	}
	before := len(Values())
	for name, want := range map[string]string{
		"":                      `"" is no name for a method: want a lower case letter`,
		"Star":                  "is no name",
		"my star":               "is no name",
		"a,b":                   "is no name",
		"a=b":                   "is no name",
		"a/b":                   "is no name",
		"2d":                    "is no name",
		"_a":                    "is no name",
		"sträng":                "is no name",
		strings.Repeat("a", 65): "is no name",
		"star":                  "the name star is taken: a method has been registered by it",
		"auto":                  "the name auto is taken: a built-in method has it",
		"recursive_doubling":    "the name recursive_doubling is taken: a built-in method has it",
	} {
		if err := Register(name, StarForTests); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	for _, g := range []Generator{nil, GeneratorFunc(nil)} {
		if err := Register("other", g); err == nil || !strings.Contains(err.Error(), "other has a nil generator") {
			t.Errorf("nil: %v", err)
		}
	}
	if s, err := GeneratorFunc(nil).Schedule(Request{}); s != nil || err == nil {
		t.Errorf("a nil function makes %v, %v", s, err)
	}
	if have := len(Values()); have != before {
		t.Errorf("%d methods, want the %d before", have, before)
	}
	if err := Register(strings.Repeat("a", 64), StarForTests); err != nil {
		t.Errorf("a name of 64 letters: %v", err)
	}
}

// TestNamed: a name has its number before there is a generator, and keeps it.
func TestNamed(t *testing.T) {
	KeepTable(t)
	if m, err := Named("direct"); err != nil || m != Direct {
		t.Errorf("direct is %v, %v", m, err)
	}
	if _, err := Named("no name"); err == nil {
		t.Error("a malformed name has a method")
	}
	m, err := Named("late")
	if err != nil || !m.Own() || m.String() != "late" || slices.Contains(All(), m) || m.Prover() != nil {
		t.Fatalf("%v, %v", m, err)
	}
	_, err = Build(Spec{Method: m, Collective: schedule.AllReduce, Size: 2})
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "it is not registered") {
		t.Errorf("a method without a generator: %v", err)
	}
	if err := Register("late", StarForTests); err != nil {
		t.Fatal(err)
	}
	if again, err := Parse("late"); err != nil || again != m || !slices.Contains(All(), m) {
		t.Errorf("registered it is %d, %v, want %d", again, err, m)
	}
	for i := range 2 * MaxNames {
		n, err := Named(fmt.Sprintf("m%d", i))
		if full := i >= MaxNames-1; full != (err != nil) || full && !strings.Contains(err.Error(), "no room") {
			t.Fatalf("name %d: %d, %v", i, n, err)
		}
	}
	// The last number is that of methods of programs in a transport.Call.
	if last := Values()[len(Values())-1]; last == math.MaxUint8 || len(Values()) != ownBefore()+MaxNames {
		t.Errorf("%d methods, the last is %d", len(Values()), last)
	}
	if m, err := Named("m7"); err != nil || m.String() != "m7" {
		t.Errorf("a name that is known, when there is no room: %v, %v", m, err)
	}
}

// ownBefore is how many methods there are before programs have named any.
func ownBefore() int { return int(numMethods) + len(Gallery()) }

// TestGalleryByName: the methods of the gallery are there without Register, and a program may take a name of theirs
// once.
func TestGalleryByName(t *testing.T) {
	KeepTable(t)
	for i, l := range Gallery() {
		m, err := Parse(l.Name)
		if err != nil || int(m) != int(numMethods)+i || !m.Own() || !m.InGallery() || m.Prover() == nil ||
			!slices.Contains(All(), m) {
			t.Errorf("%s is %d, %v", l.Name, m, err)
		}
	}
	for _, m := range []Method{Auto, Direct, Native, 200} {
		if m.InGallery() {
			t.Errorf("%v is in the gallery", m)
		}
	}
	tree, err := Parse("binomial_tree")
	if err != nil {
		t.Fatal(err)
	}
	reduce := Spec{Method: tree, Collective: schedule.Reduce, Size: 5}
	if s, err := Build(reduce); err != nil || schedule.Check(s) != nil {
		t.Errorf("a reduce by %v: %v", tree, err)
	}
	swap := Spec{Method: tree, Collective: schedule.AllToAll, Size: 5}
	if _, err := Build(swap); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an all-to-all by %v: %v", tree, err)
	}
	if err := Register("binomial_tree", StarForTests); err != nil {
		t.Fatal(err)
	}
	if m, err := Parse("binomial_tree"); m != tree || err != nil || m.InGallery() {
		t.Errorf("registered it is %d, %v", m, err)
	}
	if _, err := Build(reduce); !errors.Is(err, errors.ErrUnsupported) ||
		!strings.Contains(err.Error(), "a star does") {
		t.Errorf("a reduce by the star that has taken the name: %v", err)
	}
	err = Register("binomial_tree", StarForTests)
	if err == nil || !strings.Contains(err.Error(), "taken: a method has been registered by it") {
		t.Errorf("twice: %v", err)
	}
	if have := len(Values()); have != ownBefore() {
		t.Errorf("%d methods, want as many as before, %d", have, ownBefore())
	}
}

// TestUnproved: what is wrong with a schedule is named, with rank, round and chunk.
func TestUnproved(t *testing.T) {
	t.Parallel()
	over := func(c schedule.Collective) Request { return Request{Spec: Spec{Collective: c, Size: 3}} }
	inOrder := over(schedule.AllReduce)
	inOrder.RankOrder = true
	inPlace := over(schedule.AllToAll)
	inPlace.InPlace = true
	odd := over(schedule.AllReduce)
	odd.Members = []int{1}
	swap := GeneratorFunc(func(r Request) (*schedule.Schedule, error) {
		return Build(Spec{Method: Direct, Collective: schedule.AllToAll, Size: r.Size})
	})
	for name, c := range map[string]struct {
		g     Generator
		r     Request
		wants []string
	}{
		"missing": {spoilt(func(s *schedule.Schedule) {
			for rank := range s.Programs {
				if rank == 2 {
					s.Programs[2][0].Moves = nil
				}
			}
			s.Programs[0][0].Moves = s.Programs[0][0].Moves[:1]
		}), over(schedule.AllReduce), []string{"star: all-reduce over 3 ranks", "does not prove",
			"rank 0 ends with chunk 0 of ranks [0 1]"}},
		"doubled": {spoilt(func(s *schedule.Schedule) {
			again := s.Programs[0][0].Moves[1]
			again.Peer = 1
			s.Programs[0][0].Moves = append(s.Programs[0][0].Moves, again)
			s.Programs[1][0].Moves = append(s.Programs[1][0].Moves, s.Programs[1][0].Moves[0])
		}), over(schedule.AllReduce), []string{"rank 0 round 0", "takes a contribution twice"}},
		"deadlock": {spoilt(func(s *schedule.Schedule) { s.Programs[2][0].Moves = nil }), over(schedule.AllReduce),
			[]string{"rank 0 round 0", "deadlock: rank 2 never sends it"}},
		"another collective": {spoilt(func(s *schedule.Schedule) {
			s.Collective = schedule.Reduce
			for rank := range s.Programs {
				s.Programs[rank] = s.Programs[rank][:1]
			}
		}), over(schedule.AllReduce), []string{"it is one of reduce over 3 ranks with root 0"}},
		"another size": {GeneratorFunc(func(r Request) (*schedule.Schedule, error) {
			r.Size++
			return StarForTests(r)
		}), over(schedule.AllReduce), []string{"it is one of all-reduce over 4 ranks"}},
		"again": {spoilt(func(s *schedule.Schedule) { s.Again = true }), over(schedule.AllReduce),
			[]string{"a contribution may count again"}},
		"rank order": {GeneratorFunc(func(r Request) (*schedule.Schedule, error) {
			return Build(Spec{Method: ClockwiseRing, Collective: schedule.AllReduce, Size: 3, Ring: []int{0, 1, 2}})
		}), inOrder, []string{"does not fold in the order of the ranks", "errors.ErrUnsupported"}},
		"two orders": {GeneratorFunc(func(r Request) (*schedule.Schedule, error) {
			b := schedule.NewBuilder(schedule.AllReduce, 3, 0, 1)
			for rank := range 3 { // each its own data first, and the next rank's
				b.Fold(0, (rank+1)%3, rank, 0, 1)
				b.Fold(0, (rank+2)%3, rank, 0, 1)
			}
			return b.Build()
		}), over(schedule.AllReduce), []string{"ranks combine an element in different orders",
			"chunk 0 is "}},
		"apart": {swap, inPlace, []string{"it has Output apart from Input"}},
		"no schedule": {GeneratorFunc(func(Request) (*schedule.Schedule, error) { return nil, nil }),
			over(schedule.AllReduce), []string{"no schedule and no error"}},
		"Fixed of own": {Fixed(&schedule.Schedule{Collective: schedule.Custom}), over(schedule.AllReduce),
			[]string{"a collective of a program's own", "Comm.Execute runs it"}},
		"no Fixed": {Fixed(nil), over(schedule.AllReduce), []string{"Fixed of no schedule"}},
		"its own":  {GeneratorFunc(func(Request) (*schedule.Schedule, error) { return nil, errors.New("odd") }), over(schedule.AllReduce), []string{"star: all-reduce over 3 ranks: odd"}},
		"members":  {StarForTests, odd, []string{"1 members of a group of 3 ranks"}},
		"no ranks": {StarForTests, Request{}, []string{"group of 0 ranks"}},
	} {
		p, err := NewProver("star", c.g)
		if err != nil {
			t.Fatal(err)
		}
		made, err := p.Prove(c.r)
		if err == nil || made != nil || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, %v", name, made, err)
			continue
		}
		for _, want := range c.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
}

// TestProvedOnce: a request is made and proved once, whoever asks, and a schedule that two requests share is proved
// once.
func TestProvedOnce(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	p, err := NewProver("star", GeneratorFunc(func(r Request) (*schedule.Schedule, error) {
		made.Add(1)
		return StarForTests(r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	got := make([]*Proved, 8)
	for i := range got {
		all.Go(func() {
			r := Request{Spec: Spec{Collective: schedule.AllReduce, Size: 5}, Members: []int{1, 3, 5, 7, 9}}
			var err error
			if got[i], err = p.Prove(r); err != nil {
				t.Error(err)
			}
			if _, err := p.Prove(Request{Spec: Spec{Collective: schedule.Gather, Size: 5}}); err == nil {
				t.Error("a star gathers")
			}
		})
	}
	all.Wait()
	for _, g := range got {
		if g != got[0] {
			t.Error("equal requests have different schedules")
		}
	}
	if n := made.Load(); n != 2 {
		t.Errorf("the generator was asked %d times, want once for each of two requests", n)
	}
	other, err := p.Prove(Request{Spec: Spec{Collective: schedule.AllReduce, Size: 5}, Members: []int{0, 2, 4, 6, 8}})
	if err != nil || other != got[0] || made.Load() != 3 || p.proofs.Len() != 1 {
		t.Errorf("%v; made %d times, %d proofs", err, made.Load(), p.proofs.Len())
	}
}

// TestLargeIsMadeAgain: a large schedule is not kept for nobody, and is the same when it is made again. A small one is
// kept.
func TestLargeIsMadeAgain(t *testing.T) {
	t.Parallel()
	for pieces, want := range map[int]int64{2: 1, 600: 2} {
		var made atomic.Int64
		p, err := NewProver("tree", GeneratorFunc(func(r Request) (*schedule.Schedule, error) {
			made.Add(1)
			return DoubleBinaryTree(pieces).Schedule(r)
		}))
		if err != nil {
			t.Fatal(err)
		}
		prove := func() (digest [32]byte, sent, between int) {
			made, err := p.Prove(Request{Spec: Spec{Collective: schedule.AllReduce, Size: 9}})
			if err != nil {
				t.Fatal(err)
			}
			if large := made.steps() > mostKept; large != (want == 2) {
				t.Fatalf("%d pieces: %d steps", pieces, made.steps())
			}
			return made.Digest, made.Report.Sent[3], made.Between
		}
		digest, sent, between := prove()
		runtime.GC()
		again, sentAgain, betweenAgain := prove()
		if made.Load() != want {
			t.Errorf("%d pieces: made %d times, want %d", pieces, made.Load(), want)
		}
		if again != digest || sentAgain != sent || betweenAgain != between || sent == 0 || between == 0 {
			t.Errorf("%d pieces: it is another one the second time", pieces)
		}
	}
}

// TestProvedIsACopy: a generator that changes what it has returned does not change what runs; and programs are as long
// on all ranks.
func TestProvedIsACopy(t *testing.T) {
	t.Parallel()
	s, err := Build(Spec{Method: RecursiveDoubling, Collective: schedule.Reduce, Size: 3})
	if err != nil {
		t.Fatal(err)
	}
	last := len(s.Programs[2]) - 1
	for last >= 0 && len(s.Programs[2][last].Moves) == 0 && len(s.Programs[2][last].Then) == 0 {
		s.Programs[2] = s.Programs[2][:last]
		last--
	}
	if len(s.Programs[2]) == len(s.Programs[0]) {
		t.Fatal("the programs are equally long")
	}
	g := Fixed(s)
	s.Programs[0] = nil
	p, err := NewProver("tree", g)
	if err != nil {
		t.Fatal(err)
	}
	made, err := p.Prove(Request{Spec: Spec{Collective: schedule.Reduce, Size: 3}})
	if err != nil || len(made.Programs[0]) == 0 || len(made.Programs[2]) != len(made.Programs[0]) {
		t.Errorf("%v, %v", made, err)
	}
	if made.Between != 1 || !made.Report.OneOrder {
		t.Errorf("%d messages between two ranks, one order %v", made.Between, made.Report.OneOrder)
	}
}

func TestFixed(t *testing.T) {
	t.Parallel()
	apart, err := Build(Spec{Method: Direct, Collective: schedule.AllToAll, Size: 3})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := Build(Spec{Method: ClockwiseRing, Collective: schedule.AllReduce, Size: 3, Ring: []int{0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	ordered, err := StarForTests(Request{Spec: Spec{Size: 3}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		s    *schedule.Schedule
		r    Spec
		want string
	}{
		"good":       {apart, Spec{Collective: schedule.AllToAll, Size: 3}, ""},
		"ordered":    {ordered, Spec{Collective: schedule.AllReduce, Size: 3, RankOrder: true}, ""},
		"collective": {apart, Spec{Collective: schedule.AllReduce, Size: 3}, "one schedule, of all-to-all over 3 ranks"},
		"size":       {apart, Spec{Collective: schedule.AllToAll, Size: 4}, "one schedule, of all-to-all over 3 ranks"},
		"in place":   {apart, Spec{Collective: schedule.AllToAll, Size: 3, InPlace: true}, "apart from Input"},
		"order":      {ring, Spec{Collective: schedule.AllReduce, Size: 3, RankOrder: true}, "in the order of the ranks"},
	} {
		s, err := Fixed(c.s).Schedule(Request{Spec: c.r})
		switch {
		case c.want == "" && (err != nil || s.Digest() != c.s.Digest()):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestRegisterConcurrently: names get different numbers, and one of several who want the same name gets it.
func TestRegisterConcurrently(t *testing.T) {
	KeepTable(t)
	var all sync.WaitGroup
	var won atomic.Int64
	for i := range 8 {
		all.Go(func() {
			if Register("contested", StarForTests) == nil {
				won.Add(1)
			}
			name := fmt.Sprintf("own%d", i)
			if err := Register(name, StarForTests); err != nil {
				t.Error(err)
			}
			m, err := Parse(name)
			if err != nil || m.String() != name {
				t.Errorf("%s is %v, %v", name, m, err)
			}
			if _, err := Build(Spec{Method: m, Collective: schedule.AllReduce, Size: 3}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || len(Values()) != ownBefore()+9 {
		t.Errorf("%d have registered one name, %d methods", won.Load(), len(Values()))
	}
}

// TestProveSchedule: a schedule is proved as it is given, or says why not, and the caller's stays as it was.
func TestProveSchedule(t *testing.T) {
	t.Parallel()
	scan := schedule.NewBuilderFor(schedule.Scan(3, 1))
	scan.Fold(0, 0, 1, 0, 1)
	scan.Fold(1, 1, 2, 0, 1)
	s, err := scan.Build()
	if err != nil {
		t.Fatal(err)
	}
	s.Programs[0] = s.Programs[0][:1]
	made, err := ProveSchedule(s)
	if err != nil || len(made.Programs[0]) != 2 || made.Between != 1 || !made.Report.RankOrder ||
		len(s.Programs[0]) != 1 {
		t.Errorf("%v, %+v", err, made)
	}
	orders := schedule.NewBuilder(schedule.AllReduce, 3, 0, 1)
	for rank := range 3 {
		orders.Fold(0, (rank+1)%3, rank, 0, 1)
		orders.Fold(0, (rank+2)%3, rank, 0, 1)
	}
	mixed, err := orders.Build()
	if err != nil {
		t.Fatal(err)
	}
	again := &schedule.Schedule{Collective: schedule.AllReduce, Size: 3, Chunks: 1, Again: true}
	for rank := range 3 { // by dissemination: some contributions count twice
		next, last := (rank+1)%3, (rank+2)%3
		again.Programs = append(again.Programs, schedule.Program{
			{Moves: []schedule.Step{{Verb: schedule.Send, Peer: next, Src: schedule.In(0, 1)},
				{Verb: schedule.RecvReduce, Peer: last, Src: schedule.In(0, 1), Dst: schedule.Tmp(0, 0, 1)}}},
			{Moves: []schedule.Step{{Verb: schedule.Send, Peer: last, Src: schedule.Tmp(0, 0, 1)},
				{Verb: schedule.RecvReduce, Peer: next, Src: schedule.Tmp(0, 0, 1), Dst: schedule.Tmp(1, 0, 1)}},
				Then: []schedule.Step{{Verb: schedule.Copy, Peer: -1, Src: schedule.Tmp(1, 0, 1),
					Dst: schedule.Out(0, 1)}}},
		})
	}
	s.Programs[1][1].Moves = nil
	for want, s := range map[string]*schedule.Schedule{
		"no schedule": nil, "deadlock: rank 1 never sends it": s,
		"in different orders: chunk 0 is combined in one order at rank 0 and in another at rank 1":                   again,
		"in different orders, so that they may end with different bits: chunk 0 is (0+1)+2 at rank 0 and 0+(1+2) at": mixed,
		"rank 3 has 17000000 rounds, and the 4 ranks have 17000000 together": {Collective: schedule.AllReduce, Size: 4,
			Chunks: 1, Programs: []schedule.Program{3: make(schedule.Program, 17_000_000)}},
	} {
		if _, err := ProveSchedule(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestOfItself: a generator that asks for the schedule that it is to make gets an error, and does not wait for itself.
// One that takes the library's from the gallery gets that.
func TestOfItself(t *testing.T) {
	KeepTable(t)
	const name = "knomial_4_tree"
	var library Generator
	for _, l := range Gallery() {
		if l.Name == name {
			library = l.Generator
		}
	}
	if library == nil {
		t.Fatal("no such method in the gallery")
	}
	mine, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	given := make(chan Request, 1)
	err = Register(name, GeneratorFunc(func(r Request) (*schedule.Schedule, error) {
		if r.Size == 3 {
			r.Method = mine
			return Build(r.Spec)
		}
		given <- r
		return library.Schedule(r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = Build(Spec{Method: mine, Collective: schedule.Reduce, Size: 3})
		if err == nil || !strings.Contains(err.Error(), "asks for the very schedule that it is to make") {
			t.Errorf("error %v", err)
		}
	}
	if _, err := Build(Spec{Method: mine, Collective: schedule.Reduce, Size: 4}); err != nil {
		t.Error(err)
	}
	ranks := []int{0, 1, 2, 3}
	if r := <-given; !slices.Equal(r.Ring, ranks) || !slices.Equal(r.Second, ranks) || !slices.Equal(r.Members, ranks) {
		t.Errorf("the generator is given %+v", r)
	}
}
