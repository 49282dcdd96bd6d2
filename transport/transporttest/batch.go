package transporttest

import (
	"errors"
	"testing"

	"gogcl.dev/transport"
)

// badBatch has batches refused for their form, and the endpoints good afterwards.
func (s *suite) badBatch(t *testing.T) {
	eps := s.connect(t, 3)
	buf, other := made(64, origin{}), made(64, origin{})
	fold := func(dst, a, b []byte) { t.Error("a Fold of a bad batch is called") }
	bad := map[string][]transport.Transfer{ // each by its last transfer
		"own rank":          {send(0, 0, buf)},
		"negative peer":     {send(-1, 0, buf)},
		"peer out of range": {recv(3, 0, buf)},
		"tag out of range":  {{Peer: 1, Tag: transport.MaxTag + 1, Kind: transport.Send, Buf: buf}},
		"unknown kind":      {{Peer: 1, Kind: 9, Buf: buf}},
		"no fold":           {{Peer: 1, Kind: transport.RecvFold, Buf: buf, With: other}},
		"operand too short": {{Peer: 1, Kind: transport.RecvFold, Buf: buf, With: other[1:], Fold: fold}},
		"operand missing":   {{Peer: 1, Kind: transport.RecvFold, Buf: buf, Fold: fold}},
		"fold on a send":    {{Peer: 1, Kind: transport.Send, Buf: buf, Fold: fold}},
		"operand of a recv": {{Peer: 1, Kind: transport.Recv, Buf: buf, With: other}},
		"next at the front": {{Peer: 1, Kind: transport.RecvFold, Buf: buf, Fold: fold, Next: true}},
		"next on a recv": {{Peer: 1, Kind: transport.Recv, Buf: buf},
			{Peer: 2, Kind: transport.Recv, Buf: buf, Next: true}},
		"next after a send": {send(1, 0, other),
			{Peer: 2, Kind: transport.RecvFold, Buf: other, Fold: fold, Next: true}},
		"next elsewhere": {recv(1, 0, buf),
			{Peer: 2, Kind: transport.RecvFold, Buf: other, Fold: fold, Next: true}},
		"tag sent twice":     {send(1, 0, buf), send(2, 0, buf), send(1, 0, other)},
		"tag received twice": {recv(1, 70, buf), recv(1, 71, buf), recv(1, 70, other)},
	}
	if first := at(eps, 0); first != nil {
		for name, batch := range bad {
			// The good part of the batch must not go out either: the peers do not expect it.
			if name != "tag sent twice" {
				batch = append([]transport.Transfer{send(2, 9, other)}, batch...)
			}
			var refused *transport.BatchError
			if err := first.Exchange(background, call(0, 0), batch); !errors.As(err, &refused) {
				t.Errorf("%s: got %v, want a BatchError", name, err)
			} else if i, last := refused.Index, len(batch)-1; i < 0 || i > last || i != last &&
				(batch[i].Peer != batch[last].Peer || batch[i].Tag != batch[last].Tag) { // of two with one tag either
				t.Errorf("%s: transfer %d is refused, want %d", name, i, last)
			}
		}
	}
	all(t, eps, func(e transport.Endpoint) error {
		to, from := (e.Rank()+1)%3, (e.Rank()+2)%3
		in := make([]byte, 64)
		if err := e.Exchange(background, call(0, 0),
			[]transport.Transfer{send(to, 0, made(64, origin{e.Rank(), to, 0, 0})), recv(from, 0, in)}); err != nil {
			return err
		}
		return same("after the bad batches", in, made(64, origin{from, e.Rank(), 0, 0}))
	})
}
