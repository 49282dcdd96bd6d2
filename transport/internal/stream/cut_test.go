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

// partHost keeps the last message.
type partHost struct {
	loneHost
	last []byte
}

func (h *partHost) Tell(to int, message []byte) {
	if to == 1 {
		h.last = slices.Clone(message)
	}
}

// TestLeftWithinMessage closes a lane whose link has taken a message in part. The receiver gets the messages before it,
// and hears at once that the sender is closed: it does not wait for the rest, which is never sent.
func TestLeftWithinMessage(t *testing.T) {
	small := frameAlign + 8 + pad(8)
	for name, test := range map[string]struct {
		lengths []int
		room    int
		whole   int // messages that the link has taken to their ends
	}{
		"nothing is taken":         {[]int{8}, 0, 0},
		"in a header":              {[]int{8}, frameAlign / 2, 0},
		"in a payload":             {[]int{100_000}, 50_000, 0},
		"in the first of several":  {[]int{8, 8, 8}, small - 1, 0},
		"at a bound of several":    {[]int{8, 8, 8}, small, 1},
		"in the second of several": {[]int{8, 8, 8}, small + 1, 1},
		"in the last of several":   {[]int{8, 8, 8}, 3*small - 1, 2},
		"in a long one after one":  {[]int{8, 100_000}, small + 50_000, 1},
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
				if err := n.Handle(0, host.last); err != nil {
					t.Fatal(err)
				}
				if sent := l.peers[0].left.Load().sent; sent != uint64(test.whole) {
					t.Errorf("the sender says that it has sent %d messages, want %d", sent, test.whole)
				}
				for tag, length := range test.lengths[:test.whole+1] {
					got := make([]byte, length)
					err := l.Exchange(t.Context(), hostileCall, []transport.Transfer{{Kind: transport.Recv, Peer: 0,
						Tag: uint32(tag), Buf: got}})
					if closed := errors.As(err, new(*transport.ClosedError)); closed != (tag == test.whole) {
						t.Errorf("message %d of %d: %v", tag, len(test.lengths), err)
					}
					if err == nil && !slices.Equal(got, payloadOf(tag, length)) {
						t.Errorf("message %d arrives changed", tag)
					}
				}
				l.Close()
			})
		})
	}
}
