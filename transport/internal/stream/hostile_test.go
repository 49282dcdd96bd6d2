package stream

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/transport"
)

// loneHost is a Host without anybody else. Inquiries are answered, unless the test holds the answers back: by a replica
// whose links have taken so many bytes.
type loneHost struct {
	node        *Node
	dials, told int
	sent        uint64
	held        [][]byte // inquiries, if not nil
}

func (h *loneHost) Tell(peer int, message []byte) {
	h.told++
	switch {
	case message[0] != inquiry:
	case h.held != nil:
		h.held = append(h.held, bytes.Clone(message))
	default:
		h.answer(peer, message)
	}
}

// answer answers an inquiry in a replica's place.
func (h *loneHost) answer(peer int, message []byte) {
	reply := append([]byte{answer}, message[1:]...)
	if err := h.node.Handle(peer, binary.LittleEndian.AppendUint64(reply, h.sent)); err != nil {
		panic(err)
	}
}

func (h *loneHost) Connect(int, uint64)           { h.dials++ }
func (h *loneHost) Parker(uint64) (Parker, error) { return &chanParker{make(chan struct{}, 1)}, nil }
func (h *loneHost) Leave()                        {}

// loneNode is replica rank of 3, which the test speaks to in the others' place.
func loneNode(t testing.TB, rank int) (*Node, *Lane, *loneHost) {
	h := &loneHost{}
	n, l, err := NewNode(Config{Rank: rank, Size: 3, Host: h})
	if err != nil {
		t.Fatal(err)
	}
	h.node = n
	return n, l, h
}

// scriptLink brings the bytes given, some at a time, and takes all that is sent.
type scriptLink struct {
	bytes  []byte
	some   int  // how many at a time at most, beside what Peek must show
	ends   bool // io.EOF comes after them
	closed bool
}

func (l *scriptLink) Send(head, body, tail []byte) (int, error) {
	return len(head) + len(body) + len(tail), nil
}

func (l *scriptLink) Peek(n int) ([]byte, error) {
	switch {
	case len(l.bytes) >= n:
		b := aligned(min(len(l.bytes), n+l.some))
		copy(b, l.bytes)
		return b, nil
	case l.ends:
		return nil, io.EOF
	}
	return nil, nil
}

func (l *scriptLink) Skip(n int) { l.bytes = l.bytes[n:] }

func (l *scriptLink) ReadInto(dst []byte) (int, error) {
	n := copy(dst[:min(len(dst), l.some)], l.bytes)
	l.Skip(n)
	if n == 0 && l.ends {
		return 0, io.EOF
	}
	return n, nil
}

func (l *scriptLink) Close() error { l.closed = true; return nil }

// hostileCall is the call that the tests below are in.
var hostileCall = transport.Call{Group: 7, Seq: 3, Count: 25, Digest: 99, Collective: 1, DType: 2}

// message is a whole message, with a checksum if flags say so.
func message(f frame, payload []byte) []byte {
	b := make([]byte, frameAlign)
	f.put(b)
	b = append(b, payload...)
	b = append(b, make([]byte, pad(len(payload)))...)
	if f.flags&summed != 0 {
		tail := make([]byte, frameAlign)
		binary.LittleEndian.PutUint32(tail, crc32.Checksum(payload, castagnoli))
		b = append(b, tail...)
	}
	return b
}

// payloadOf is the payload of the tests below under a tag.
func payloadOf(tag, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + tag*31 + 1)
	}
	return b
}

const (
	plainBytes = 200 // under tag 0
	foldBytes  = 300 // under tag 1
)

// hostileRound has replica 0 of 3 receive plainBytes and fold foldBytes from replica 1, whose link brings the bytes
// given. It checks that nothing is written before its header has come, and that a caller can tell the error.
func hostileRound(t *testing.T, in []byte, some int, ends bool) (err error) {
	n, l, _ := loneNode(t, 0)
	link := &scriptLink{bytes: bytes.Clone(in), some: some, ends: ends}
	n.Attach(1, rootLane, link)
	plain, folded, zeros := make([]byte, plainBytes), make([]byte, foldBytes), make([]byte, foldBytes)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = l.Exchange(ctx, hostileCall, []transport.Transfer{
		{Kind: transport.Recv, Peer: 1, Tag: 0, Buf: plain},
		{Kind: transport.RecvFold, Peer: 1, Tag: 1, Buf: folded, With: zeros, Fold: func(dst, a, b []byte) {
			for i := range dst {
				dst[i] = a[i] ^ b[i]
			}
		}},
	})
	rest := len(link.bytes) // after both messages Close looks at what nobody has read
	if cerr := l.Close(); cerr != nil && err == nil && (rest == 0 || !isHostile(cerr)) {
		t.Errorf("Close, %d bytes after the messages: %v", rest, cerr)
	}
	if !link.closed {
		t.Error("the link is not closed")
	}
	allowed := wanted(in)
	for tag, buf := range [][]byte{plain, folded} {
		if !allowed[tag] && !bytes.Equal(buf, make([]byte, len(buf))) {
			t.Errorf("tag %d was written without a header of its own", tag)
		}
	}
	if err == nil {
		if !allowed[0] || !allowed[1] {
			t.Error("the Exchange ended well without its messages")
		}
		return nil
	}
	var round *transport.RoundError
	if !errors.As(err, &round) || !isHostile(err) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a %T: %v", err, err)
	}
	return err
}

