package methods

import (
	"reflect"
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
)

func TestSpecErrors(t *testing.T) {
	t.Parallel()
	ok := Spec{Method: ClockwiseRing, Collective: schedule.AllReduce, Size: 3, Ring: inOrder(3), Second: inOrder(3)}
	for _, c := range []struct {
		want string
		bad  func(*Spec)
	}{
		{"auto makes no schedule", func(s *Spec) { s.Method = Auto }},
		{"Method(99) makes no schedule", func(s *Spec) { s.Method = 99 }},
		{"unknown collective 200", func(s *Spec) { s.Collective = 200 }},
		{"group of 0 ranks", func(s *Spec) { s.Size = 0 }},
		{"group of -1 ranks", func(s *Spec) { s.Size = -1 }},
		{"group of 65537 ranks, want at most 65536", func(s *Spec) { s.Size = 65537 }},
		{"root 3 of broadcast over 3 ranks", func(s *Spec) { s.Collective, s.Root = schedule.Broadcast, 3 }},
		{"root -1 of broadcast over 3 ranks", func(s *Spec) { s.Collective, s.Root = schedule.Broadcast, -1 }},
		{"root 1 of all-reduce", func(s *Spec) { s.Root = 1 }},
		{"65537 pieces, want at most 65536", func(s *Spec) { s.Pieces = 65537 }},
		{"-2 pieces", func(s *Spec) { s.Pieces = -2 }},
		{"ring of 2 ranks for a group of 3", func(s *Spec) { s.Ring = inOrder(2) }},
		{"ring [0 1 1] is not a permutation of 0 to 2", func(s *Spec) { s.Ring = []int{0, 1, 1} }},
		{"ring [0 1 3] is not a permutation of 0 to 2", func(s *Spec) { s.Ring = []int{0, 1, 3} }},
		{"ring [0 -1 2] is not a permutation of 0 to 2", func(s *Spec) { s.Ring = []int{0, -1, 2} }},
		{"no second ring for a group of ", func(s *Spec) { s.Method, s.Second = QuadDirectionalRing, nil }},
	} {
		s := ok
		c.bad(&s)
		if _, err := Build(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Build(%+v): error %v, want one with %q", s, err, c.want)
		}
		if _, err := s.Program(0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v.Program(0): error %v, want one with %q", s, err, c.want)
		}
		if n := s.Chunks(); n != 0 {
			t.Errorf("%+v.Chunks() = %d, want 0", s, n)
		}
	}
	most := Spec{Method: RecursiveDoubling, Collective: schedule.AllReduce, Size: 65536}
	if p, err := most.Program(0); err != nil || len(p) != 16 {
		t.Errorf("%+v.Program(0): %d rounds, error %v; want 16", most, len(p), err)
	}
	for _, rank := range []int{-1, 3} {
		if _, err := ok.Program(rank); err == nil {
			t.Errorf("Program(%d): no error", rank)
		}
	}
}

func TestProgramIsTheOneOfBuild(t *testing.T) {
	t.Parallel()
	for k := 1; k <= 7; k++ {
		specs(k, func(name string, s Spec) {
			built, err := Build(s)
			if err != nil {
				t.Fatal(err)
			}
			for rank := range k {
				p, err := s.Program(rank)
				if err != nil || !reflect.DeepEqual(p, built.Programs[rank]) {
					t.Errorf("%s: the program of rank %d differs (%v)", name, rank, err)
				}
			}
		})
	}
}

