package stream

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"gogcl.dev/transport"
)

// cutLink keeps what is sent, as long as it has room, and brings nothing.
type cutLink struct {
	scriptLink
	room int
	sent []byte
}

func (l *cutLink) Send(head, body, tail []byte) (int, error) {
	b := slices.Concat(head, body, tail)
	b = b[:min(len(b), l.room-len(l.sent))]
	l.sent = append(l.sent, b...)
	return len(b), nil
}

// partHost keeps what it tells replica 1.
type partHost struct {
	loneHost
	words [][]byte
}

func (h *partHost) Tell(to int, message []byte) {
	if to == 1 {
		h.words = append(h.words, slices.Clone(message))
	}
}

// TestLeftWithinMessage closes a lane whose link has taken a message in part. The receiver hears of the abort before it
// hears that the sender leaves, whatever that has sent: so it does not wait for the rest, which is never sent.
func TestLeftWithinMessage(t *testing.T) {
	small := frameAlign + 8 + pad(8)
	for name, test := range map[string]struct {
		lengths []int
		room    int
	}{
		"nothing is taken":         {[]int{8}, 0},
		"in a header":              {[]int{8}, frameAlign / 2},
		"in a payload":             {[]int{100_000}, 50_000},
		"in the first of several":  {[]int{8, 8, 8}, small - 1},
		"at a bound of several":    {[]int{8, 8, 8}, small},
		"in the second of several": {[]int{8, 8, 8}, small + 1},
		"in a long one after one":  {[]int{8, 100_000}, small + 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := &partHost{}
				n, l, err := NewNode(Config{Rank: 0, Size: 3, Host: host})
				if err != nil {
					t.Fatal(err)
				}
				link := &cutLink{room: test.room}
				n.Attach(1, rootLane, link)
				var sends []transport.Transfer
				for tag, length := range test.lengths {
					sends = append(sends, transport.Transfer{Kind: transport.Send, Peer: 1, Tag: uint32(tag),
						Buf: payloadOf(tag, length)})
				}
				done := make(chan error)
				go func() { done <- l.Exchange(t.Context(), hostileCall, sends) }()
				synctest.Wait()
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				if err := <-done; !errors.As(err, new(*transport.ClosedError)) {
					t.Errorf("the sender gets %v", err)
				}

				n, l, _ = loneNode(t, 1)
				n.Attach(0, rootLane, &scriptLink{bytes: link.sent, some: 1000, ends: true})
				for i, word := range host.words {
					if first := word[0] == aborted; first != (i == 0) {
						t.Errorf("word %d of %d is of kind %d: want the abort, and then others", i, len(host.words), word[0])
					}
					if err := n.Handle(0, word); err != nil {
						t.Fatal(err)
					}
				}
				got := make([]byte, test.lengths[0])
				receive := []transport.Transfer{{Kind: transport.Recv, Peer: 0, Buf: got}}
				err = l.Exchange(t.Context(), hostileCall, receive)
				var closed *transport.ClosedError
				if !errors.As(err, &closed) || closed.Replica != 0 {
					t.Errorf("the receiver gets %v", err)
				}
				l.Close()
			})
		})
	}
}
