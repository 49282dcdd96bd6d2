package transporttest

import (
	"errors"
	"testing"

	"gogcl.dev/transport"
)

// unpaired has replicas go through one round, of which one has a transfer that the other has not, and leave: the parts
// of an all-to-all by counts differ, say. That is a mismatch that names both lengths, and not a replica that has left.
func (s *suite) unpaired(t *testing.T) {
	s.replicas(t, []int{2, 3}, func(t *testing.T, n int) {
		const size = 40
		for _, kind := range []transport.Kind{transport.Send, transport.Recv} {
			t.Run(kind.String(), func(t *testing.T) {
				eps := s.connect(t, n)
				for rank, err := range byRank(eps, each(t, eps, func(e transport.Endpoint) error {
					var batch []transport.Transfer
					if e.Rank() == 1 {
						batch = append(batch, transport.Transfer{Peer: 0, Kind: kind, Buf: make([]byte, size)})
					}
					err := e.Exchange(background, call(0, 0), batch)
					if e.Rank() > 1 { // has no part in it, and hears of it or not
						return nil
					}
					return errors.Join(err, e.Close())
				})) {
					var mismatch *transport.MismatchError
					want := transport.MismatchError{Replica: 0, Peer: 1, Mine: call(0, 0), Theirs: call(0, 0),
						TheirsBytes: size}
					if kind == transport.Recv {
						want.Replica, want.Peer, want.MineBytes, want.TheirsBytes = 1, 0, size, 0
					}
					switch {
					case rank > 1 || rank == 0 && err == nil: // replica 0 may have left before
					case !errors.As(err, &mismatch) || *mismatch != want:
						t.Errorf("replica %d: %v, want %v", rank, err, &want)
					}
				}
				each(t, eps, func(e transport.Endpoint) error { return e.Close() }) // who left before hears of it now
			})
		}
	})
}

// settles has a replica of which another has made another call, or none, ask before it leaves. Where it agrees nobody
// has an error.
func (s *suite) settles(t *testing.T) {
	other := call(0, 0)
	other.Count++
	for _, test := range []struct {
		name string
		made func(rank int) (transport.Call, bool)
		want func(rank int) bool // a mismatch
	}{
		{"all agree", func(int) (transport.Call, bool) { return call(0, 0), true }, func(int) bool { return false }},
		{"replica 0 differs", func(rank int) (transport.Call, bool) {
			if rank == 0 {
				return other, true
			}
			return call(0, 0), true
		}, func(int) bool { return true }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.replicas(t, []int{2, 3}, func(t *testing.T, n int) {
				eps := s.connect(t, n)
				for _, e := range eps {
					a, ok := e.(transport.Settler)
					if !ok {
						t.Skip("the transport offers no Settler")
					}
					a.AnswerBy(func(transport.Call) (transport.Call, bool) { return test.made(e.Rank()) })
				}
				all(t, eps, func(e transport.Endpoint) error {
					mine, _ := test.made(e.Rank())
					return e.Exchange(background, mine, nil)
				})
				s.meet(t)
				for rank, err := range byRank(eps, each(t, eps, func(e transport.Endpoint) error {
					var replicas []int
					for r := range n {
						if r != e.Rank() {
							replicas = append(replicas, r)
						}
					}
					mine, _ := test.made(e.Rank())
					return errors.Join(e.(transport.Settler).Settle(mine, replicas, patience), e.Close())
				})) {
					var mismatch *transport.MismatchError
					if errors.As(err, &mismatch) != test.want(rank) || err != nil && mismatch == nil {
						t.Errorf("replica %d: %v", rank, err)
					}
				}
			})
		})
	}
}
