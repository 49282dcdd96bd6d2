package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/transport"
)

// quiet is Config.Silence in the tests below, by the clock of a bubble.
const quiet = 8 * time.Second

// latest is how long it may take until a lane finds a silent link: it asks four times in Config.Silence, and looks a
// last time after an eighth of it.
const latest = quiet + quiet/4 + quiet/8 + time.Second

// holeLink is a ringLink of which bytes are lost on the way: those from byte from on, before byte to.
type holeLink struct {
	ringLink
	from, to, at int
}

func (l *holeLink) Send(head, body, tail []byte) (n int, err error) {
	for _, b := range [][]byte{head, body, tail} {
		for i := range b {
			if l.at < l.from || l.at >= l.to {
				if k, err := l.ringLink.Send(b[i:i+1], nil, nil); k == 0 {
					return n, err
				}
			}
			l.at++
			n++
		}
	}
	return n, nil
}

// openHoles connects two nodes by rings, of which that from replica 0 and that from replica 1 have holes.
func openHoles(t *testing.T, holes [2][2]int) []transport.Endpoint {
	var rings []*ring // those that replica 0 and replica 1 write
	eps := openHosts(t, 2, 16<<10, false, 0, func(l *ringLink) Link {
		side := 1 // Connect makes that of the replica with the greater number first
		if len(rings) > 0 {
			side = 0
		}
		rings = append(rings, l.out)
		return &holeLink{ringLink: *l, from: holes[side][0], to: holes[side][1]}
	}, nil)
	for _, e := range eps {
		e.(*Lane).node.Silence = quiet
	}
	return eps
}

// TestSilentLink: bytes that do not arrive, in one direction or in both, from the first on or in the middle, are an
// error at the replica that waits for them, within Silence and what it takes to ask. It names the other replica, the
// connection and the time. The other replica is told.
func TestSilentLink(t *testing.T) {
	all := [2]int{0, math.MaxInt}
	none := [2]int{}
	for name, test := range map[string]struct {
		holes [2][2]int
		round func(t *testing.T, e transport.Endpoint) error
		finds int // the replica that waits to read; -1: either
	}{
		"from 0":                  {[2][2]int{all, none}, swap, 1},
		"from 1":                  {[2][2]int{none, all}, swap, 0},
		"both":                    {[2][2]int{all, all}, swap, -1},
		"in a header":             {[2][2]int{{10, math.MaxInt}, none}, swap, 1},
		"in a payload":            {[2][2]int{{300, math.MaxInt}, none}, swap, 1},
		"the last 195 bytes":      {[2][2]int{{1088 - 195, 1088}, none}, swap, 1},
		"what fills up a message": {[2][2]int{{1088 - 20, 1088}, none}, swap, 1},
		"credit":                  {[2][2]int{none, all}, oneDirection, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				eps := openHoles(t, test.holes)
				began := time.Now()
				var errs [2]error
				done := make(chan bool)
				for i, e := range eps {
					go func() {
						errs[i] = test.round(t, e)
						done <- true
					}()
				}
				<-done
				<-done
				took := time.Since(began)
				found := 0
				for i, err := range errs {
					var lost *transport.LostError
					if !errors.As(err, &lost) {
						t.Fatalf("replica %d: %v, want a LostError", i, err)
					}
					var aborted *transport.AbortError
					if errors.As(err, &aborted) && aborted.Replica != i {
						continue
					}
					found++
					if test.finds >= 0 && i != test.finds || lost.Replica != 1-i ||
						!strings.Contains(err.Error(), "(one end to another)") {
						t.Errorf("replica %d: %v", i, err)
					}
				}
				if found == 0 || took < quiet || took > latest {
					t.Errorf("%d find it after %v: %v", found, took, errs)
				}
				for _, e := range eps {
					e.Close()
				}
			})
		})
	}
}

// swap sends 1000 bytes to the other replica of two and receives as many.
func swap(t *testing.T, e transport.Endpoint) error {
	err := e.Exchange(context.Background(), hostileCall, append(one(e, transport.Send, make([]byte, 1000)),
		one(e, transport.Recv, make([]byte, 1000))...))
	return orLater(e, err)
}

// orLater is err, or where that is nil what the endpoint is aborted with.
func orLater(e transport.Endpoint, err error) error {
	if err != nil {
		return err
	}
	<-e.Done()
	return e.Err()
}

