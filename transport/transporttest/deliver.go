package transporttest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/transport"
)

var (
	smallSizes = []int{0, 1, 63, 64, 65, 4096, 65537}
	allSizes   = append(smallSizes[:len(smallSizes):len(smallSizes)], large)
)

// mail is a round of messages of a replica, whose bytes say where they come from, whereto, and of which round they are.
type mail struct {
	me, round int
	batch     []transport.Transfer
	origins   []origin // of the transfers
}

func (m *mail) send(to, tag, size int) {
	o := origin{m.me, to, tag, m.round}
	m.batch, m.origins = append(m.batch, send(to, tag, made(size, o))), append(m.origins, o)
}

func (m *mail) recv(from, tag, size int) {
	o := origin{from, m.me, tag, m.round}
	m.batch, m.origins = append(m.batch, recv(from, tag, make([]byte, size))), append(m.origins, o)
}

// both sends to a replica and receives from it.
func (m *mail) both(with, tag, size int) {
	m.recv(with, tag, size)
	m.send(with, tag, size)
}

func (m *mail) shuffle(random *rand.Rand) {
	random.Shuffle(len(m.batch), func(i, j int) {
		m.batch[i], m.batch[j] = m.batch[j], m.batch[i]
		m.origins[i], m.origins[j] = m.origins[j], m.origins[i]
	})
}

// exchange checks what has come, and that what was sent is as it was. Then the buffers are spoiled.
func (m *mail) exchange(e transport.Endpoint, c transport.Call) error {
	defer scribbleBatch(m.batch)
	if err := e.Exchange(background, c, m.batch); err != nil {
		return err
	}
	for i, x := range m.batch {
		what := fmt.Sprintf("%v, peer %d, tag %d, round %d", x.Kind, x.Peer, x.Tag, m.round)
		if err := same(what, x.Buf, made(len(x.Buf), m.origins[i])); err != nil {
			return err
		}
	}
	return nil
}

// posts has every replica go through some rounds, with the mail that pack has it send and receive.
func (s *suite) posts(t *testing.T, n, rounds int, number func(round int) transport.Call, pack func(m *mail)) {
	t.Helper()
	all(t, s.connect(t, n), func(e transport.Endpoint) error {
		for round := range rounds {
			m := &mail{me: e.Rank(), round: round}
			pack(m)
			if err := m.exchange(e, number(round)); err != nil {
				return err
			}
		}
		return nil
	})
}

// inOneCall numbers the rounds of one call.
func inOneCall(round int) transport.Call { return call(0, round) }

// ring sends to the next replica and receives from the one before, a few rounds long.
func (s *suite) ring(t *testing.T) {
	test := func(t *testing.T, n, size int) {
		s.posts(t, n, 3, inOneCall, func(m *mail) {
			m.send((m.me+1)%n, 0, size)
			m.recv((m.me+n-1)%n, 0, size)
		})
	}
	s.sizes(t, []int{2, 3, 5, 8}, allSizes, test)
	s.sizes(t, s.many(), []int{0, 65, 4096}, test)
}

// allToAll has everybody send to everybody, the transfers of a batch in a random order.
func (s *suite) allToAll(t *testing.T) {
	test := func(t *testing.T, n, size int) { s.testTags(t, n, 1, func(int) int { return size }) }
	s.sizes(t, []int{2, 3, 5, 8}, smallSizes, test)
	s.sizes(t, s.many(), []int{65}, test)
}

// tags sends several messages between each pair in one round, which the two sides name in different orders.
func (s *suite) tags(t *testing.T) {
	cases(t, "tags", []int{2, 7, 65, 300}, func(t *testing.T, k int) {
		s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
			s.testTags(t, n, k, func(tag int) int { return 5 * tag })
		})
	})
}

