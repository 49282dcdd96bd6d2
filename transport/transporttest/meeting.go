package transporttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// RunPeerMemory is the part of Run about transport.PeerMemory and transport.Boards. It is skipped when the endpoints
// offer neither; one without the other is an error.
func RunPeerMemory(t *testing.T, open func(t testing.TB, n int) []transport.Endpoint, options ...Option) {
	s := newSuite(options)
	s.open = open
	s.peerMemory(t)
}

func (s *suite) peerMemory(t *testing.T) {
	var memory, boards, opener bool
	look := func(e transport.Endpoint) {
		_, memory = e.(transport.PeerMemory)
		_, boards = e.(transport.Boards)
		_, opener = e.(transport.Opener)
	}
	if s.world == nil { // whatever -run asks for
		probe := s.open(t, 1)
		look(probe[0])
		shut(t, probe)
	} else {
		t.Run("Offered", func(t *testing.T) {
			eps := s.connect(t, s.number(1))
			for _, e := range eps {
				look(e)
			}
			s.agree(t, s.number(1), eps, fmt.Sprint(memory, boards, opener))
		})
	}
	switch {
	case !memory && !boards:
		t.Skip("the endpoints offer no transport.PeerMemory")
	case !memory || !boards:
		t.Fatalf("the endpoints offer transport.PeerMemory %v and transport.Boards %v, want both or none", memory, boards)
	}
	s.run(t, []test{
		{"Reaches", (*suite).reaches},
		{"Rounds", (*suite).rounds},
		{"Gather", (*suite).gather},
		{"Share", (*suite).share},
		{"Broadcast", (*suite).broadcast},
		{"Subset", (*suite).subset},
		{"Mixed", (*suite).mixed},
		{"BadArguments", (*suite).badArguments},
		{"Busy", (*suite).shareBusy},
		{"Mismatch", over((*suite).mismatch, inRounds, inPieces, inGather)},
		{"Elsewhere", (*suite).memoryElsewhere},
		{"Overlapping", (*suite).overlapping},
		{"Break", over((*suite).breakOff, inRounds, inPieces)},
		{"Cancel", over((*suite).cancel, inRounds, inPieces, inGather)},
		{"Abort", over((*suite).abort, inRounds, inPieces, inGather)},
		{"Gone", over((*suite).gone, inRounds, inPieces, inGather)},
		{"Panic", (*suite).panics},
		{"WorkerAborts", (*suite).workerAborts},
		{"BroadcastMismatch", (*suite).broadcastMismatch},
		{"BroadcastArguments", (*suite).broadcastArguments},
		{"BroadcastUnheard", (*suite).broadcastUnheard},
		{"BroadcastElsewhere", (*suite).broadcastElsewhere},
		{"NoLeak", (*suite).memoryNoLeak},
		{"NoAlloc", (*suite).memoryNoAlloc},
	})
	if opener {
		s.run(t, openerTests)
	}
}

// group is a set of replicas that meet.
type group struct {
	id      uint64
	members []int
}

// everybody is the group of all n replicas.
func everybody(n int) group {
	g := group{id: 1}
	for r := range n {
		g.members = append(g.members, r)
	}
	return g
}

func (g group) call(seq int) transport.Call {
	c := call(seq, 0)
	c.Group += g.id
	return c
}

// folded is op over the bytes of all members, in their order.
func (g group) folded(size, seq int) []byte {
	var out []byte
	for i, r := range g.members {
		bytes := made(size, origin{r, r, int(g.id), seq})
		if i == 0 {
			out = bytes
		} else {
			op(out, out, bytes)
		}
	}
	return out
}

const meetPiece = 4096

