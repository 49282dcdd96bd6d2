package stream

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/transport"
)

// oneWay has replica 0 send so many messages to replica 1, each in a call of its own, which checks their order.
func oneWay(t *testing.T, eps []transport.Endpoint, seq uint64, messages int) {
	t.Helper()
	sent := make(chan error)
	go func() {
		buf := make([]byte, 8)
		for i := range uint64(messages) {
			binary.LittleEndian.PutUint64(buf, i)
			call := transport.Call{Group: 1, Seq: seq + i}
			if err := eps[0].Exchange(t.Context(), call, one(eps[0], transport.Send, buf)); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	buf := make([]byte, 8)
	for i := range uint64(messages) {
		call := transport.Call{Group: 1, Seq: seq + i}
		if err := eps[1].Exchange(t.Context(), call, one(eps[1], transport.Recv, buf)); err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint64(buf); got != i {
			t.Fatalf("message %d is %d", i, got)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// TestCreditByLink: messages go one way as long as they like though no control message comes through.
func TestCreditByLink(t *testing.T) {
	for _, size := range []int{16 << 10, 3 * frameAlign} {
		through := make(chan struct{})
		eps := openRingsHeld(t, 2, size, func(int, int) { <-through })
		oneWay(t, eps, 1, 20*transport.MaxUnread)
		close(through)
		closeTogether(t, eps)
	}
}

// TestCreditBehindMessage: a replica that is out of credit finds a message in front of it that it does not read yet. It
// gets credit all the same, asks for that once, and does not have to be probed for it.
func TestCreditBehindMessage(t *testing.T) {
	var told [2]atomic.Int64 // by sender
	eps := openRingsHeld(t, 2, 16<<10, func(from, _ int) { told[from].Add(1) })
	ahead := transport.Call{Group: 2, Seq: 1}
	word := []byte("12345678")
	oneWay(t, eps, 1, 1) // so that there is a link
	if err := eps[1].Exchange(t.Context(), ahead, one(eps[1], transport.Send, word)); err != nil {
		t.Fatal(err)
	}
	const rounds = 8
	oneWay(t, eps, 2, rounds*transport.MaxUnread)
	if p := &eps[1].(*Lane).peers[0]; !p.blind.Load() {
		t.Error("replica 1 does not know that its credit is not seen")
	}
	got := make([]byte, 8)
	if err := eps[0].Exchange(t.Context(), ahead, one(eps[0], transport.Recv, got)); err != nil {
		t.Fatal(err)
	}
	if string(got) != string(word) {
		t.Errorf("got %q", got)
	}
	if n := told[1].Load(); n < rounds {
		t.Errorf("%d control messages of replica 1, want credit for %d messages", n, rounds*transport.MaxUnread)
	}
	closeTogether(t, eps)
}

// TestCreditByHeaders: where messages go both ways their headers give all the credit there is to give.
func TestCreditByHeaders(t *testing.T) {
	eps := openRings(t, 2, 16<<10, false)
	oneWay(t, eps, 1, 1) // so that there is a link
	var sends atomic.Int64
	p := &eps[1].(*Lane).peers[0]
	p.link.Store(&linkBox{countLink{p.link.Load().Link.(*ringLink), &sends}})
	const rounds = 4 * transport.MaxUnread
	done := make(chan error)
	for _, e := range eps {
		go func() {
			var err error
			for i := 0; i < rounds && err == nil; i++ {
				call := transport.Call{Group: 2, Seq: uint64(i + 1)}
				err = e.Exchange(t.Context(), call, append(one(e, transport.Send, make([]byte, 8)),
					one(e, transport.Recv, make([]byte, 8))...))
			}
			done <- err
		}()
	}
	for range eps {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if n := sends.Load(); n != rounds {
		t.Errorf("%d writes for %d messages", n, rounds)
	}
	closeTogether(t, eps)
}

// TestCreditGoesForward: credit that was overtaken takes nothing back, and there is none for what was not sent.
func TestCreditGoesForward(t *testing.T) {
	n, l, _ := loneNode(t, 0)
	n.Attach(1, rootLane, &scriptLink{})
	const sent = 5
	for i := range uint64(sent) {
		call := transport.Call{Group: 1, Seq: i + 1}
		if err := l.Exchange(t.Context(), call, one(l, transport.Send, make([]byte, 8))); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		read, want uint64
		good       bool
	}{{2, 2, true}, {4, 4, true}, {3, 4, true}, {sent + 1, 4, false}, {sent, sent, true}} {
		err := n.Handle(1, binary.LittleEndian.AppendUint64(appendLane(nil, credit, rootLane), test.read))
		if acked := l.peers[1].acked.Load(); acked != test.want || (err == nil) != test.good {
			t.Errorf("credit for %d: %d messages count as read, want %d; %v", test.read, acked, test.want, err)
		}
	}
	l.Close()
}

// TestCreditForTheFirst: a replica that has read a few of many messages, and reads the others later, has made room for
// as many more, even if it is blocked itself by what comes behind those.
func TestCreditForTheFirst(t *testing.T) {
	eps := openRings(t, 3, 16<<10, false)
	const few, all = 10, transport.MaxUnread + 5
	word := make([]byte, 8)
	say := func(rank int, kind transport.Kind, peer int, seq uint64) error {
		return eps[rank].Exchange(t.Context(), transport.Call{Group: uint64(rank + peer), Seq: seq},
			[]transport.Transfer{{Kind: kind, Peer: peer, Buf: word[:0]}})
	}
	done := make(chan error)
	go func() {
		var err error
		for i := uint64(0); i < all && err == nil; i++ {
			err = say(0, transport.Send, 1, i+1)
		}
		done <- errors.Join(err, say(0, transport.Send, 2, 1))
	}()
	go func() { done <- errors.Join(say(2, transport.Recv, 0, 1), say(2, transport.Send, 1, 1)) }()
	go func() {
		var err error
		for i := uint64(0); i < all && err == nil; i++ {
			if i == few {
				err = say(1, transport.Recv, 2, 1)
			}
			err = errors.Join(err, say(1, transport.Recv, 0, i+1))
		}
		done <- err
	}()
	for range eps {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	closeTogether(t, eps)
}

// stuckLink takes so many bytes, and then no more until it is let go.
type stuckLink struct {
	*ringLink
	room *atomic.Int64
}

func (l stuckLink) Send(head, body, tail []byte) (int, error) {
	var n int
	for _, b := range [][]byte{head, body, tail} {
		k, err := l.ringLink.Send(b[:min(int64(len(b)), max(l.room.Load(), 0))], nil, nil)
		l.room.Add(-int64(k))
		if n += k; err != nil || k < len(b) {
			return n, err
		}
	}
	return n, nil
}

// TestCreditInParts: a link that takes a part of a header with credit gets the rest before the next message, and
// meanwhile the peer has its credit by a control message.
func TestCreditInParts(t *testing.T) {
	for part := range int64(frameAlign) {
		eps := openRings(t, 2, 16<<10, false)
		oneWay(t, eps, 1, 1) // so that there is a link
		var room atomic.Int64
		room.Store(part)
		p := &eps[1].(*Lane).peers[0]
		p.link.Store(&linkBox{stuckLink{p.link.Load().Link.(*ringLink), &room}})
		oneWay(t, eps, 2, 3*transport.MaxUnread)
		if !p.begun || p.out != int(part) {
			t.Fatalf("with room for %d bytes the link has taken %d of a header, begun %v", part, p.out, p.begun)
		}
		room.Store(1 << 20)
		for seq := range uint64(2) {
			call := transport.Call{Group: 3, Seq: seq + 1}
			if err := eps[1].Exchange(t.Context(), call, one(eps[1], transport.Send, []byte("1234"))); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 4)
			if err := eps[0].Exchange(t.Context(), call, one(eps[0], transport.Recv, got)); err != nil {
				t.Fatal(err)
			}
			if string(got) != "1234" {
				t.Fatalf("got %q", got)
			}
		}
		oneWay(t, eps, 1000, 3*transport.MaxUnread)
		closeTogether(t, eps)
	}
}

// TestShortMessages: messages of a round that are short go to a replica as one write, whatever the link takes of it at
// a time, and none without credit.
func TestShortMessages(t *testing.T) {
	for _, checksum := range []bool{false, true} {
		eps := openRings(t, 2, 64<<10, checksum)
		oneWay(t, eps, 1, 1)
		var sends atomic.Int64
		p := &eps[0].(*Lane).peers[1]
		p.link.Store(&linkBox{countLink{p.link.Load().Link.(*ringLink), &sends}})
		sizes := []int{8, 0, 100, 64, 3000, 1, 5000, 7, 700, stageSize, 3}
		out, in := make([]transport.Transfer, len(sizes)), make([]transport.Transfer, len(sizes))
		for tag, n := range sizes {
			out[tag] = transport.Transfer{Kind: transport.Send, Peer: 1, Tag: uint32(tag), Buf: payloadOf(tag, n)}
			in[tag] = transport.Transfer{Kind: transport.Recv, Peer: 0, Tag: uint32(tag), Buf: make([]byte, n)}
		}
		call := transport.Call{Group: 2, Seq: 1}
		sent := make(chan error)
		go func() { sent <- eps[0].Exchange(t.Context(), call, out) }()
		if err := eps[1].Exchange(t.Context(), call, in); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		for tag := range sizes {
			if !bytes.Equal(in[tag].Buf, out[tag].Buf) {
				t.Errorf("checksum %v: message %d of %d bytes has come changed", checksum, tag, sizes[tag])
			}
		}
		// 8 to 1; 5000; 7 and 700; one of the stage's size, which has no room for its header; 3. The two that are not
		// on the stage take a write more for a checksum.
		want := int64(5)
		if checksum {
			want += 2
		}
		if got := sends.Load(); got != want {
			t.Errorf("checksum %v: %d writes, want %d", checksum, got, want)
		}
		closeTogether(t, eps)
	}
	eps := openRings(t, 2, 64<<10, false)
	oneWay(t, eps, 1, 1)
	p := &eps[0].(*Lane).peers[1]
	many := make([]transport.Transfer, 2*transport.MaxUnread)
	for tag := range many {
		many[tag] = transport.Transfer{Kind: transport.Send, Peer: 1, Tag: uint32(tag), Buf: make([]byte, 8)}
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { failed <- eps[0].Exchange(ctx, transport.Call{Group: 2, Seq: 1}, many) }()
	for p.sent.Load()-p.acked.Load() < transport.MaxUnread {
		runtime.Gosched()
	}
	time.Sleep(10 * time.Millisecond)
	if unread := p.sent.Load() - p.acked.Load(); unread != transport.MaxUnread {
		t.Errorf("%d messages unread, want %d at most", unread, transport.MaxUnread)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, e := range eps {
		e.Close()
	}
}

// countLink counts its Sends.
type countLink struct {
	*ringLink
	sends *atomic.Int64
}

func (l countLink) Send(head, body, tail []byte) (int, error) {
	l.sends.Add(1)
	return l.ringLink.Send(head, body, tail)
}

// creditLink brings headers with credit without end.
type creditLink struct {
	scriptLink
	header [frameAlign]byte
}

func (l *creditLink) Peek(int) ([]byte, error) { return l.header[:], nil }
func (l *creditLink) Skip(int)                 {}

// TestEndlessCredit: an Exchange ends with its context though a peer gives credit without end.
func TestEndlessCredit(t *testing.T) {
	for _, kind := range []transport.Kind{transport.Recv, transport.Send} {
		n, l, _ := loneNode(t, 0)
		link := &creditLink{}
		f := frame{flags: credits}
		f.put(link.header[:])
		n.Attach(1, rootLane, link)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		var batch []transport.Transfer
		for tag := range 2 * transport.MaxUnread {
			batch = append(batch, transport.Transfer{Kind: kind, Peer: 1, Tag: uint32(tag), Buf: make([]byte, 8)})
		}
		if err := l.Exchange(ctx, hostileCall, batch); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("kind %v: %v", kind, err)
		}
		l.Close()
	}
}

// TestCreditAmongMessages: headers of messages that the peer does not read yet, behind others, are no way to give
// credit. Both sides waited for ever.
func TestCreditAmongMessages(t *testing.T) {
	eps := openRings(t, 2, 64<<10, false)
	oneWay(t, eps, 1, 1) // so that there is a link
	word, got, ahead := make([]byte, 8), make([]byte, 8), uint64(0)
	sendAhead := func() {
		ahead++
		call := transport.Call{Group: 2, Seq: ahead}
		if err := eps[1].Exchange(t.Context(), call, one(eps[1], transport.Send, word)); err != nil {
			t.Fatal(err)
		}
	}
	sendAhead()
	const messages = 8 * transport.MaxUnread
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	sent := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < messages && err == nil; i++ {
			err = eps[0].Exchange(ctx, transport.Call{Group: 1, Seq: uint64(2 + i)}, one(eps[0], transport.Send, word))
		}
		sent <- err
	}()
	for i := range messages {
		call := transport.Call{Group: 1, Seq: uint64(2 + i)}
		if err := eps[1].Exchange(ctx, call, one(eps[1], transport.Recv, got)); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if i%15 == 14 { // before there is reason to give credit by a control message
			sendAhead()
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	for i := range ahead {
		call := transport.Call{Group: 2, Seq: i + 1}
		if err := eps[0].Exchange(ctx, call, one(eps[0], transport.Recv, got)); err != nil {
			t.Fatal(err)
		}
	}
	closeTogether(t, eps)
}

// TestCreditComesRound: a message that is read after 65,000 of the other direction says nothing of them.
func TestCreditComesRound(t *testing.T) {
	eps := openRings(t, 2, 16<<10, false)
	oneWay(t, eps, 1, 1) // so that there is a link
	word := make([]byte, 8)
	for i := range uint64(2) {
		call := transport.Call{Group: 2, Seq: 1 + i}
		if err := eps[1].Exchange(t.Context(), call, one(eps[1], transport.Send, word)); err != nil {
			t.Fatal(err)
		}
	}
	oneWay(t, eps, 2, 1<<16-20)
	for i := range uint64(2) {
		call := transport.Call{Group: 2, Seq: 1 + i}
		if err := eps[0].Exchange(t.Context(), call, one(eps[0], transport.Recv, word)); err != nil {
			t.Fatal(err)
		}
	}
	closeTogether(t, eps)
}

// TestBlindHeader: a header tells a replica nothing that does not see it in the link.
func TestBlindHeader(t *testing.T) {
	for _, blind := range []bool{false, true} {
		_, l, _ := loneNode(t, 0)
		p := &l.peers[1]
		p.read.Store(5)
		p.blind.Store(blind)
		l.beginFrame(1, &transport.Transfer{Kind: transport.Send, Peer: 1}, 0)
		if told := p.told.Load() == 5; told == blind {
			t.Errorf("blind %v: told %v", blind, told)
		}
	}
}

// TestCreditOfLower: a probe of a replica with a lower number, which is not passed on, gets credit too.
func TestCreditOfLower(t *testing.T) {
	n, l, host := loneNode(t, 2)
	l.peers[0].read.Store(5)
	l.begin(t.Context(), hostileCall, []transport.Transfer{{Kind: transport.Recv, Peer: 0, Buf: make([]byte, 8)}})
	q := appendProbe(nil, rootLane, 1, forCredit, 3)
	if err := n.Handle(0, appendStation(q, stationCall{0, hostileCall})); err != nil {
		t.Fatal(err)
	}
	told := host.told
	if err := l.follow(); err != nil {
		t.Fatal(err)
	}
	if host.told != told+1 {
		t.Errorf("%d messages, want one with credit", host.told-told)
	}
}

// TestCreditToWhoHasLeft: credit for a replica that has left, or that cannot be sent, does not take away what that
// replica has sent, which a slow fold has yet to come to.
func TestCreditToWhoHasLeft(t *testing.T) {
	for _, known := range []bool{true, false} { // that it has left, when the credit is given
		synctest.Test(t, func(t *testing.T) { creditToWhoHasLeft(t, known) }) // Close waits
	}
}

func creditToWhoHasLeft(t *testing.T, known bool) {
	eps := openHosts(t, 3, 64<<10, false, 0, nil, nil)
	from, word := dup(t, eps[0]), make([]byte, 8)
	const n = transport.MaxUnread/2 + 1
	call := func(i int) transport.Call { return transport.Call{Group: 1, Seq: uint64(i + 1)} }
	for i := range n {
		err := from.Exchange(t.Context(), call(i), []transport.Transfer{{Kind: transport.Send, Peer: 1, Buf: word}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := eps[0].Close(); err != nil {
		t.Fatal(err)
	}
	eps[1].(*Lane).node.waitGone(t, 0)
	lane := dup(t, eps[1]).(*Lane)
	p := &lane.peers[0]
	left := p.left.Load()
	if !known {
		p.left.Store(nil)
	}
	for i := range n - 1 {
		err := lane.Exchange(t.Context(), call(i), []transport.Transfer{{Kind: transport.Recv, Peer: 0, Buf: word}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if known == (p.mute.err != nil) {
		t.Errorf("known to have left %v, link %v", known, p.mute.err)
	}
	p.left.Store(left)
	other := dup(t, eps[2])
	sent := make(chan error)
	go func() {
		time.Sleep(10 * time.Millisecond)
		batch := []transport.Transfer{{Kind: transport.Send, Peer: 1, Buf: word}}
		sent <- other.Exchange(t.Context(), call(n-1), batch)
	}()
	xor := func(dst, a, b []byte) {
		for i := range dst {
			dst[i] = a[i] ^ b[i]
		}
	}
	buf := make([]byte, 8)
	err := lane.Exchange(t.Context(), call(n-1), []transport.Transfer{
		{Kind: transport.RecvFold, Peer: 2, Buf: buf, With: make([]byte, 8), Fold: xor},
		{Kind: transport.RecvFold, Peer: 0, Buf: buf, With: buf, Next: true, Fold: xor},
	})
	if err != nil {
		t.Errorf("known to have left %v: %v", known, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	closeTogether(t, eps[1:])
}

// restlessParker counts its Parks, none of which waits.
type restlessParker struct{ parks int }

func (p *restlessParker) Watch(Link) error   { return nil }
func (p *restlessParker) Park(time.Duration) { p.parks++ }
func (p *restlessParker) Wake()              {}
func (p *restlessParker) Close() error       { return nil }

// TestCreditBeforePark: a lane that wants to park and then finds credit, in what it looks at before, does not park: a
// link that has nothing more to show wakes nobody.
func TestCreditBeforePark(t *testing.T) {
	var header [frameAlign]byte
	f := frame{flags: credits, read: transport.MaxUnread / 2}
	f.put(header[:])
	for _, receives := range []bool{false, true} {
		n, l, _ := loneNode(t, 0)
		link, parker := &scriptLink{}, &restlessParker{}
		n.Attach(1, rootLane, link)
		l.parker = parker
		p := &l.peers[1]
		p.sent.Store(transport.MaxUnread)
		batch := []transport.Transfer{{Kind: transport.Send, Peer: 1, Buf: make([]byte, 8)}}
		if receives {
			batch = append(batch, transport.Transfer{Kind: transport.Recv, Peer: 1, Buf: make([]byte, 8)})
		}
		l.begin(t.Context(), hostileCall, batch)
		l.heardOf = l.events.Load()
		if moved, err := l.step(); moved || err != nil {
			t.Fatal(moved, err)
		}
		link.bytes = header[:]
		if receives {
			if moved, err := l.pull(1, link); !moved || err != nil {
				t.Errorf("credit that pull finds: moved %v, %v", moved, err)
			}
		} else if err := l.wait(); err != nil {
			t.Fatal(err)
		}
		if p.acked.Load() != transport.MaxUnread/2 {
			t.Errorf("receives %v: %d messages read, want %d", receives, p.acked.Load(), transport.MaxUnread/2)
		}
		if parker.parks > 0 {
			t.Errorf("receives %v: parked with credit", receives)
		}
	}
}
