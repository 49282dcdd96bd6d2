package transporttest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/transport"
)

// fields changes a call in each of its fields.
var fields = []struct {
	name   string
	change func(c *transport.Call)
}{
	{"Group", func(c *transport.Call) { c.Group ^= 1 << 63 }},
	{"Seq", func(c *transport.Call) { c.Seq++ }},
	{"Count", func(c *transport.Call) { c.Count ^= 1 << 32 }},
	{"Digest", func(c *transport.Call) { c.Digest ^= 1 }},
	{"Root", func(c *transport.Call) { c.Root ^= 1 << 31 }},
	{"Round", func(c *transport.Call) { c.Round ^= 1 << 31 }},
	{"Collective", func(c *transport.Call) { c.Collective ^= 1 << 7 }},
	{"Operator", func(c *transport.Call) { c.Operator ^= 1 << 7 }},
	{"DType", func(c *transport.Call) { c.DType ^= 1 << 7 }},
	{"Method", func(c *transport.Call) { c.Method ^= 1 << 7 }},
}

// wantMismatch checks that an error names both calls, or both lengths.
func wantMismatch(t testing.TB, rank int, err error, good, bad transport.Call, goodBytes, badBytes int) {
	t.Helper()
	var m *transport.MismatchError
	switch {
	case errors.As(err, &m):
		straight := m.Mine == good && m.Theirs == bad && m.MineBytes == goodBytes && m.TheirsBytes == badBytes
		turned := m.Mine == bad && m.Theirs == good && m.MineBytes == badBytes && m.TheirsBytes == goodBytes
		if !straight && !turned {
			t.Errorf("replica %d: the mismatch is %v, want\n%+v, %d bytes\n%+v, %d bytes",
				rank, err, good, goodBytes, bad, badBytes)
		}
	default:
		t.Errorf("replica %d: no MismatchError in %q", rank, fmt.Sprint(err))
	}
}

// callMismatch has one replica of a ring in another call. All get an error with both calls, and nobody writes what
// comes from the other camp.
func (s *suite) callMismatch(t *testing.T) {
	for _, kind := range []transport.Kind{transport.Recv, transport.RecvFold} {
		for i, f := range fields {
			sizes := []int{0, 100}
			if s.world != nil {
				sizes = sizes[i%2 : i%2+1]
			}
			for _, size := range sizes {
				t.Run(fmt.Sprintf("kind=%s/field=%s/size=%d",
					strings.ReplaceAll(kind.String(), " ", "_"), f.name, size), func(t *testing.T) {
					s.replicas(t, []int{2, 3, 5, 8}, func(t *testing.T, n int) {
						good := call(0, 0)
						bad := good
						f.change(&bad)
						s.testMismatch(t, n, kind, good, bad, size, size)
					})
				})
			}
		}
	}
}

// lengthMismatch has one replica send more or less than the next one expects.
func (s *suite) lengthMismatch(t *testing.T) {
	for _, kind := range []transport.Kind{transport.Recv, transport.RecvFold} {
		for _, size := range [][2]int{{100, 101}, {100, 99}, {0, 1}, {1, 0}, {65536, 131072}} {
			t.Run(fmt.Sprintf("kind=%s/sizes=%d,%d", strings.ReplaceAll(kind.String(), " ", "_"), size[0], size[1]),
				func(t *testing.T) {
					s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
						s.testMismatch(t, n, kind, call(0, 0), call(0, 0), size[0], size[1])
					})
				})
		}
	}
}