// stepping carries out one Share of several rounds, checks what it sees, and spoils its buffers. Round 0 works on the
// members' memory; each of the more rounds checks what the one before has left, and leaves a byte for the next member.
// The last round has pieces for some members only.
func (g group) stepping(e near, size, seq, more int) error {
	me := e.Rank()
	defer e.borrowing()()
	pieces := (size + meetPiece - 1) / meetPiece
	mine := transport.Memory{In: e.made(size, origin{me, me, int(g.id), seq}), Out: e.buf(size),
		Scratch: e.buf(pieces + 2)}
	mine.Ins = [][]byte{mine.In[:size/2], nil, mine.In[size/2:]}
	mine.Outs = [][]byte{append(e.buf(2)[:0], byte(me), byte(seq))}
	defer scribble(mine.In, mine.Out, mine.Scratch, mine.Outs[0])
	w := &stepper{group: g, endpoint: e, place: slices.Index(g.members, me), mine: mine, size: size, seq: seq,
		pieces: pieces}
	rounds := []int{len(g.members)}
	for range more {
		rounds = append(rounds, len(g.members))
	}
	last := seq % (len(g.members) + 1)
	rounds = append(rounds, last)
	if err := e.Share(background, g.call(seq), g.members, mine, rounds, w); err != nil {
		return errors.Join(w.err, err)
	}
	want := 1 + more
	if w.place < last {
		want++
	}
	if w.rounds != want {
		return fmt.Errorf("member %d did pieces in %d rounds, want %d", w.place, w.rounds, want)
	}
	if err := same("input after Share", mine.In, made(size, origin{me, me, int(g.id), seq})); err != nil {
		return err
	}
	if me == g.members[0] {
		if err := once(mine.Scratch[:pieces]); err != nil {
			return err
		}
	}
	return same("output after Share", mine.Out, g.folded(size, seq))
}

// stepper is the Worker of stepping.
type stepper struct {
	group
	endpoint  transport.Endpoint
	place     int
	mine      transport.Memory
	size, seq int
	pieces    int // of the work of round 0
	rounds    int // in which it had a piece
	err       error
}

// Piece implements transport.Worker. An error ends the others as well: they are not where this member is.
func (w *stepper) Piece(all []transport.Memory, round, i int) {
	err := w.piece(all, round, i)
	if err != nil && w.err == nil {
		w.err = err
		w.endpoint.Abort(err)
	}
}

func (w *stepper) piece(all []transport.Memory, round, i int) error {
	if i != w.place || round != w.rounds {
		return fmt.Errorf("member %d is given piece %d of round %d, and has had %d", w.place, i, round, w.rounds)
	}
	w.rounds++
	if err := w.look(all); err != nil {
		return err
	}
	n := len(all)
	if round == 0 {
		for k := i; k < w.pieces; k += n {
			all[0].Scratch[k]++
			share(all, k, nil)
		}
	} else {
		want := w.folded(w.size, w.seq)
		for k, m := range all {
			if err := same(fmt.Sprintf("output of member %d in round %d", k, round), m.Out, want); err != nil {
				return err
			}
		}
		from := w.members[(i+n-1)%n]
		if got := w.mine.Scratch[w.pieces+round%2]; got != byte(from+round) {
			return fmt.Errorf("round %d: the neighbour's byte is %d, want %d", round, got, byte(from+round))
		}
	}
	next := all[(i+1)%n] // may be looking for the byte of this round, beside it
	next.Scratch[w.pieces+(round+1)%2] = byte(w.members[i] + round + 1)
	return nil
}

// look checks what the members show.
func (w *stepper) look(all []transport.Memory) error {
	if len(all) != len(w.members) {
		return fmt.Errorf("a Worker has the memory of %d members, want %d", len(all), len(w.members))
	}
	for i, m := range all {
		if len(m.In) != w.size || len(m.Out) != w.size || len(m.Scratch) != w.pieces+2 {
			return fmt.Errorf("member %d shows %d, %d and %d bytes", i, len(m.In), len(m.Out), len(m.Scratch))
		}
		if len(m.Ins) != 3 || len(m.Ins[0]) != w.size/2 || len(m.Ins[1]) != 0 || len(m.Ins[2]) != w.size-w.size/2 ||
			len(m.Outs) != 1 {
			return fmt.Errorf("member %d shows lists of %d and %d buffers, or of other lengths",
				i, len(m.Ins), len(m.Outs))
		}
		if w.size > 1 && (&m.Ins[0][0] != &m.In[0] || &m.Ins[2][0] != &m.In[w.size/2]) {
			return fmt.Errorf("member %d shows other buffers in its list than it laid open", i)
		}
		if got, want := string(m.Outs[0]), string([]byte{byte(w.members[i]), byte(w.seq)}); got != want {
			return fmt.Errorf("member %d shows %q in its list, want %q", i, got, want)
		}
	}
	return nil
}