// TestOneLayout: whichever method a reduce-scatter and the all-gather that undoes it take, rank r owns the same
// elements.
func TestOneLayout(t *testing.T) {
	t.Parallel()
	for k := 1; k <= 9; k++ {
		specs(k, func(name string, s Spec) {
			if c := s.Collective; c != schedule.ReduceScatter && c != schedule.AllGather {
				return
			}
			if s.Chunks()%k != 0 {
				t.Errorf("%s: %d chunks do not end where shards do", name, s.Chunks())
			}
		})
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	want := []string{"auto", "broadcast", "clockwise_ring", "anticlockwise_ring",
		"bidirectional_ring_pair", "meet_in_middle_ring", "quad_directional_ring", "direct", "recursive_doubling",
		"native"}
	for m := range numMethods {
		text, err := m.MarshalText()
		if err != nil || string(text) != want[m] {
			t.Errorf("%d: text %q, %v, want %q", m, text, err, want[m])
		}
		var back Method
		if err := back.UnmarshalText(text); err != nil || back != m {
			t.Errorf("%q parses to %v, %v", text, back, err)
		}
	}
	if _, err := Method(77).MarshalText(); err == nil {
		t.Error("Method(77) has a text form")
	}
	if _, err := Parse("ring"); err == nil || !strings.Contains(err.Error(), "clockwise_ring") {
		t.Errorf("Parse(ring): %v, want an error that lists the methods", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range constants() {
		f.Add(m.String())
	}
	f.Fuzz(func(t *testing.T, s string) {
		if m, err := Parse(s); err == nil && m.String() != s {
			t.Errorf("%q parses to %v", s, m)
		}
	})
}

func TestPipelinePieces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reach               int
		bytes, latencyBytes int64
		want                int
	}{
		{1, 1 << 30, 1, 1},        // nothing to overlap
		{7, 0, 1 << 13, 1},        // nothing to send
		{2, 1 << 13, 1 << 13, 1},  // sqrt(1)
		{2, 1 << 15, 1 << 13, 2},  // sqrt(4)
		{5, 1 << 15, 1 << 13, 4},  // sqrt(16)
		{7, 1 << 20, 1 << 13, 32}, // sqrt(768) = 27.7
		{7, 1 << 40, 1 << 13, 64}, // the bound
	} {
		if got := pipelinePieces(c.reach, c.bytes, c.latencyBytes); got != c.want {
			t.Errorf("pipelinePieces(%d, %d, %d) = %d, want %d", c.reach, c.bytes, c.latencyBytes, got, c.want)
		}
	}
}

// TestOneChain: with RankOrder every method that is not straight makes the same chain.
func TestOneChain(t *testing.T) {
	t.Parallel()
	for k := 1; k <= 9; k++ {
		ring, second := rings(k)
		for _, c := range []schedule.Collective{schedule.AllReduce, schedule.ReduceScatter} {
			spec := Spec{Method: ClockwiseRing, Collective: c, Size: k, Ring: ring, Second: second, Pieces: 3,
				RankOrder: true}
			want, err := Build(spec)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range constants() {
				if m == SendToAll || m == Direct {
					continue
				}
				spec.Method = m
				if have, err := Build(spec); err != nil || !reflect.DeepEqual(have, want) {
					t.Errorf("%v %v over %d in rank order is not the chain (%v)", m, c, k, err)
				}
			}
		}
	}
}

// TestPipelined: a schedule is a pipeline just where Pieces decides into how many chunks the data is cut.
func TestPipelined(t *testing.T) {
	t.Parallel()
	for k := 2; k <= 9; k++ {
		ring, second := rings(k)
		for _, m := range constants() {
			for _, c := range schedule.Collectives() {
				for _, rankOrder := range []bool{false, true} {
					s := Spec{Method: m, Collective: c, Size: k, Ring: ring, Second: second, RankOrder: rankOrder}
					chunks := func(pieces int) int {
						s := s
						s.Pieces = pieces
						return s.Chunks()
					}
					pieces := s.Pipelined(1<<40, 1<<13).Pieces
					if (pieces > 0) != (chunks(1) != chunks(5)) {
						t.Errorf("%v %v over %d, rank order %v: %d pieces, %d chunks in 1 piece and %d in 5",
							m, c, k, rankOrder, pieces, chunks(1), chunks(5))
					}
				}
			}
		}
	}
}

// TestPipelinedReach: the chain that Pieces is for is as long as the schedule in one piece says.
func TestPipelinedReach(t *testing.T) {
	t.Parallel()
	const k = 8
	ring, second := rings(k)
	for _, m := range constants() {
		for _, c := range []schedule.Collective{schedule.AllReduce, schedule.Broadcast} {
			s := Spec{Method: m, Collective: c, Size: k, Ring: ring, Second: second, RankOrder: true}
			for _, bytes := range []int64{7, 7 << 10} {
				have := s.Pipelined(bytes, 2).Pieces
				if have == 0 {
					continue
				}
				built, err := Build(s)
				if err != nil {
					t.Fatal(err)
				}
				reach := 0 // rounds in one piece
				for _, p := range built.Programs {
					reach = max(reach, len(p))
				}
				if c == schedule.AllReduce { // up the chain and down
					reach /= 2
				}
				if want := pipelinePieces(reach, bytes, 2); have != want {
					t.Errorf("%v %v: %d pieces of %d bytes, want %d for %d hops", m, c, have, bytes, want, reach)
				}
			}
		}
	}
}

// TestRings: a method needs as many ring orders as Rings says, and uses no more.
func TestRings(t *testing.T) {
	t.Parallel()
	const k = 5
	ring, second := rings(k)
	bad := []int{0, 0, 1, 2, 3}
	for _, m := range constants() {
		for have := range 3 {
			s := Spec{Method: m, Collective: schedule.AllReduce, Size: k, Ring: bad, Second: bad}
			if have > 0 {
				s.Ring = ring
			}
			if have > 1 {
				s.Second = second
			}
			if _, err := Build(s); (err == nil) != (m.Rings() <= have) {
				t.Errorf("%v, which follows %d rings, given %d: %v", m, m.Rings(), have, err)
			}
		}
	}
	if Auto.Rings() != 0 || numMethods.Rings() != 0 {
		t.Error("a method that makes no schedule follows a ring")
	}
}