// isHostile reports whether an error says what is wrong with what a link has brought.
func isHostile(err error) bool {
	return errors.As(err, new(*transport.LostError)) || errors.As(err, new(*transport.MismatchError)) ||
		errors.As(err, new(corruptError)) || errors.As(err, new(*tagError))
}

// wanted says under which tags the bytes have a good header, as long as all before it is good: an oracle that reads
// whole messages.
func wanted(in []byte) (tags [2]bool) {
	for len(in) >= frameAlign {
		var f frame
		if f.parse(in) != nil || f.call != hostileCall || f.tag > 1 || tags[f.tag] ||
			f.length != [2]uint64{plainBytes, foldBytes}[f.tag] {
			return tags
		}
		tags[f.tag] = true
		size := frameAlign + int(f.length) + pad(int(f.length))
		if f.flags&summed != 0 {
			size += frameAlign
		}
		in = in[min(size, len(in)):]
	}
	return tags
}

// goodRound is what replica 1 should send in hostileRound.
func goodRound(flags uint8) []byte {
	f := frame{call: hostileCall, flags: flags, length: plainBytes}
	in := message(f, payloadOf(0, plainBytes))
	f.tag, f.length = 1, foldBytes
	return append(in, message(f, payloadOf(1, foldBytes))...)
}

// TestHostileLink has links bring what no replica sends.
func TestHostileLink(t *testing.T) {
	good := frame{call: hostileCall, length: plainBytes}
	payload := payloadOf(0, plainBytes)
	rest := goodRound(0)[len(message(good, payload)):]
	change := func(f func(*frame)) []byte { // all else is as it should be
		g := good
		f(&g)
		return append(message(g, payload), rest...)
	}
	other := hostileCall
	other.Seq++
	cases := map[string][]byte{
		"zeros":                 make([]byte, 1000),
		"http":                  []byte("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: something that is long enough\r\n\r\n"),
		"length=0":              change(func(f *frame) { f.length = 0 }),
		"length=1 less":         change(func(f *frame) { f.length-- }),
		"length=1 more":         change(func(f *frame) { f.length++ }),
		"length=2^31":           change(func(f *frame) { f.length = 1 << 31 }),
		"length=2^32 more":      change(func(f *frame) { f.length += 1 << 32 }),
		"length=2^63":           change(func(f *frame) { f.length = 1 << 63 }),
		"length=2^64-1":         change(func(f *frame) { f.length = math.MaxUint64 }),
		"tag=2":                 change(func(f *frame) { f.tag = 2 }),
		"tag=65535":             change(func(f *frame) { f.tag = 65535 }),
		"tag of other length":   change(func(f *frame) { f.tag = 1 }),
		"call":                  change(func(f *frame) { f.call = other }),
		"call=zero":             change(func(f *frame) { f.call = transport.Call{} }),
		"read=1":                change(func(f *frame) { f.read = 1 }), // nothing was sent
		"read=64":               change(func(f *frame) { f.read = 64 }),
		"repeated":              append(message(good, payload), message(good, payload)...),
		"checksum of a payload": nil,
	}
	sum := goodRound(summed)
	sum[frameAlign+3] ^= 1
	cases["checksum of a payload"] = sum
	version := goodRound(0)
	version[2]++
	binary.LittleEndian.PutUint32(version[crcAt:], crc32.Checksum(version[:crcAt], castagnoli))
	cases["version"] = version
	for flag := 1; flag < 256; flag *= 2 {
		if flag != summed {
			cases[fmt.Sprintf("flags=%d", flag)] = change(func(f *frame) { f.flags = uint8(flag) })
		}
	}
	for name, in := range cases {
		t.Run(name, func(t *testing.T) {
			for _, some := range []int{1, 7, 1000} {
				synctest.Test(t, func(t *testing.T) {
					err := hostileRound(t, in, some, false)
					if err == nil || errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("the error is %v", err)
					}
					if errors.As(err, new(*transport.LostError)) { // it does not wait for a word
						t.Fatalf("replica 1 counts as lost: %v", err)
					}
					if some == 1 {
						t.Log(err)
					}
				})
			}
		})
	}
}