// oneDirection sends one message more from replica 0 to replica 1 than may be unread. Replica 1, which reads the
// others, is in no call when its credit is missed, so that no probe asks for it.
func oneDirection(t *testing.T, e transport.Endpoint) (err error) {
	kind, messages := transport.Send, transport.MaxUnread+1
	if e.Rank() == 1 {
		kind, messages = transport.Recv, transport.MaxUnread
	}
	for k := 0; k < messages && err == nil; k++ {
		call := transport.Call{Group: 1, Seq: uint64(k + 1)}
		err = e.Exchange(context.Background(), call, one(e, kind, make([]byte, 8)))
	}
	return orLater(e, err)
}

// listener is replica 0 of a loneNode that waits for a message of replica 1, over a link of two rings.
func listener(t *testing.T) (h *loneHost, in *ring, l *Lane, link *ringLink, done chan error) {
	n, l, h := loneNode(t, 0)
	n.Silence = quiet
	in = &ring{bytes: aligned(1 << 10)}
	link = &ringLink{in, &ring{bytes: aligned(1 << 10)}}
	return h, in, l, link, make(chan error, 1)
}

// wait begins the receive of listener.
func (l *Lane) receiveInto(done chan error, link Link) {
	l.node.Attach(1, rootLane, link)
	go func() {
		done <- l.Exchange(context.Background(), hostileCall,
			[]transport.Transfer{{Kind: transport.Recv, Peer: 1, Buf: make([]byte, plainBytes)}})
	}()
}

// TestSlowLink: a link over which a byte comes now and then, each before Silence is over, is alive.
func TestSlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, in, l, link, done := listener(t)
		all := message(frame{call: hostileCall, length: plainBytes}, payloadOf(0, plainBytes))
		h.sent = uint64(len(all))
		l.receiveInto(done, link)
		for i := range all {
			time.Sleep(quiet * 9 / 10)
			in.put(all[i : i+1])
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.Close()
	})
}

// recordLink is a ringLink that gives out what has come when all of it has, as TLS does with a record.
type recordLink struct {
	ringLink
	length int
}

func (l *recordLink) whole() bool {
	bytes, _ := l.ringLink.Come()
	return int(bytes) >= l.length
}

func (l *recordLink) Peek(n int) ([]byte, error) {
	if !l.whole() {
		return nil, nil
	}
	return l.ringLink.Peek(n)
}

func (l *recordLink) Come() (bytes, moved uint64) {
	bytes, moved = l.ringLink.Come()
	if !l.whole() {
		bytes = 0
	}
	return bytes, moved
}

// TestSlowRecord: so is one that brings the bytes of a record now and then.
func TestSlowRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, in, l, link, done := listener(t)
		all := message(frame{call: hostileCall, length: plainBytes}, payloadOf(0, plainBytes))
		h.sent = uint64(len(all))
		l.receiveInto(done, &recordLink{*link, len(all)})
		for i := range all {
			time.Sleep(quiet * 9 / 10)
			in.put(all[i : i+1])
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.Close()
	})
}

// TestComputingPeer: a replica that has sent nothing more is not lost, however long it takes.
func TestComputingPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, in, l, link, done := listener(t)
		begin := message(frame{call: hostileCall, length: plainBytes}, payloadOf(0, plainBytes))
		in.put(begin[:100])
		h.sent = 100
		l.receiveInto(done, link)
		time.Sleep(100 * quiet)
		in.put(begin[100:])
		if err := <-done; err != nil {
			t.Error(err)
		}
		if h.told < 100 {
			t.Errorf("%d inquiries", h.told)
		}
		l.Close()
	})
}

// stoppedLink is a ringLink whose process is stopped after a look at it, for longer than Silence, while the rest comes.
// Like a socket it does not know of what it has not looked at.
type stoppedLink struct {
	ringLink
	known uint64
	rest  []byte
	at    time.Time // it is stopped at the first look after that
}

func (l *stoppedLink) Peek(n int) ([]byte, error) {
	b, err := l.ringLink.Peek(n)
	l.known, _ = l.ringLink.Come()
	if len(l.rest) > 0 && time.Now().After(l.at) {
		time.Sleep(3 * quiet)
		l.ringLink.in.put(l.rest)
		l.rest = nil
	}
	return b, err
}

func (l *stoppedLink) Come() (bytes, moved uint64) { return l.known, l.known }

// TestStoppedReader: a replica that was stopped itself takes what has come meanwhile before it judges.
func TestStoppedReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, in, l, link, done := listener(t)
		all := message(frame{call: hostileCall, length: plainBytes}, payloadOf(0, plainBytes))
		h.sent = uint64(len(all))
		in.put(all[:10])
		l.receiveInto(done, &stoppedLink{ringLink: *link, rest: all[10:], at: time.Now().Add(quiet / 2)})
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.Close()
	})
}

