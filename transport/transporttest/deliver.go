package transporttest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gogcl.dev/transport"
)

var (
	smallSizes = []int{0, 1, 63, 64, 65, 4096, 65537}
	allSizes   = append(smallSizes[:len(smallSizes):len(smallSizes)], large)
)

// ring sends to the next replica and receives from the one before, a few rounds long.
func (s *suite) ring(t *testing.T) {
	s.sizes(t, []int{2, 3, 5, 8}, allSizes, s.testRing)
	s.sizes(t, s.many(), []int{0, 65, 4096}, s.testRing)
}

func (s *suite) testRing(t *testing.T, n, size int) {
	eps := s.connect(t, n)
	all(t, eps, func(e transport.Endpoint) error {
		me, to, from := e.Rank(), (e.Rank()+1)%n, (e.Rank()+n-1)%n
		out, in := make([]byte, size), make([]byte, size)
		for round := range 3 {
			fill(out, origin{me, to, 0, round})
			scribble(in)
			if err := e.Exchange(background, call(0, round),
				[]transport.Transfer{send(to, 0, out), recv(from, 0, in)}); err != nil {
				return err
			}
			if err := same(fmt.Sprintf("round %d", round), in, made(size, origin{from, me, 0, round})); err != nil {
				return err
			}
			if err := same("what was sent", out, made(size, origin{me, to, 0, round})); err != nil {
				return err
			}
		}
		return nil
	})
}