// once checks that each piece was done once.
func once(times []byte) error {
	for i, n := range times {
		if n != 1 {
			return fmt.Errorf("piece %d was done %d times", i, n)
		}
	}
	return nil
}

// combine is the Combiner of the suite: op in the order of the members.
type combine struct{}

func (combine) Combine(dst []byte, all [][]byte) {
	copy(dst, all[0])
	for _, a := range all[1:] {
		op(dst, dst, a)
	}
}

// gathering carries out one Gather and checks it. Members whose bit in silent is set publish nothing.
func (g group) gathering(e near, size, seq int, silent uint, c transport.Combiner) error {
	me := e.Rank()
	defer e.borrowing()()
	var mine []byte
	if silent>>slices.Index(g.members, me)&1 == 0 {
		mine = e.made(size, origin{me, me, int(g.id), seq})
	}
	all, combined, err := e.Gather(background, g.call(seq), g.members, mine, size, c)
	scribble(mine)
	if err != nil {
		return err
	}
	if c != nil && all == nil {
		return same("combined", combined, g.folded(size, seq))
	}
	if len(all) != len(g.members) {
		return fmt.Errorf("got from Gather the bytes of %d members, want %d", len(all), len(g.members))
	}
	for i, r := range g.members {
		if len(all[i]) != size {
			return fmt.Errorf("got from Gather %d bytes of member %d, want %d", len(all[i]), i, size)
		}
		if silent>>i&1 == 0 {
			if err := same(fmt.Sprintf("gathered from member %d", i), all[i],
				made(size, origin{r, r, int(g.id), seq})); err != nil {
				return err
			}
		}
	}
	return nil
}

// near is an endpoint whose peers reach its memory and read its boards.
type near struct {
	meeter
	suite *suite
	room  *room // nil: it lays any memory open
}

// meeter is what such an endpoint offers.
type meeter interface {
	transport.PeerMemory
	transport.Boards
}

func (s *suite) near(e transport.Endpoint) near { return near{e.(meeter), s, s.rooms.of(e)} }

// made is made in memory that the peers reach.
func (e near) made(n int, o origin) []byte { return fill(e.buf(n), o) }

// tardy sleeps now and then, so long that the others park or register.
func (e near) tardy(random *rand.Rand) {
	if random.IntN(100) == 0 {
		e.suite.clock.Sleep(e.meeter, time.Duration(random.IntN(4000))*time.Microsecond)
	}
}

// peers is all for peer memory and boards.
func (s *suite) peers(t testing.TB, eps []transport.Endpoint, body func(e near) error) {
	t.Helper()
	all(t, eps, func(e transport.Endpoint) error { return body(s.near(e)) })
}

// reaches asks all members of each group whether they reach each other. All of them must say so, however often they are
// asked: the rest of the suite wants such groups.
func (s *suite) reaches(t *testing.T) {
	n := s.number(4)
	eps := s.connect(t, n)
	for set := 1; set < 1<<n; set++ {
		var members []int
		for r := range n {
			if set>>r&1 == 1 {
				members = append(members, r)
			}
		}
		for range 2 {
			for _, r := range members {
				if e := at(eps, r); e != nil && !e.(meeter).Reaches(members) {
					t.Errorf("replica %d says that %v do not reach each other: the suite takes replicas that all do",
						r, members)
				}
			}
		}
	}
}