func (s *suite) testMismatch(t *testing.T, n int, kind transport.Kind, good, bad transport.Call, size, badSize int) {
	eps := s.connect(t, n)
	const odd = 1
	errs := each(t, eps, func(e transport.Endpoint) error {
		me, to, from := e.Rank(), (e.Rank()+1)%n, (e.Rank()+n-1)%n
		for round := 0; ; round++ {
			mine, outSize := good, size
			if me == odd {
				mine, outSize = bad, badSize
			}
			mine.Seq += uint64(round) // those who find nothing in the first round go on
			out, in, with := make([]byte, outSize), made(size, origin{9, 9, 9, 9}), make([]byte, size)
			batch := []transport.Transfer{send(to, 0, out), recv(from, 0, in)}
			if kind == transport.RecvFold {
				batch[1] = recvFold(t, from, 0, in, with)
				batch[1].Fold = func(dst, a, b []byte) {
					if me == (odd+1)%n {
						t.Errorf("replica %d folds what comes from the other camp", me)
					}
					op(dst, a, b)
				}
			}
			if err := e.Exchange(background, mine, batch); err != nil {
				apart := me == (odd+1)%n || me == odd && good != bad
				touched := apart
				if !s.has(Buffers) { // else a send may end before its receiver has looked at it
					touched = apart || me == odd || good != bad && me == (odd+n-1)%n
				}
				if touched && round > 0 {
					t.Errorf("replica %d: the round with the mismatch succeeds", me)
				}
				if apart && round == 0 {
					if err := same(fmt.Sprintf("replica %d: receive buffer after the error", me), in,
						made(size, origin{9, 9, 9, 9})); err != nil {
						t.Error(err)
					}
				}
				scribbleBatch(batch)
				return err
			}
		}
	})
	goodBytes, badBytes := 0, 0
	if good == bad {
		goodBytes, badBytes = size, badSize
	}
	for rank, err := range byRank(eps, errs) {
		wantMismatch(t, rank, err, good, bad, goodBytes, badBytes)
		wantWhere(t, rank, err)
	}
}

// noMeeting has replicas in different calls that exchange no message by which to find out.
func (s *suite) noMeeting(t *testing.T) {
	patterns := []struct {
		name   string
		change func(c *transport.Call)
		least  int
		batch  func(me, n int, odd bool) []transport.Transfer
	}{
		{"roots/kind=send", fields[4].change, 2, func(me, n int, odd bool) []transport.Transfer {
			return star(me, n, odd, true)
		}},
		{"roots/kind=recv", fields[4].change, 2, func(me, n int, odd bool) []transport.Transfer {
			return star(me, n, odd, false)
		}},
		{"directions", fields[9].change, 4, func(me, n int, odd bool) []transport.Transfer {
			to, from := (me+1)%n, (me+n-1)%n
			if odd {
				to, from = from, to
			}
			return []transport.Transfer{send(to, 0, make([]byte, 100)), recv(from, 0, make([]byte, 100))}
		}},
		{"all wait", fields[7].change, 2, func(me, n int, odd bool) []transport.Transfer {
			return []transport.Transfer{recv((me+1)%n, 0, make([]byte, 100))}
		}},
	}
	for _, p := range patterns {
		t.Run("pattern="+p.name, func(t *testing.T) {
			s.replicas(t, []int{2, 3, 5, 8}, func(t *testing.T, n int) {
				if n < p.least {
					t.Skipf("they meet when there are fewer than %d", p.least)
				}
				good := call(0, 0)
				bad := good
				p.change(&bad)
				eps := s.connect(t, n)
				errs := each(t, eps, func(e transport.Endpoint) error {
					odd := e.Rank() == n-1
					for round := 0; ; round++ {
						mine := good
						if odd {
							mine = bad
						}
						mine.Seq += uint64(round)
						batch := p.batch(e.Rank(), n, odd)
						err := e.Exchange(background, mine, batch)
						scribbleBatch(batch)
						if err != nil {
							return err
						}
					}
				})
				for rank, err := range byRank(eps, errs) {
					wantMismatch(t, rank, err, good, bad, 0, 0)
					wantWhere(t, rank, err)
				}
			})
		})
	}
}

// star is a round in which one root sends to all or receives from all: replica 0, but the odd replica believes in
// itself.
func star(me, n int, odd, down bool) (batch []transport.Transfer) {
	if me > 0 && !odd {
		if down {
			return []transport.Transfer{recv(0, 0, make([]byte, 100))}
		}
		return []transport.Transfer{send(0, 0, make([]byte, 100))}
	}
	for p := range n {
		switch {
		case p == me:
		case down:
			batch = append(batch, send(p, 0, make([]byte, 100)))
		default:
			batch = append(batch, recv(p, 0, make([]byte, 100)))
		}
	}
	return batch
}
