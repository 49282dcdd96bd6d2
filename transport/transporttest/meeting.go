package transporttest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// RunPeerMemory is the part of Run about transport.PeerMemory. It is skipped when the endpoints do not offer that.
func RunPeerMemory(t *testing.T, open func(t testing.TB, n int) []transport.Endpoint, features ...Feature) {
	s := &suite{open: open}
	for _, f := range features {
		s.features |= f
	}
	s.peerMemory(t)
}

func (s *suite) peerMemory(t *testing.T) {
	probe := s.open(t, 1)
	_, ok := probe[0].(transport.PeerMemory)
	shut(t, probe)
	if !ok {
		t.Skip("the endpoints do not implement transport.PeerMemory")
	}
	for _, test := range []struct {
		name string
		run  func(*suite, *testing.T)
	}{
		{"Meet", (*suite).meet},
		{"Gather", (*suite).gather},
		{"Share", (*suite).share},
		{"Broadcast", (*suite).broadcast},
		{"Subset", (*suite).subset},
		{"Mixed", (*suite).mixed},
		{"BadArguments", (*suite).badArguments},
		{"Busy", (*suite).meetBusy},
		{"Mismatch", (*suite).meetMismatch},
		{"InExchange", (*suite).meetExchange},
		{"Overlapping", (*suite).overlapping},
		{"Break", (*suite).meetBreak},
		{"Missing", (*suite).meetMissing},
		{"Panic", (*suite).combinerPanics},
		{"WorkerPanic", (*suite).workerPanics},
		{"ShareBreak", (*suite).shareBreak},
		{"BroadcastMismatch", (*suite).broadcastMismatch},
		{"BroadcastArguments", (*suite).broadcastArguments},
		{"BroadcastUnheard", (*suite).broadcastUnheard},
		{"BroadcastElsewhere", (*suite).broadcastElsewhere},
		{"NoLeak", (*suite).meetNoLeak},
		{"NoAlloc", (*suite).meetNoAlloc},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(s, t) })
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

// meeting carries out one Meet, some Syncs and a Part on the endpoint, checks what it sees, and spoils its buffers.
func (g group) meeting(e transport.PeerMemory, size, seq, syncs int) error {
	me := e.Rank()
	pieces := (size + meetPiece - 1) / meetPiece
	mine := transport.Memory{In: made(size, origin{me, me, int(g.id), seq}), Out: make([]byte, size), Scratch: make([]byte, pieces+1)}
	mine.Ins = [][]byte{mine.In[:size/2], nil, mine.In[size/2:]}
	mine.Outs = [][]byte{{byte(me), byte(seq)}}
	defer scribble(mine.In, mine.Out, mine.Scratch, mine.Outs[0])
	mems, err := e.Meet(background, g.call(seq), g.members, mine)
	if err != nil {
		return err
	}
	work := func() error {
		if len(mems) != len(g.members) {
			return fmt.Errorf("got from Meet the memory of %d members, want %d", len(mems), len(g.members))
		}
		for i, m := range mems {
			if len(m.In) != size || len(m.Out) != size || len(m.Scratch) != pieces+1 {
				return fmt.Errorf("member %d shows %d, %d and %d bytes", i, len(m.In), len(m.Out), len(m.Scratch))
			}
			if len(m.Ins) != 3 || len(m.Ins[0]) != size/2 || len(m.Ins[1]) != 0 || len(m.Ins[2]) != size-size/2 || len(m.Outs) != 1 {
				return fmt.Errorf("member %d shows lists of %d and %d buffers, or of other lengths", i, len(m.Ins), len(m.Outs))
			}
			if size > 1 && (&m.Ins[0][0] != &m.In[0] || &m.Ins[2][0] != &m.In[size/2]) {
				return fmt.Errorf("member %d shows other buffers in its list than it laid open", i)
			}
			if got, want := string(m.Outs[0]), string([]byte{byte(g.members[i]), byte(seq)}); got != want {
				return fmt.Errorf("member %d shows %q in its list, want %q", i, got, want)
			}
		}
		for i := slices.Index(g.members, me); i < pieces; i += len(mems) {
			mems[0].Scratch[i]++
			share(mems, i, nil)
		}
		want := g.folded(size, seq)
		for k := range syncs {
			if err := e.Sync(background); err != nil {
				return err
			}
			for i, m := range mems {
				if err := same(fmt.Sprintf("output of member %d after Sync", i), m.Out, want); err != nil {
					return err
				}
			}
			if err := e.Sync(background); err != nil {
				return err
			}
			// A byte for the next member, which looks for it in the next round.
			next := mems[(slices.Index(g.members, me)+1)%len(mems)]
			next.Scratch[pieces] = byte(me + k + 1)
			if err := e.Sync(background); err != nil {
				return err
			}
			from := g.members[(slices.Index(g.members, me)+len(mems)-1)%len(mems)]
			if got := mine.Scratch[pieces]; got != byte(from+k+1) {
				return fmt.Errorf("sync %d: the neighbour's byte is %d, want %d", k, got, byte(from+k+1))
			}
		}
		return nil
	}
	err = work()
	if err != nil {
		e.Abort(err) // the others are not where we are
	}
	if parted := e.Part(background); err == nil {
		err = parted
	}
	if err != nil {
		return err
	}
	if err := same("input after Part", mine.In, made(size, origin{me, me, int(g.id), seq})); err != nil {
		return err
	}
	if me == g.members[0] {
		if err := once(mine.Scratch[:pieces]); err != nil {
			return err
		}
	}
	return same("output after Part", mine.Out, g.folded(size, seq))
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
func (g group) gathering(e transport.PeerMemory, size, seq int, silent uint, c transport.Combiner) error {
	me := e.Rank()
	var mine []byte
	if silent>>slices.Index(g.members, me)&1 == 0 {
		mine = made(size, origin{me, me, int(g.id), seq})
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
			if err := same(fmt.Sprintf("gathered from member %d", i), all[i], made(size, origin{r, r, int(g.id), seq})); err != nil {
				return err
			}
		}
	}
	return nil
}