// testTags has each pair exchange k messages, in a random order.
func (s *suite) testTags(t *testing.T, n, k int, size func(tag int) int) {
	s.posts(t, n, 3, inOneCall, func(m *mail) {
		for i := range n * k {
			if i/k != m.me {
				m.both(i/k, i%k, size(i%k))
			}
		}
		m.shuffle(rand.New(rand.NewPCG(uint64(m.me), uint64(m.round))))
	})
}

// fold receives and folds round a ring, with the operand apart and in place.
func (s *suite) fold(t *testing.T) {
	cases(t, "inplace", []bool{false, true}, func(t *testing.T, inPlace bool) {
		s.sizes(t, []int{2, 3, 8}, allSizes, func(t *testing.T, n, size int) { s.testFold(t, n, size, inPlace) })
	})
}

func (s *suite) testFold(t *testing.T, n, size int, inPlace bool) {
	all(t, s.connect(t, n), func(e transport.Endpoint) error {
		me, to, from := e.Rank(), (e.Rank()+1)%n, (e.Rank()+n-1)%n
		own := made(size, origin{me, me, 0, 0})
		want := slices.Clone(own)
		op(want, want, made(size, origin{from, me, 0, 0}))
		buf := own
		if !inPlace {
			buf = make([]byte, size)
		}
		out := made(size, origin{me, to, 0, 0})
		if err := e.Exchange(background, call(0, 0),
			[]transport.Transfer{recvFold(t, from, 0, buf, own), send(to, 0, out)}); err != nil {
			return err
		}
		if err := same("folded", buf, want); err != nil || inPlace {
			return err
		}
		return same("operand", own, made(size, origin{me, me, 0, 0}))
	})
}

// runAhead lets replicas be in different rounds: a pipeline, whose front may be rounds ahead of its back, and a ring in
// which each replica has rounds of its own in which it does nothing.
func (s *suite) runAhead(t *testing.T) {
	const size = 1000
	t.Run("pattern=pipeline", func(t *testing.T) { s.replicas(t, []int{2, 3, 8}, s.testPipeline) })
	t.Run("pattern=gaps", func(t *testing.T) {
		s.replicas(t, []int{3, 5}, func(t *testing.T, n int) {
			s.posts(t, n, 100, inOneCall, func(m *mail) {
				before := (m.me + n - 1) % n
				if m.round%n != m.me {
					m.send((m.me+1)%n, 0, size)
				}
				if m.round%n != before {
					m.recv(before, 0, size)
				}
			})
		})
	})
}

// testPipeline passes messages on from replica to replica, each in a round of its own.
func (s *suite) testPipeline(t *testing.T, n int) {
	all(t, s.connect(t, n), func(e transport.Endpoint) error {
		me := e.Rank()
		buf := make([]byte, 1000)
		pass := func(seq, round int, x transport.Transfer) error {
			return e.Exchange(background, call(seq, round), []transport.Transfer{x})
		}
		for seq := range 200 {
			fill(buf, origin{0, 0, 0, seq})
			if me > 0 {
				scribble(buf)
				if err := pass(seq, me-1, recv(me-1, 0, buf)); err != nil {
					return err
				}
			}
			if err := same(fmt.Sprintf("message %d", seq), buf, made(len(buf), origin{0, 0, 0, seq})); err != nil {
				return err
			}
			if me == n-1 {
				continue
			}
			if err := pass(seq, me, send(me+1, 0, buf)); err != nil {
				return err
			}
			scribble(buf) // it has been taken
		}
		return nil
	})
}

// sameRound has replicas carry out several rounds with one Call, as for a message in more segments than there are tags.
// Which round a message is of follows from the order alone.
func (s *suite) sameRound(t *testing.T) {
	s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
		s.posts(t, n, 50, func(int) transport.Call { return call(7, 3) }, func(m *mail) {
			size := 1 + m.round*37%200
			if m.me != n-1 { // a chain, so that some are ahead of others
				m.send(m.me+1, 0, size)
			}
			if m.me != 0 {
				m.recv(m.me-1, 0, size)
			}
		})
	})
}
