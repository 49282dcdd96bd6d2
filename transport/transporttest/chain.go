package transporttest

import (
	"fmt"
	"testing"

	"gogcl.dev/transport"
)

// link is an operand of a fold: what arrives from a replica, or the replica's own.
type link struct {
	from, tag int
	own       bool
}

// chainOf makes the transfers that fold the links into buf in their order, and what buf must hold afterwards. own is
// the replica's operand; it may be buf when it stands first.
func chainOf(t testing.TB, me int, links []link, round int, buf, own []byte) (batch []transport.Transfer, want []byte) {
	var pending []byte // own operand that goes with the next arrival
	for i, l := range links {
		bytes := made(len(buf), origin{l.from, me, l.tag, round})
		if l.own {
			bytes = append([]byte{}, own...)
		}
		if i == 0 {
			want = bytes
		} else {
			op(want, want, bytes)
		}
		switch {
		case l.own:
			pending = own
		case len(batch) > 0:
			batch = append(batch, next(t, l.from, l.tag, buf, pending))
			pending = nil
		case i == 0:
			batch = append(batch, recv(l.from, l.tag, buf))
		default:
			batch = append(batch, recvFold(t, l.from, l.tag, buf, pending))
			pending = nil
		}
	}
	return batch, want
}

// chain folds the messages of all others into one buffer, with the replica's own operand at each place among them and
// at none, while the senders come in the wrong order, before and after the receiver.
func (s *suite) chain(t *testing.T) {
	for _, first := range []string{"receiver", "senders"} {
		t.Run("first="+first, func(t *testing.T) {
			s.sizes(t, []int{3, 5, 8}, []int{0, 1, 63, 64, 65, 4096, 65537}, func(t *testing.T, n, size int) {
				s.testChain(t, n, size, first == "receiver")
			})
		})
	}
	t.Run("everybody", func(t *testing.T) {
		s.sizes(t, []int{2, 3, 5, 8}, []int{0, 65, 40000}, s.testChains)
		s.sizes(t, s.many(), []int{65}, s.testChains)
	})
}

// testChain has replica 0 fold. The own operand cannot stand last: there is always an arrival behind it.
func (s *suite) testChain(t *testing.T, n, size int, receiverFirst bool) {
	eps := s.connect(t, n)
	round := 0
	for place := -1; place < n-1; place++ {
		for _, inPlace := range []bool{false, true} {
			if inPlace && place != 0 {
				continue
			}
			// The order of coming: a replica starts when it is its turn, and says whose turn it is next. The last of
			// the chain comes first.
			turn := func(k int) string { return fmt.Sprintf("round %d turn %d", round, k) }
			order := func(rank int) int {
				if rank == 0 {
					if receiverFirst {
						return 0
					}
					return n - 1
				}
				if receiverFirst {
					return n - rank
				}
				return n - 1 - rank
			}
			all(t, eps, func(e transport.Endpoint) error {
				me := e.Rank()
				if k := order(me); k > 0 {
					if _, err := s.board.wait(turn(k)); err != nil {
						return err
					}
				}
				s.board.post(turn(order(me)+1), "")
				if me != 0 {
					out := made(size, origin{me, 0, 0, round})
					defer scribble(out)
					return e.Exchange(background, call(0, round), []transport.Transfer{send(0, 0, out)})
				}
				var links []link
				for from := 1; from < n; from++ {
					if from-1 == place {
						links = append(links, link{own: true})
					}
					links = append(links, link{from: from})
				}
				own := made(size, origin{0, 0, 0, round})
				buf := make([]byte, size)
				if inPlace {
					buf = own
				}
				batch, want := chainOf(t, 0, links, round, buf, own)
				if err := e.Exchange(background, call(0, round), batch); err != nil {
					return err
				}
				if !inPlace {
					if err := same("operand", own, made(size, origin{0, 0, 0, round})); err != nil {
						return err
					}
				}
				return same(fmt.Sprintf("own operand at %d, in place %v", place, inPlace), buf, want)
			})
			round++
		}
	}
}

// testChains has everybody fold two chains at once, in descending order of the ranks and in ascending order, the one
// with the operand apart, the other with Next transfers whose With is Buf, which means none.
func (s *suite) testChains(t *testing.T, n, size int) {
	eps := s.connect(t, n)
	all(t, eps, func(e transport.Endpoint) error {
		me := e.Rank()
		for round := range 4 {
			var down, up []link
			var sends []transport.Transfer
			for p := range n {
				up = append(up, link{from: p, tag: 1, own: p == me})
				down = append([]link{{from: p, own: p == me}}, down...)
				if p != me {
					sends = append(sends, send(p, 0, made(size, origin{me, p, 0, round})),
						send(p, 1, made(size, origin{me, p, 1, round})))
				}
			}
			// Whose own operand would stand last has it first.
			if down[n-1].own {
				down = append(down[n-1:], down[:n-1]...)
			}
			if up[n-1].own {
				up = append(up[n-1:], up[:n-1]...)
			}
			own := made(size, origin{me, me, 0, round})
			one, two := make([]byte, size), make([]byte, size)
			first, wantOne := chainOf(t, me, down, round, one, own)
			second, wantTwo := chainOf(t, me, up, round, two, own)
			for i := range second {
				if second[i].Next && second[i].With == nil {
					second[i].With = two
				}
			}
			batch := append(append(first, sends...), second...)
			if err := e.Exchange(background, call(0, round), batch); err != nil {
				return err
			}
			if err := same("descending", one, wantOne); err != nil {
				return err
			}
			if err := same("ascending", two, wantTwo); err != nil {
				return err
			}
		}
		return nil
	})
}
