package schedule_test

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gogcl.dev/methods/schedule"
)

// proved is the schedule of a Builder, which must prove.
func proved(t *testing.T, b *schedule.Builder) (*schedule.Schedule, schedule.Report) {
	t.Helper()
	s, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	r, err := schedule.Examine(s)
	if err != nil {
		t.Fatalf("%v\n%v", err, s)
	}
	return s, r
}

// TestPortsOfAStar: with k ports the root hears k ranks a round, and one round follows the other.
func TestPortsOfAStar(t *testing.T) {
	for n := 2; n <= 9; n++ {
		for k := 1; k <= n; k++ {
			b := schedule.NewBuilder(schedule.Reduce, n, 0, 1).Ports(k)
			for rank := 1; rank < n; rank++ {
				b.Fold(0, rank, 0, 0, 1)
			}
			_, r := proved(t, b)
			if want := (n - 1 + k - 1) / k; r.Rounds != want || r.Messages != n-1 || r.Ports != min(k, n-1) {
				t.Errorf("%d ranks, %d ports: %d rounds of %d messages, %d ports, want %d rounds", n, k, r.Rounds,
					r.Messages, r.Ports, want)
			}
		}
	}
}

// TestPortsOfStridedMessages: each of two messages of every other chunk goes on when it has come, and neither joins the
// other, nor a message of the chunks between.
func TestPortsOfStridedMessages(t *testing.T) {
	const n, chunks = 4, 6
	b := schedule.NewBuilder(schedule.Broadcast, n, 0, chunks).Ports(1)
	for first := range 2 {
		for rank := range n - 1 {
			b.CopyStrided(0, rank, rank+1, first, chunks/2, 1, 2)
		}
	}
	s, r := proved(t, b)
	if r.Rounds != n || r.Messages != 2*(n-1) || r.Ports != 1 {
		t.Errorf("%d rounds of %d messages, %d ports, want %d, %d and 1:\n%v", r.Rounds, r.Messages, r.Ports, n,
			2*(n-1), s)
	}
	beside := schedule.NewBuilder(schedule.Broadcast, 2, 0, 5).Ports(2)
	beside.CopyStrided(0, 0, 1, 0, 2, 1, 2) // chunks 0 and 2
	beside.Copy(0, 0, 1, 1, 1)
	beside.Copy(0, 0, 1, 3, 2)
	if s, r := proved(t, beside); r.Rounds != 2 || r.Messages != 3 {
		t.Errorf("%d rounds of %d messages, want 2 and 3:\n%v", r.Rounds, r.Messages, s)
	}
}

// TestPortsOfABinomialTree: a loop over parents, far children first, is a tree of the fewest rounds there are.
func TestPortsOfABinomialTree(t *testing.T) {
	for n := 2; n <= 33; n++ {
		depth := bits.Len(uint(n - 1))
		b := schedule.NewBuilder(schedule.Broadcast, n, 0, 3).Ports(1)
		for d := 1 << depth >> 1; d > 0; d /= 2 {
			for parent := 0; parent+d < n; parent += 2 * d {
				b.Copy(0, parent, parent+d, 0, 3)
			}
		}
		if _, r := proved(t, b); r.Rounds != depth || r.Rounds != r.Least.Rounds {
			t.Errorf("%d ranks: %d rounds, want %d", n, r.Rounds, depth)
		}
	}
}

// TestPortsOfTheRing: without the rounds of the loops, and with the loops in another order, the ring is the one with
// rounds by hand.
func TestPortsOfTheRing(t *testing.T) {
	for k := 2; k <= 9; k++ {
		byHand := schedule.NewBuilder(schedule.AllReduce, k, 0, k)
		ringAllReduce(byHand, k)
		want, _ := proved(t, byHand)
		b := schedule.NewBuilder(schedule.AllReduce, k, 0, k).Ports(1)
		for f := range k {
			for i := 1; i < k; i++ {
				b.Fold(0, (f+i)%k, (f+i+1)%k, f, 1)
			}
			for i := range k - 1 {
				b.Copy(0, (f+i)%k, (f+i+1)%k, f, 1)
			}
		}
		if have, _ := proved(t, b); !reflect.DeepEqual(have.Programs, want.Programs) {
			t.Errorf("%d ranks:\n%v\nwant\n%v", k, have, want)
		}
	}
}