// TestTruncated has a link end, or stall, after each byte.
func TestTruncated(t *testing.T) {
	for _, flags := range []uint8{0, summed} {
		in := goodRound(flags)
		for n := range len(in) + 1 {
			for _, ends := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					err := hostileRound(t, in[:n], 1+n%50, ends)
					var lost *transport.LostError
					switch {
					// The last fold takes what fills up its last 64 bytes; nothing else may be missing.
					case n == len(in):
						if err != nil {
							t.Fatalf("all %d bytes: %v", n, err)
						}
					case ends && (!errors.As(err, &lost) || lost.Replica != 1 || time.Since(began) > 0):
						t.Fatalf("the end after %d of %d bytes, after %v: %v", n, len(in), time.Since(began), err)
					case !ends && !errors.Is(err, context.DeadlineExceeded):
						t.Fatalf("a stall after %d of %d bytes: %v", n, len(in), err)
					}
				})
			}
		}
	}
}

// TestMutated changes single bytes of good messages that carry checksums: no change goes unseen where it matters.
func TestMutated(t *testing.T) {
	in := goodRound(summed)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range in {
		bad := bytes.Clone(in)
		bad[i] ^= byte(1 + random.IntN(255))
		synctest.Test(t, func(t *testing.T) {
			err := hostileRound(t, bad, 40, false)
			first := frameAlign + plainBytes + pad(plainBytes) + frameAlign
			at, size := i, plainBytes
			if i >= first {
				at, size = i-first, foldBytes
			}
			end := frameAlign + size + pad(size)
			matters := at < frameAlign+size || at >= end && at < end+4
			if (err != nil) != matters {
				t.Errorf("byte %d changed: %v", i, err)
			}
		})
	}
}

// FuzzLink has a link bring any bytes.
func FuzzLink(f *testing.F) {
	for _, flags := range []uint8{0, summed} {
		in := goodRound(flags)
		f.Add(in, uint8(1), false)
		f.Add(in[:len(in)-30], uint8(200), true)
		f.Add(in[:frameAlign+20], uint8(5), true)
		f.Add(append(in[:frameAlign:frameAlign], in...), uint8(64), false)
	}
	f.Fuzz(func(t *testing.T, in []byte, some uint8, ends bool) {
		if len(in) > 2000 {
			return
		}
		synctest.Test(t, func(t *testing.T) { hostileRound(t, in, int(some)+1, ends) })
	})
}

// FuzzFrame reads any bytes as a header.
func FuzzFrame(f *testing.F) {
	f.Add(goodRound(summed)[:frameAlign])
	f.Add(make([]byte, frameAlign))
	for _, flags := range []byte{credits, credits | summed} {
		f.Add([]byte{frameMagic & 0xff, frameMagic >> 8, frameVersion, flags, 0, 0, 7})
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < frameAlign {
			b = append(b, make([]byte, frameAlign-len(b))...)
		}
		// The fuzzer cannot guess the sum, so the bytes are tried with the right one too.
		summedRight := bytes.Clone(b[:frameAlign])
		binary.LittleEndian.PutUint32(summedRight[crcAt:], crc32.Checksum(summedRight[:crcAt], castagnoli))
		for _, b := range [][]byte{b[:frameAlign], summedRight} {
			var g frame
			if err := g.parse(b); err != nil {
				if g != (frame{}) {
					t.Errorf("%v, and %+v", err, g)
				}
				continue
			}
			again := make([]byte, frameAlign)
			g.put(again)
			if !bytes.Equal(b, again) {
				t.Errorf("% x is read as %+v, which is % x", b, g, again)
			}
		}
	})
}

// controlMessages are one of each kind.
func controlMessages(lane uint64) [][]byte {
	call := transport.AppendCall(nil, hostileCall)
	u64 := binary.LittleEndian.AppendUint64
	return [][]byte{
		appendAbort(nil, &transport.AbortError{Replica: 2, Cause: errors.New("no")}),
		append(u64(u64(append(appendLane(nil, left, lane), 0), 5), 0), call...),
		append(u64(u64(append(appendLane(nil, left, lane), 1), 5), 0), call...),
		append(appendLane(nil, waits, lane), call...),
		u64(appendLane(nil, credit, lane), 0),
		appendLane(nil, ask, lane),
		appendLane(nil, dial, lane),
		appendLane(nil, blind, lane),
		append(appendLane(nil, inquiry, lane), 1, 0, 0, 0),
		u64(append(appendLane(nil, answer, lane), 1, 0, 0, 0), 5),
	}
}