// TestSilentAfterLeaving: a replica that has left, and so answers nothing, has said how many messages it has sent.
func TestSilentAfterLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, l, link, done := listener(t)
		h.held = [][]byte{}
		l.receiveInto(done, link)
		if err := l.node.Handle(1, leftMessage(1)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var lost *transport.LostError
		if err := <-done; !errors.As(err, &lost) || lost.Replica != 1 || time.Since(began) > latest {
			t.Errorf("after %v: %v, want that replica 1 is lost", time.Since(began), err)
		}
		l.Close()
	})
}

// TestEndedLink: what a replica has said before it ended a link comes before its answer, and is why. An answer alone
// says that only the link is lost, at once. An answer to what was asked before says nothing.
func TestEndedLink(t *testing.T) {
	cause := errors.New("gives up")
	abort := appendAbort(nil, &transport.AbortError{Replica: 2, Cause: cause})
	answers := func(number uint32) []byte {
		return append(binary.LittleEndian.AppendUint32(appendLane(nil, answer, rootLane), number), make([]byte, 8)...)
	}
	isLost := func(err error) bool {
		var lost *transport.LostError
		return errors.As(err, &lost) && lost.Replica == 1 && strings.Contains(err.Error(), "(one end to another)")
	}
	for name, test := range map[string]struct {
		before  [][]byte // said while the answer is on its way
		waits   bool     // for the answer, after that
		isRight func(error) bool
	}{
		"nothing":                 {nil, true, isLost},
		"an old answer":           {[][]byte{answers(0), answers(math.MaxUint32)}, true, isLost},
		"abort":                   {[][]byte{abort}, false, func(err error) bool { return errors.As(err, new(*transport.AbortError)) }},
		"left":                    {[][]byte{leftMessage(0)}, false, func(err error) bool { return errors.As(err, new(*transport.ClosedError)) }},
		"left, and more was sent": {[][]byte{leftMessage(1)}, false, isLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, in, l, link, done := listener(t)
				h.held = [][]byte{}
				in.closed = true
				began := time.Now()
				l.receiveInto(done, link)
				synctest.Wait()
				for _, m := range test.before {
					if err := l.node.Handle(1, m); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				if test.waits {
					select {
					case err := <-done:
						t.Fatalf("without an answer: %v", err)
					default:
					}
					h.answer(1, h.held[0])
				}
				if err := <-done; !test.isRight(err) {
					t.Error(err)
				}
				if took := time.Since(began); took > 0 {
					t.Errorf("it took %v", took)
				}
				l.Close()
			})
		})
	}
}

// TestInquiries: an inquiry is answered whatever the replica does, also about a lane that it has not opened. Those that
// make no sense are refused.
func TestInquiries(t *testing.T) {
	eps := openRings(t, 2, 16<<10, false)
	if err := eps[0].Exchange(t.Context(), hostileCall, one(eps[0], transport.Send, make([]byte, 8))); err != nil {
		t.Fatal(err)
	}
	asks := eps[1].(*Lane)
	asks.inquire(0)
	for asks.peers[0].answered.Load() < 1 {
		runtime.Gosched()
	}
	if got := asks.peers[0].theirs.Load(); got != 2*frameAlign {
		t.Errorf("the answer is %d bytes, want %d", got, 2*frameAlign)
	}
	h := &deafHost{told: make([][]byte, 2)}
	n, l, err := NewNode(Config{Rank: 0, Size: 2, Host: h})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Handle(1, append(appendLane(nil, inquiry, 99), 1, 0, 0, 0)); err != nil || len(h.told[1]) != 1 ||
		h.told[1][0] != answer {
		t.Errorf("%v, told %v", err, h.told[1])
	}
	for _, m := range [][]byte{appendLane(nil, inquiry, rootLane), appendLane(nil, answer, rootLane),
		append(appendLane(nil, inquiry, rootLane), make([]byte, 5)...),
		append(appendLane(nil, answer, rootLane), make([]byte, 13)...)} {
		if err := n.Handle(1, m); err == nil {
			t.Errorf("% x makes sense", m)
		}
	}
	// A lane that is being closed has yet to say so, and may have ended a link already that came too late.
	d := dup(t, l).(*Lane)
	for _, closing := range []struct {
		lane uint64
		by   func()
	}{{d.number, func() { d.closed.Store(true) }}, {99, func() { n.closed = true }}} {
		closing.by()
		if err := n.Handle(1, append(appendLane(nil, inquiry, closing.lane), 2, 0, 0, 0)); err != nil ||
			len(h.told[1]) != 1 {
			t.Errorf("lane %d: %v, told %v", closing.lane, err, h.told[1])
		}
	}
	n.closed = false
	d.closed.Store(false)
	l.Close()
	for _, e := range eps {
		e.Abort(errors.New("seen enough"))
		e.Close()
	}
}