// TestPortsOfAPipeline: pieces whose numbers are the rounds go down a chain one behind the other, and those without go
// together.
func TestPortsOfAPipeline(t *testing.T) {
	const n, pieces = 5, 4
	for _, pipelined := range []bool{false, true} {
		b := schedule.NewBuilder(schedule.Broadcast, n, 0, pieces).Ports(1)
		for piece := range pieces {
			for rank := range n - 1 {
				b.Copy(piece*bit(pipelined), rank, rank+1, piece, 1)
			}
		}
		_, r := proved(t, b)
		rounds, messages := n-1, n-1
		if pipelined {
			rounds, messages = n-1+pieces-1, (n-1)*pieces
		}
		if r.Rounds != rounds || r.Messages != messages {
			t.Errorf("pipelined %v: %d rounds, %d messages, want %d, %d", pipelined, r.Rounds, r.Messages, rounds,
				messages)
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestPortsJoin: what joins a message before it, and what does not.
func TestPortsJoin(t *testing.T) {
	type messages = []schedule.Moved
	for _, c := range []struct {
		name  string
		ports int
		calls messages
		want  messages
	}{
		{"the next chunk", 1, messages{{0, 1, 0, 0, 1, true}, {0, 1, 0, 1, 2, true}}, messages{{0, 1, 0, 0, 3, true}}},
		{"the chunk before", 1, messages{{0, 1, 0, 2, 2, true}, {0, 1, 0, 1, 1, true}}, messages{{0, 1, 0, 1, 3, true}}},
		{"the earlier of two", 1, messages{{0, 1, 0, 3, 1, true}, {0, 1, 0, 1, 1, true}, {0, 1, 0, 2, 1, true}},
			messages{{0, 1, 0, 2, 2, true}, {1, 1, 0, 1, 1, true}}},
		{"of two of one round the one below", 2,
			messages{{0, 1, 0, 3, 1, true}, {0, 1, 0, 1, 1, true}, {0, 1, 0, 2, 1, true}},
			messages{{0, 1, 0, 3, 1, true}, {0, 1, 0, 1, 2, true}}},
		{"not from another rank", 1, messages{{0, 1, 0, 0, 1, true}, {0, 2, 0, 1, 1, true}},
			messages{{0, 1, 0, 0, 1, true}, {1, 2, 0, 1, 1, true}}},
		{"not with another round", 1, messages{{0, 1, 0, 0, 1, true}, {1, 1, 0, 1, 1, true}},
			messages{{0, 1, 0, 0, 1, true}, {1, 1, 0, 1, 1, true}}},
		{"not a copy", 1, messages{{0, 1, 0, 0, 1, true}, {0, 1, 0, 1, 1, false}},
			messages{{0, 1, 0, 0, 1, true}, {1, 1, 0, 1, 1, false}}},
		{"not before its chunk has arrived", 1,
			messages{{0, 2, 1, 1, 1, true}, {0, 1, 0, 0, 1, true}, {0, 1, 0, 1, 1, true}},
			messages{{0, 2, 1, 1, 1, true}, {0, 1, 0, 0, 1, true}, {1, 1, 0, 1, 1, true}}},
		{"not one that is folded with a third", 2,
			messages{{0, 1, 0, 0, 1, true}, {0, 2, 0, 0, 1, true}, {0, 1, 0, 1, 1, true}, {0, 2, 0, 1, 1, true}},
			messages{{0, 1, 0, 0, 1, true}, {0, 2, 0, 0, 1, true}, {1, 1, 0, 1, 1, true}, {1, 2, 0, 1, 1, true}}},
		{"a third folds into both later", 2,
			messages{{0, 1, 0, 0, 1, true}, {0, 1, 0, 1, 1, true}, {0, 2, 0, 0, 1, true}, {0, 2, 0, 1, 1, true}},
			messages{{0, 1, 0, 0, 2, true}, {1, 2, 0, 0, 2, true}}},
		{"a third folds into both", 2,
			messages{{0, 1, 0, 0, 1, true}, {0, 1, 0, 1, 1, true}, {0, 2, 0, 0, 2, true}},
			messages{{0, 1, 0, 0, 2, true}, {0, 2, 0, 0, 2, true}}},
	} {
		b := schedule.NewBuilder(schedule.AllReduce, 3, 0, 4).Ports(c.ports)
		add(b, c.calls)
		if _, err := b.Build(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if have := schedule.Messages(b); !slices.Equal(have, c.want) {
			t.Errorf("%s: %v, want %v", c.name, have, c.want)
		}
	}
}

func add(b *schedule.Builder, messages []schedule.Moved) {
	for _, m := range messages {
		if m.Fold {
			b.Fold(m.Round, m.From, m.To, m.First, m.N)
		} else {
			b.Copy(m.Round, m.From, m.To, m.First, m.N)
		}
	}
}

// randomMessages is a list of messages that their senders hold, from some rounds on.
func randomMessages(r *rand.Rand, c schedule.Collective, k, chunks int) []schedule.Moved {
	holds := make([][]bool, k)
	for rank := range holds {
		holds[rank] = make([]bool, chunks)
		for f := range holds[rank] {
			holds[rank][f] = c == schedule.AllReduce || rank == 0
		}
	}
	var out []schedule.Moved
	fresh := r.IntN(2) == 0
	for range 4 * k {
		m := schedule.Moved{From: r.IntN(k), To: r.IntN(k), First: r.IntN(chunks), Fold: c == schedule.AllReduce &&
			r.IntN(4) > 0}
		m.N = 1 + r.IntN(min(2, chunks-m.First))
		if len(out) > 0 && r.IntN(2) == 0 { // beside the one before, or the same
			before := out[len(out)-1]
			m.From, m.To, m.Fold = before.From, before.To, before.Fold
			if f := before.First + before.N - r.IntN(2)*before.N; f+m.N <= chunks {
				m.First = f
			}
		}
		if !fresh {
			m.Round = r.IntN(4)
		}
		all := m.From != m.To
		for f := m.First; f < m.First+m.N; f++ {
			all = all && holds[m.From][f]
		}
		if all {
			out = append(out, m)
			for f := m.First; f < m.First+m.N; f++ {
				holds[m.To][f] = true
			}
		}
	}
	return out
}

// slowPorts chooses rounds by trying each, and looking through all messages before each time.
func slowPorts(ports int, calls []schedule.Moved) []schedule.Moved {
	type known struct {
		schedule.Moved
		earliest int
	}
	shares := func(a, b schedule.Moved) bool { return a.First < b.First+b.N && b.First < a.First+a.N }
	var all []known
	for _, call := range calls {
		m := known{Moved: call, earliest: call.Round}
		// may says whether m may go in round t, but for ports; alone, whether its chunks come alone then.
		may := func(t int) (ok, alone bool) {
			ok, alone = t >= call.Round, true
			for _, e := range all {
				if !shares(e.Moved, m.Moved) {
					continue
				}
				if e.To == m.From {
					ok = ok && t > e.Round
				}
				if e.From == m.To {
					ok = ok && t >= e.Round
				}
				if e.To == m.To {
					ok = ok && (t > e.Round || t == e.Round && m.Fold && e.First == m.First && e.N == m.N)
					alone = alone && t != e.Round
				}
			}
			return ok, alone
		}
		// joins finds what m joins in round t: of the last messages to its neighbours, one that comes alone.
		joins := func(t int) int {
			for _, f := range []int{m.First - 1, m.First + m.N} {
				last := -1
				for i, e := range all {
					if e.To == m.To && shares(e.Moved, schedule.Moved{First: f, N: 1}) && (last < 0 ||
						e.Round >= all[last].Round) {
						last = i
					}
				}
				if last < 0 {
					continue
				}
				e := all[last]
				ok := e.Round == t && e.From == m.From && e.Fold == m.Fold && e.earliest == m.earliest &&
					!shares(e.Moved, m.Moved)
				for i, other := range all {
					ok = ok && (i == last || other.To != m.To || other.Round != t || !shares(other.Moved, e.Moved))
				}
				if ok {
					return last
				}
			}
			return -1
		}
		for t := 0; ; t++ {
			ok, alone := may(t)
			if !ok {
				continue
			}
			if i := joins(t); alone && i >= 0 {
				e := &all[i]
				e.First, e.N = min(e.First, m.First), e.N+m.N
				break
			}
			sent, received := 0, 0
			for _, e := range all {
				sent += bit(e.From == m.From && e.Round == t)
				received += bit(e.To == m.To && e.Round == t)
			}
			if sent < ports && received < ports {
				m.Round = t
				all = append(all, m)
				break
			}
		}
	}
	out := make([]schedule.Moved, len(all))
	for i := range all {
		out[i] = all[i].Moved
	}
	return out
}

// oneByOne is what ranks hold, as sums by rank, of each chunk, if messages go one after the other.
func oneByOne(c schedule.Collective, k, chunks int, messages []schedule.Moved) [][]string {
	return inRounds(c, k, chunks, func(yield func([]schedule.Moved) bool) {
		for i := range messages {
			yield(messages[i : i+1])
		}
	})
}

// inRounds is the same if those of each round go at once.
func inRounds(c schedule.Collective, k, chunks int, rounds func(func([]schedule.Moved) bool)) [][]string {
	has := make([][]string, k)
	for rank := range has {
		has[rank] = make([]string, chunks)
		for f := range has[rank] {
			if c == schedule.AllReduce || rank == 0 {
				has[rank][f] = fmt.Sprint(rank)
			}
		}
	}
	for round := range rounds {
		before := make([][]string, k)
		for rank := range has {
			before[rank] = slices.Clone(has[rank])
		}
		for _, m := range round {
			for f := m.First; f < m.First+m.N; f++ {
				if to := &has[m.To][f]; m.Fold && *to != "" {
					*to = "(" + *to + "+" + before[m.From][f] + ")"
				} else {
					*to = before[m.From][f]
				}
			}
		}
	}
	return has
}

// TestPortsOfRandomMessages: lists of messages get the rounds of slowPorts, and leave what they would leave one by one.
// The schedule is the one of these rounds by hand, for all ranks and for one.
func TestPortsOfRandomMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	joined, chained := 0, 0
	for i := range 1000 {
		k, chunks, ports := 2+r.IntN(5), 1+r.IntN(5), 1+r.IntN(3)
		c := schedule.AllReduce
		if r.IntN(3) == 0 {
			c = schedule.Broadcast
		}
		calls := randomMessages(r, c, k, chunks)
		b := schedule.NewBuilder(c, k, 0, chunks).Ports(ports)
		add(b, calls)
		want := slowPorts(ports, calls)
		have := schedule.Messages(b)
		if !slices.Equal(have, want) {
			t.Fatalf("list %d of %d ranks, %d ports: %v\nare %v\nwant %v", i, k, ports, calls, have, want)
		}
		joined += len(calls) - len(have)
		byRound := map[int][]schedule.Moved{}
		for _, m := range have {
			chained += bit(slices.ContainsFunc(byRound[m.Round], func(e schedule.Moved) bool {
				return e.To == m.To && e.First == m.First
			}))
			byRound[m.Round] = append(byRound[m.Round], m)
		}
		if got, want := inRounds(c, k, chunks, func(yield func([]schedule.Moved) bool) {
			for _, t := range slices.Sorted(maps.Keys(byRound)) {
				yield(byRound[t])
			}
		}), oneByOne(c, k, chunks, calls); !reflect.DeepEqual(got, want) {
			t.Fatalf("list %d, %v\nleaves %v, want %v", i, calls, got, want)
		}
		byHand := schedule.NewBuilder(c, k, 0, chunks)
		add(byHand, want)
		wantS, wantErr := byHand.Build()
		haveS, err := b.Build()
		if err != nil || wantErr != nil || !reflect.DeepEqual(haveS, wantS) {
			t.Fatalf("list %d, %v: %v, want %v, %v\n%v\nwant\n%v", i, calls, err, wantErr, ports, haveS, wantS)
		}
		rank := r.IntN(k)
		one := schedule.NewBuilder(c, k, 0, chunks).Only(rank).Ports(ports)
		add(one, calls)
		if s, err := one.Build(); err != nil || !reflect.DeepEqual(s.Programs[rank], haveS.Programs[rank]) {
			t.Fatalf("list %d, rank %d alone: %v", i, rank, err)
		}
	}
	if joined < 100 || chained < 100 {
		t.Errorf("%d messages joined another, %d were folded with another: these lists show little", joined, chained)
	}
}