// rounds has members step together through Shares of several rounds.
func (s *suite) rounds(t *testing.T) {
	s.sizes(t, []int{1, 2, 3, 5, 8}, []int{0, 1, 100, 30000}, func(t *testing.T, n, size int) {
		eps := s.connect(t, n)
		g := everybody(n)
		s.peers(t, eps, func(e near) error {
			random := rand.New(rand.NewPCG(uint64(e.Rank()), 3))
			for seq := range s.few(100) {
				e.tardy(random)
				if err := g.stepping(e, size, seq, seq%4); err != nil {
					return fmt.Errorf("share %d: %w", seq, err)
				}
			}
			return nil
		})
	})
}

func (s *suite) gather(t *testing.T) {
	s.replicas(t, []int{1, 2, 3, 8}, func(t *testing.T, n int) {
		s.peers(t, s.connect(t, n), func(e near) error {
			g := everybody(n)
			random := rand.New(rand.NewPCG(uint64(e.Rank()), 4))
			sizes := []int{0, 1, 8, 9, 100, e.SmallLimit()}
			for i := range len(sizes) * s.few(200) {
				e.tardy(random)
				size := sizes[i/s.few(200)]
				var c transport.Combiner
				silent := uint(0)
				switch {
				case i%4 == 0, i%4 == 1 && (e.Rank()+i/4)%2 == 0: // of all, of some members only
					c = combine{}
				case i%4 == 2:
					silent = uint(i)
				}
				if err := g.gathering(e, size, i, silent, c); err != nil {
					return fmt.Errorf("gathering %d of %d bytes: %w", i, size, err)
				}
			}
			return nil
		})
	})
}

// subset has disjoint groups, in orders of their own, at work at the same time, and the group of all in between.
func (s *suite) subset(t *testing.T) {
	s.replicas(t, []int{3, 5, 8}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		whole, halves := everybody(n), [2]group{{id: 2}, {id: 3}}
		for r := range n {
			h := &halves[r%2]
			h.members = append([]int{r}, h.members...)
		}
		s.peers(t, eps, func(e near) error {
			me := e.Rank()
			random := rand.New(rand.NewPCG(uint64(me), 5))
			for seq := range s.few(100) {
				e.tardy(random)
				half := halves[me%2]
				for range me%2 + 1 { // the one group is twice as busy as the other
					if err := half.stepping(e, 5000, seq, 1); err != nil {
						return fmt.Errorf("half, share %d: %w", seq, err)
					}
					if err := half.gathering(e, 20, seq, 0, combine{}); err != nil {
						return fmt.Errorf("half, gathering %d: %w", seq, err)
					}
				}
				if seq%10 == 0 {
					if err := whole.stepping(e, 100, seq, 0); err != nil {
						return fmt.Errorf("all, share %d: %w", seq, err)
					}
				}
			}
			return nil
		})
	})
}

// mixed runs random sequences of all operations.
func (s *suite) mixed(t *testing.T) {
	s.repeat(t, s.few(20), func(t *testing.T, seed int) {
		n := s.number(2 + seed%7)
		s.peers(t, s.connect(t, n), func(e near) error {
			plan, own := rand.New(rand.NewPCG(uint64(seed), 6)), rand.New(rand.NewPCG(uint64(e.Rank()), uint64(seed)))
			for seq := range 200 {
				e.tardy(own)
				if err := everybody(n).anything(e, plan, seq); err != nil {
					return fmt.Errorf("operation %d: %w", seq, err)
				}
			}
			return nil
		})
	})
}

// anything carries out the operation that comes by chance. Numbers of calls grow.
func (g group) anything(e near, plan *rand.Rand, seq int) error {
	size := []int{0, 1, 8, 9, 64, 4000}[plan.IntN(6)]
	what, k := plan.IntN(6), plan.IntN(3)
	seq = 1000*(seq+1) + seq%7
	switch what {
	case 0:
		return shift(e, seq, k)
	case 1:
		return g.stepping(e, size, seq, k)
	case 2:
		return g.gathering(e, size, seq, uint(k), nil)
	case 3:
		return g.sharing(e, size, seq)
	case 4: // several, so that some run ahead
		for i := range 50 * k {
			if err := g.broadcasting(e, size, seq+i, plan.IntN(len(g.members))); err != nil {
				return err
			}
		}
		return nil
	}
	return g.gathering(e, size, seq, 0, combine{})
}