// allToAll has everybody send to everybody, the transfers of a batch in a random order.
func (s *suite) allToAll(t *testing.T) {
	test := func(t *testing.T, n, size int) {
		eps := s.connect(t, n)
		all(t, eps, func(e transport.Endpoint) error {
			me := e.Rank()
			random := rand.New(rand.NewPCG(uint64(me), uint64(n)))
			for round := range 3 {
				in := make([][]byte, n)
				var batch []transport.Transfer
				for p := range n {
					if p != me {
						in[p] = make([]byte, size)
						batch = append(batch, recv(p, 0, in[p]), send(p, 0, made(size, origin{me, p, 0, round})))
					}
				}
				random.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
				if err := e.Exchange(background, call(0, round), batch); err != nil {
					return err
				}
				for p := range n {
					if p == me {
						continue
					}
					if err := same(fmt.Sprintf("round %d from %d", round, p), in[p],
						made(size, origin{p, me, 0, round})); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	s.sizes(t, []int{2, 3, 5, 8}, smallSizes, test)
	s.sizes(t, s.many(), []int{65}, test)
}

// fold receives and folds round a ring, with the operand apart and in place.
func (s *suite) fold(t *testing.T) {
	for _, inPlace := range []bool{false, true} {
		t.Run(fmt.Sprintf("inplace=%v", inPlace), func(t *testing.T) {
			s.sizes(t, []int{2, 3, 8}, allSizes, func(t *testing.T, n, size int) {
				eps := s.connect(t, n)
				all(t, eps, func(e transport.Endpoint) error {
					me, to, from := e.Rank(), (e.Rank()+1)%n, (e.Rank()+n-1)%n
					own := made(size, origin{me, me, 0, 0})
					want := made(size, origin{me, me, 0, 0})
					op(want, want, made(size, origin{from, me, 0, 0}))
					buf := make([]byte, size)
					if inPlace {
						buf = own
					}
					out := made(size, origin{me, to, 0, 0})
					if err := e.Exchange(background, call(0, 0),
						[]transport.Transfer{recvFold(t, from, 0, buf, own), send(to, 0, out)}); err != nil {
						return err
					}
					if err := same("folded", buf, want); err != nil {
						return err
					}
					if inPlace {
						return nil
					}
					return same("operand", own, made(size, origin{me, me, 0, 0}))
				})
			})
		})
	}
}

// tags sends several messages between each pair in one round, which the two sides name in different orders.
func (s *suite) tags(t *testing.T) {
	for _, k := range []int{2, 7, 65, 300} {
		t.Run(fmt.Sprintf("tags=%d", k), func(t *testing.T) {
			s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
				eps := s.connect(t, n)
				all(t, eps, func(e transport.Endpoint) error {
					me := e.Rank()
					random := rand.New(rand.NewPCG(uint64(me), uint64(k)))
					for round := range 3 {
						in := map[origin][]byte{}
						var batch []transport.Transfer
						for p := range n {
							for tag := range k {
								if p != me {
									o := origin{p, me, tag, round}
									in[o] = make([]byte, 5*tag)
									batch = append(batch, recv(p, tag, in[o]),
										send(p, tag, made(5*tag, origin{me, p, tag, round})))
								}
							}
						}
						random.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
						if err := e.Exchange(background, call(0, round), batch); err != nil {
							return err
						}
						for o, buf := range in {
							if err := same(fmt.Sprint(o), buf, made(len(buf), o)); err != nil {
								return err
							}
						}
					}
					return nil
				})
			})
		})
	}
}

// runAhead lets replicas be in different rounds: a pipeline, whose front may be rounds ahead of its back, and a ring in
// which each replica has rounds of its own in which it does nothing.
func (s *suite) runAhead(t *testing.T) {
	const size = 1000
	t.Run("pattern=pipeline", func(t *testing.T) {
		s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
			eps := s.connect(t, n)
			all(t, eps, func(e transport.Endpoint) error {
				me := e.Rank()
				buf := make([]byte, size)
				for round := range 200 {
					if me == 0 {
						fill(buf, origin{0, 0, 0, round})
					} else {
						if err := e.Exchange(background, call(round, me-1),
							[]transport.Transfer{recv(me-1, 0, buf)}); err != nil {
							return err
						}
						if err := same(fmt.Sprintf("message %d", round), buf,
							made(size, origin{0, 0, 0, round})); err != nil {
							return err
						}
					}
					if me < n-1 {
						if err := e.Exchange(background, call(round, me),
							[]transport.Transfer{send(me+1, 0, buf)}); err != nil {
							return err
						}
						scribble(buf) // it has been taken
					}
				}
				return nil
			})
		})
	})
	t.Run("pattern=gaps", func(t *testing.T) {
		s.replicas(t, []int{3, 5}, func(t *testing.T, n int) {
			eps := s.connect(t, n)
			all(t, eps, func(e transport.Endpoint) error {
				me := e.Rank()
				for round := range 100 {
					var batch []transport.Transfer
					var in []byte
					if to := (me + 1) % n; round%n != me {
						batch = append(batch, send(to, 0, made(size, origin{me, to, 0, round})))
					}
					from := (me + n - 1) % n
					if round%n != from {
						in = make([]byte, size)
						batch = append(batch, recv(from, 0, in))
					}
					if err := e.Exchange(background, call(0, round), batch); err != nil {
						return err
					}
					if in != nil {
						if err := same(fmt.Sprintf("round %d", round), in,
							made(size, origin{from, me, 0, round})); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
	})
}

// sameRound has replicas carry out several rounds with one Call, as for a message in more segments than there are tags.
// Which round a message is of follows from the order alone.
func (s *suite) sameRound(t *testing.T) {
	s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		all(t, eps, func(e transport.Endpoint) error {
			me := e.Rank()
			next, before := (me+1)%n, (me+n-1)%n
			for part := range 50 {
				size := 1 + part*37%200
				in := make([]byte, size)
				out := made(size, origin{me, next, 0, part})
				var batch []transport.Transfer
				if me != n-1 { // a chain, so that some are ahead of others
					batch = append(batch, send(next, 0, out))
				}
				if me != 0 {
					batch = append(batch, recv(before, 0, in))
				}
				if err := e.Exchange(background, call(7, 3), batch); err != nil {
					return err
				}
				scribble(out)
				if me != 0 {
					if err := same(fmt.Sprintf("part %d", part), in,
						made(size, origin{before, me, 0, part})); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}