// peers is all for peer memory.
func peers(t testing.TB, eps []transport.Endpoint, body func(e transport.PeerMemory) error) {
	t.Helper()
	all(t, eps, func(e transport.Endpoint) error { return body(e.(transport.PeerMemory)) })
}

// tardy sleeps now and then, so long that the others park or register.
func tardy(random *rand.Rand) {
	if random.IntN(100) == 0 {
		time.Sleep(time.Duration(random.IntN(4000)) * time.Microsecond)
	}
}

func (s *suite) meet(t *testing.T) {
	s.sizes(t, []int{1, 2, 3, 5, 8}, []int{0, 1, 100, 30000}, func(t *testing.T, n, size int) {
		eps := s.connect(t, n)
		g := everybody(n)
		peers(t, eps, func(e transport.PeerMemory) error {
			random := rand.New(rand.NewPCG(uint64(e.Rank()), 3))
			for seq := range s.few(100) {
				tardy(random)
				if err := g.meeting(e, size, seq, seq%3); err != nil {
					return fmt.Errorf("meeting %d: %w", seq, err)
				}
			}
			return nil
		})
	})
}

func (s *suite) gather(t *testing.T) {
	s.replicas(t, []int{1, 2, 3, 8}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		g := everybody(n)
		limit := eps[0].(transport.PeerMemory).SmallLimit()
		peers(t, eps, func(e transport.PeerMemory) error {
			random := rand.New(rand.NewPCG(uint64(e.Rank()), 4))
			seq := 0
			for _, size := range []int{0, 1, 8, 9, 100, limit} {
				for i := range s.few(200) {
					tardy(random)
					var c transport.Combiner
					silent := uint(0)
					switch i % 4 {
					case 0:
						c = combine{}
					case 1: // of some members only
						if (e.Rank()+i/4)%2 == 0 {
							c = combine{}
						}
					case 2:
						silent = uint(i)
					}
					if err := g.gathering(e, size, seq, silent, c); err != nil {
						return fmt.Errorf("gathering %d of %d bytes: %w", i, size, err)
					}
					seq++
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
		peers(t, eps, func(e transport.PeerMemory) error {
			me := e.Rank()
			random := rand.New(rand.NewPCG(uint64(me), 5))
			for seq := range s.few(100) {
				tardy(random)
				half := halves[me%2]
				for range me%2 + 1 { // the one group is twice as busy as the other
					if err := half.meeting(e, 5000, seq, 1); err != nil {
						return fmt.Errorf("half, meeting %d: %w", seq, err)
					}
					if err := half.gathering(e, 20, seq, 0, combine{}); err != nil {
						return fmt.Errorf("half, gathering %d: %w", seq, err)
					}
				}
				if seq%10 == 0 {
					if err := whole.meeting(e, 100, seq, 0); err != nil {
						return fmt.Errorf("all, meeting %d: %w", seq, err)
					}
				}
			}
			return nil
		})
	})
}

// mixed runs random sequences of all operations.
func (s *suite) mixed(t *testing.T) {
	for seed := range s.few(20) {
		n := 2 + seed%7
		t.Run(fmt.Sprintf("seed=%d/n=%d", seed, n), func(t *testing.T) {
			eps := s.connect(t, n)
			g := everybody(n)
			peers(t, eps, func(e transport.PeerMemory) error {
				plan, own := rand.New(rand.NewPCG(uint64(seed), 6)), rand.New(rand.NewPCG(uint64(e.Rank()), uint64(seed)))
				for seq := range 200 {
					size := []int{0, 1, 8, 9, 64, 4000}[plan.IntN(6)]
					what, k := plan.IntN(6), plan.IntN(3)
					tardy(own)
					var err error
					switch what {
					case 0:
						err = shift(e, seq, k)
					case 1:
						err = g.meeting(e, size, seq, k)
					case 2:
						err = g.gathering(e, size, seq, uint(k), nil)
					case 3:
						err = g.sharing(e, size, seq)
					case 4: // several, so that some run ahead
						for i := range 50 * k {
							if err = g.broadcasting(e, size, 1000*(seq+1)+i, plan.IntN(n)); err != nil {
								break
							}
						}
					default:
						err = g.gathering(e, size, seq, 0, combine{})
					}
					if err != nil {
						return fmt.Errorf("operation %d: %w", seq, err)
					}
				}
				return nil
			})
		})
	}
}