// FuzzHandle hands a node any control messages, from two replicas in any order. The first byte of each is its length,
// the second its replica.
func FuzzHandle(f *testing.F) {
	var all []byte
	for _, lane := range []uint64{rootLane, child(rootLane, 1), 99} {
		for _, m := range controlMessages(lane) {
			for peer := range byte(2) {
				one := append([]byte{byte(len(m)), peer}, m...)
				f.Add(one)
				if m[0] != aborted {
					all = append(all, one...)
				}
			}
		}
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, b []byte) {
		n, l, h := loneNode(t, 1)
		d, err := l.Dup(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		messages := 0
		for len(b) >= 2 {
			size, peer := int(b[0]), int(b[1]&1)*2
			b = b[2:]
			size = min(size, len(b))
			messages++
			if err := n.Handle(peer, b[:size:size]); err != nil && err.Error() == "" {
				t.Error("an error without a text")
			}
			b = b[size:]
		}
		if len(n.early) > messages || h.dials > messages || h.told > messages+4 {
			t.Errorf("%d messages leave %d entries and cause %d dials and %d answers", messages, len(n.early), h.dials,
				h.told)
		}
		if aborted := n.aborted.Load(); aborted != nil && (aborted.Cause == nil || aborted.Replica < 0 ||
			aborted.Replica > 2) {
			t.Errorf("aborted: %#v", aborted)
		}
		// Whatever was said, the lanes can be used and closed.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := d.Exchange(ctx, hostileCall, nil); err == nil {
			t.Error("an Exchange with a context that is done ended well")
		}
		l.Close()
		if len(n.early) > 0 {
			t.Error("a closed node keeps what was said of lanes")
		}
	})
}

// TestSecondLink: a lane has one link to a replica, whether it is open or not. A second one is closed at once.
func TestSecondLink(t *testing.T) {
	n, l, _ := loneNode(t, 0)
	var links []*scriptLink
	for _, lane := range []uint64{rootLane, 99} {
		for range 2 {
			links = append(links, &scriptLink{})
			n.Attach(1, lane, links[len(links)-1])
		}
	}
	for i, want := range []bool{false, true, false, true} {
		if links[i].closed != want {
			t.Errorf("link %d is closed: %v", i, !want)
		}
	}
	l.Close()
	for i := range links {
		if !links[i].closed {
			t.Errorf("link %d is left open", i)
		}
	}
}

// TestEarlyIsBounded has a replica use lanes without end that the other one has not opened.
func TestEarlyIsBounded(t *testing.T) {
	for k, name := range []string{"left", "left all", "waits", "", "", "dial"} {
		if name == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			n, l, h := loneNode(t, 0)
			defer l.Close()
			var err error
			lanes := 0
			for ; err == nil && lanes < 4*maxEarly; lanes++ {
				err = n.Handle(2, controlMessages(uint64(1000 + lanes))[k+1])
			}
			if err == nil || lanes != maxEarly+1 {
				t.Errorf("lane %d: %v", lanes, err)
			}
			if len(n.early) > maxEarly || h.dials > maxEarly {
				t.Errorf("%d entries, %d dials", len(n.early), h.dials)
			}
			if err := n.Handle(1, controlMessages(5)[k+1]); err != nil {
				t.Errorf("another replica: %v", err)
			}
		})
	}
	t.Run("links", func(t *testing.T) {
		n, l, _ := loneNode(t, 0)
		defer l.Close()
		links := make([]*scriptLink, 2*maxEarly)
		closed := 0
		for i := range links {
			links[i] = &scriptLink{}
			n.Attach(2, uint64(1000+i), links[i])
			if links[i].closed {
				closed++
			}
		}
		if closed != maxEarly || len(n.early) != maxEarly {
			t.Errorf("%d links are closed, %d entries", closed, len(n.early))
		}
		var lost *transport.LostError
		if !errors.As(l.Err(), &lost) || lost.Replica != 2 {
			t.Errorf("the error is %v", l.Err())
		}
		l.Close()
		for i := range links {
			if !links[i].closed {
				t.Fatalf("link %d is not closed", i)
			}
		}
	})
	t.Run("opened", func(t *testing.T) { // opening makes room for more
		n, l, _ := loneNode(t, 0)
		defer l.Close()
		for k := range uint64(3 * maxEarly) {
			if err := n.Handle(2, controlMessages(child(rootLane, k+1))[1]); err != nil {
				t.Fatal(err)
			}
			d, err := l.Dup(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if len(n.early) != 0 || n.ahead[2] != 0 || d.(*Lane).peers[2].left.Load() == nil {
				t.Fatalf("%d entries, %d of replica 2", len(n.early), n.ahead[2])
			}
		}
	})
}
