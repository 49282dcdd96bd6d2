package segment

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// small and paged are forms of tests, the latter with pages.
var (
	small = Form{Bytes: 4 << 20, Ring: 16 << 10}
	paged = Form{Bytes: 24 << 20, Ring: 16 << 10, Pages: 20 << 20}
)

// laid is a segment in ordinary memory, and the same as others see it.
func laid(t testing.TB) (*Segment, *Peer) {
	t.Helper()
	m := make(memory, small.Bytes)
	s := newSegment(m, 3, small)
	s.punch = func(at, n int) error {
		clear(m[at : at+n])
		return nil
	}
	return s, &Peer{memory: m, form: small}
}

// ringOf makes a ring and both its ends.
func ringOf(t testing.TB, s *Segment, p *Peer, lane uint64) (*Sender, *Receiver) {
	t.Helper()
	out, err := s.Sender(lane, 7)
	if err != nil {
		t.Fatal(err)
	}
	in := p.Receiver(lane, 7)
	if in == nil {
		t.Fatal("the ring is not found")
	}
	return out, in
}

func TestForm(t *testing.T) {
	const huge = hugeBytes
	for _, f := range []Form{DefaultForm, small, paged, {Bytes: MinBytes, Ring: 4096}, {MinBytes + huge, 4096, huge},
		DefaultForm.Within(0), DefaultForm.Within(5<<20 + 1), DefaultForm.Within(1 << 60), small.Within(3 << 20)} {
		if err := f.check(); err != nil {
			t.Error(err)
		}
	}
	for _, f := range []Form{{}, {MinBytes - 4096, 4096, 0}, {MinBytes + 1, 4096, 0}, {MinBytes, 4095, 0},
		{MinBytes, 2048, 0}, {MinBytes, 12288, 0}, {MinBytes, MinBytes, 0}, {MinBytes, 1 << 20, 0}, {-4096, 4096, 0},
		{MinBytes, -4096, 0}, {MinBytes, 0, 0}, {MinBytes + huge, 1 << 20, huge}, {MinBytes + huge, 4096, -huge},
		{MinBytes + huge, 4096, huge + 4096}, {MinBytes + huge, 4096, 4096}, {MinBytes + huge + 4096, 4096, huge},
		{MinBytes + huge, 4096, 2 * huge}, {MinBytes, 4096, huge}, {MinBytes, 4096, math.MinInt64}} {
		if f.check() == nil {
			t.Errorf("%+v: no error", f)
		}
	}
	for bytes, want := range map[int64]Form{
		-1:              {MinBytes, paged.Ring, 0},
		7<<20 + 1:       {6 << 20, paged.Ring, 2 << 20},
		paged.Bytes - 1: {22 << 20, paged.Ring, 10 << 20},
		2 * paged.Bytes: paged,
	} {
		if got := paged.Within(bytes); got != want {
			t.Errorf("%+v within %d bytes: %+v, want %+v", paged, bytes, got, want)
		}
	}
}

// TestHeader: each word of a header that is another than it should be is an error that says both.
func TestHeader(t *testing.T) {
	good := make([]byte, headerUsed)
	putHeader(good, 3, small)
	if err := checkHeader(good, 3, small); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"magic number", "version", "rank", "length", "ring length", "length of pages"} {
		bad := bytes.Clone(good)
		bad[8*i]++
		if err := checkHeader(bad, 3, small); err == nil || !strings.Contains(err.Error(), "its header has "+name+" ") {
			t.Errorf("word %d: %v, want the %s", i, err, name)
		}
	}
	if err := checkHeader(good[:headerUsed-1], 3, small); err == nil {
		t.Error("a short header: no error")
	}
}

// TestDirectory: a block is found by its key while it is there, only then, and only where it lies in the segment.
func TestDirectory(t *testing.T) {
	s, p := laid(t)
	if p.Lane(1) != nil || p.Receiver(1, 7) != nil {
		t.Error("found before it was made")
	}
	word, err := s.Lane(1)
	if err != nil {
		t.Fatal(err)
	}
	word.Store(5)
	if theirs := p.Lane(1); theirs == nil || theirs.Load() != 5 {
		t.Error("the word is not found")
	}
	if _, err := s.Lane(1); err == nil {
		t.Error("made twice: no error")
	}
	key := keyOf(laneKind, 1, 0)
	var e *entry
	for i := range window {
		if e = p.entry(key, i); e.key.Load() == uint64(key) {
			break
		}
	}
	at := e.offset.Load()
	for _, bad := range []uint64{0, pageBytes, directoryAt, blocksAt - pageBytes, at + 8, uint64(small.Bytes),
		uint64(small.Bytes) - pageBytes + 1, 1 << 63, ^uint64(0), ^uint64(pageBytes - 1)} {
		if e.offset.Store(bad); p.Lane(1) != nil {
			t.Errorf("offset %#x is taken", bad)
		}
	}
	e.offset.Store(uint64(small.Bytes) - pageBytes)
	if p.Lane(1) == nil {
		t.Error("the last page is refused")
	}
	e.offset.Store(at)
	if s.FreeLane(1); p.Lane(1) != nil {
		t.Error("found after it was freed")
	}
	s.FreeLane(1) // does nothing
	if again, err := s.Lane(1); err != nil || again.Load() != 0 {
		t.Errorf("made again: %v, want zeros", err)
	}
}

// TestFull: a segment that is full and a directory that has no room for a key are errors, and what is given back can be
// had again.
func TestFull(t *testing.T) {
	s, _ := laid(t)
	var out []*Sender
	for {
		one, err := s.Sender(uint64(len(out)), 1)
		if err != nil {
			if !strings.Contains(err.Error(), "is full") {
				t.Error(err)
			}
			break
		}
		out = append(out, one)
	}
	if want := (int(small.Bytes) - blocksAt) / (ringAt + small.Ring); len(out) != want {
		t.Errorf("%d rings, want %d", len(out), want)
	}
	s.Free(out[0], true)
	if _, err := s.Sender(1000, 1); err != nil {
		t.Error(err)
	}
	s, _ = laid(t)
	key := keyOf(laneKind, 1, 0)
	for i := range window {
		s.entry(key, i).key.Store(99)
	}
	if _, err := s.Lane(1); !errors.Is(err, errFull) {
		t.Errorf("%v, want that the directory is full", err)
	}
	s.entry(key, window-1).key.Store(0)
	if _, err := s.Lane(1); err != nil {
		t.Error(err)
	}
}

// TestHold: where memory is asked for before it is touched, a block that the system does not give is an error, and is
// none when the system gives it later.
func TestHold(t *testing.T) {
	s, p := laid(t)
	none := errors.New("the system has none")
	asked := 0
	s.hold = func(at, n int) error {
		asked = n
		return none
	}
	if _, err := s.Seat(1, 2, 8192); !errors.Is(err, none) || asked != 8192 || p.Seat(1, 2, 8192) != nil {
		t.Errorf("%v, %d bytes asked for", err, asked)
	}
	none = nil
	if _, err := s.Seat(1, 2, 8192); err != nil || p.Seat(1, 2, 8192) == nil {
		t.Errorf("%v, when there is memory", err)
	}
}

// TestFree: the memory of a ring that has ended is kept until its receiver is done.
func TestFree(t *testing.T) {
	s, p := laid(t)
	out, in := ringOf(t, s, p, 1)
	if n, err := out.Send([]byte("last words"), nil, nil, func() {}); n != 10 || err != nil {
		t.Fatal(n, err)
	}
	out.End()
	s.Free(out, false)
	ringOf(t, s, p, 2)
	if b, err := in.Peek(1); string(b) != "last words" || err != nil {
		t.Fatalf("%q, %v", b, err)
	}
	in.Skip(10)
	if _, err := in.Peek(1); err != io.EOF {
		t.Errorf("%v, want io.EOF", err)
	}
	in.Done()
	before := s.next
	reused, third := ringOf(t, s, p, 3)
	if s.next != before || p.Receiver(1, 7) != nil {
		t.Error("the ring is not given back")
	}
	if b, err := third.Peek(1); b != nil || err != nil {
		t.Errorf("a ring in used memory shows %q, %v", b, err)
	}
	// Who is late, and has looked for its ring before it went, sets the word of a ring that is another one's now.
	third.doneAt.Store(uint64(in.key))
	if s.Free(reused, false); len(s.waiting) != 1 {
		t.Error("a ring is let go by the word of another one")
	}
	if n, err := reused.Send([]byte{1}, nil, nil, func() {}); n != 1 || err != nil {
		t.Errorf("after the word of another ring: %d, %v", n, err)
	}
	if third.Done(); !reused.done() {
		t.Error("the receiver's own word does not count after that of another ring")
	}
}

// TestLateDone: the receiver of a lonely ring says that it is done when the ring's memory is another ring's.
func TestLateDone(t *testing.T) {
	s, p := laid(t)
	lonely, late := ringOf(t, s, p, 1)
	lonely.End()
	s.Free(lonely, true)
	before := s.next
	out, in := ringOf(t, s, p, 2)
	if s.next != before {
		t.Fatal("the memory of the lonely ring is not used again")
	}
	for _, said := range []bool{false, true} {
		if said {
			in.Done()
		}
		if late.Done(); out.done() != said {
			t.Errorf("the ring is done: %v, want %v", out.done(), said)
		}
	}
	out.End()
	s.Free(out, false)
	ringOf(t, s, p, 3)
	if s.next != before {
		t.Error("the ring is kept")
	}
}

// TestManyLanes: lanes that come and go leave nothing.
func TestManyLanes(t *testing.T) {
	s, p := laid(t)
	for lane := range uint64(10_000) {
		if _, err := s.Lane(lane); err != nil {
			t.Fatal(lane, err)
		}
		out, in := ringOf(t, s, p, lane)
		out.End()
		s.Free(out, false)
		in.Done()
		s.FreeLane(lane)
	}
	if used := s.next - blocksAt; used > 8*(ringAt+small.Ring) {
		t.Errorf("%d bytes are in use", used)
	}
}

// TestRing sends bytes in parts of all sizes: they come in order, and where they lie is congruent to their numbers.
func TestRing(t *testing.T) {
	s, p := laid(t)
	out, in := ringOf(t, s, p, 1)
	r := rand.New(rand.NewPCG(1, 2))
	var sent, come uint64
	for come < 1<<20 {
		var parts [3][]byte
		for i := range parts {
			parts[i] = make([]byte, r.IntN(1<<(r.IntN(16))))
		}
		flat := bytes.Join(parts[:], nil)
		for k := range flat {
			flat[k] = byte((sent + uint64(k)) * 7)
		}
		a, b := len(parts[0]), len(parts[0])+len(parts[1])
		published := 0
		n, err := out.Send(flat[:a], flat[a:b], flat[b:], func() { published++ })
		if err != nil || n > len(flat) || (n > 0) != (published > 0) {
			t.Fatal(n, published, err)
		}
		if want := min(len(flat), small.Ring-int(sent-come)); n != want {
			t.Fatalf("%d bytes were taken, want %d", n, want)
		}
		sent += uint64(n)
		if got := in.Come(); got != sent {
			t.Fatalf("%d bytes have come, want %d", got, sent)
		}
		for range r.IntN(3) {
			b, err := in.Peek(1)
			if err != nil {
				t.Fatal(err)
			}
			if b == nil {
				break
			}
			for k := range b {
				if b[k] != byte((come+uint64(k))*7) {
					t.Fatalf("byte %d is wrong", come+uint64(k))
				}
			}
			k := 1 + r.IntN(len(b))
			in.Skip(k)
			come += uint64(k)
		}
	}
}

// TestRoom: a sender that has found no room is to be woken when half of the ring is free, and only then.
func TestRoom(t *testing.T) {
	s, p := laid(t)
	out, in := ringOf(t, s, p, 1)
	all := make([]byte, small.Ring)
	send := func(b []byte, want int) {
		t.Helper()
		if n, err := out.Send(nil, b, nil, func() {}); n != want || err != nil {
			t.Errorf("%d, %v, want %d", n, err, want)
		}
	}
	skip := func(n int, want bool) {
		t.Helper()
		if b, err := in.Peek(1); len(b) < n || err != nil {
			t.Fatal(len(b), err)
		}
		if wake := in.Skip(n); wake != want {
			t.Errorf("wake %v, want %v", wake, want)
		}
	}
	send(all, len(all))
	skip(64, false) // nobody waits
	send(all[:64], 64)
	if out.Changed() {
		t.Error("changed, and nobody waits")
	}
	send(all, 0)
	skip(64, false)
	if !out.Changed() || out.Changed() {
		t.Error("room is not seen once")
	}
	skip(len(all)/2-64, true)
	send(all, len(all)/2)
	if _, err := in.Peek(1); err != nil {
		t.Fatal(err)
	}
	in.Done()
	if !out.Changed() {
		t.Error("that the receiver is done is not seen")
	}
	if n, err := out.Send(all, nil, nil, func() {}); n != 0 || err != io.ErrClosedPipe {
		t.Errorf("%d, %v, want io.ErrClosedPipe", n, err)
	}
}

// TestChanged: a receiver sees once that bytes have come, and that the sender has ended.
func TestChanged(t *testing.T) {
	s, p := laid(t)
	out, in := ringOf(t, s, p, 1)
	if in.Changed() {
		t.Error("changed from the start")
	}
	out.Send([]byte{1}, nil, nil, func() {})
	if come := in.Come(); come != 1 { // which a lane asks before it parks
		t.Errorf("%d bytes have come, want 1", come)
	}
	if !in.Changed() || in.Changed() {
		t.Error("a byte is not seen once")
	}
	out.End()
	if !in.Changed() || in.Changed() || !in.Ended() {
		t.Error("the end is not seen once")
	}
	in.wroteAt.Store(1 << 40)
	if !in.Changed() || in.Changed() {
		t.Error("an index that makes no sense is not seen once")
	}
}

// TestIndexes: an index of the other side that is impossible is an error at both ends, and the own one is not read.
func TestIndexes(t *testing.T) {
	s, p := laid(t)
	out, in := ringOf(t, s, p, 1)
	if n, err := out.Send(make([]byte, 100), nil, nil, func() {}); n != 100 || err != nil {
		t.Fatal(n, err)
	}
	size := uint64(small.Ring)
	for _, wrote := range []uint64{size + 1, 1 << 32, 1 << 63, ^uint64(0)} {
		in.wroteAt.Store(wrote)
		if b, err := in.Peek(1); b != nil || err != errIndex {
			t.Errorf("wrote %d: %d bytes, %v", wrote, len(b), err)
		}
		if come := in.Come(); come > size {
			t.Errorf("wrote %d: %d bytes have come", wrote, come)
		}
	}
	for _, read := range []uint64{101, 1 << 32, ^uint64(0) - size} {
		out.readAt.Store(read)
		if n, err := out.Send(make([]byte, 1), nil, nil, func() {}); n != 0 || err != errIndex {
			t.Errorf("read %d: %d bytes taken, %v", read, n, err)
		}
	}
	out.readAt.Store(0)
	if n, err := out.Send(make([]byte, 1), nil, nil, func() {}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got := in.wroteAt.Load(); got != 101 { // although it was overwritten
		t.Errorf("wrote is %d, want 101", got)
	}
	// Bytes that do not lie in one place.
	in.wroteAt.Store(size)
	if b, err := in.Peek(1); len(b) != small.Ring || err != nil {
		t.Fatal(len(b), err)
	}
	in.Skip(small.Ring - 10)
	in.wroteAt.Store(size + 100)
	if b, err := in.Peek(64); b != nil || err != errIndex {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// FuzzSegment looks things up in a segment whose header, directory and first blocks are anything.
func FuzzSegment(f *testing.F) {
	s, _ := laid(f)
	if _, err := s.Sender(1, 7); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(s.memory[:headerUsed]), uint64(1), uint64(blocksAt), []byte{1, 2, 3}, uint16(64))
	f.Add([]byte{}, uint64(0), ^uint64(0), bytes.Repeat([]byte{0xff}, 128), uint16(1))
	f.Fuzz(func(t *testing.T, header []byte, lane, offset uint64, block []byte, n uint16) {
		if checkHeader(header, 3, small) == nil {
			want := make([]byte, headerUsed)
			if putHeader(want, 3, small); !bytes.Equal(header[:headerUsed], want) {
				t.Errorf("header %x is taken", header)
			}
		}
		p := &Peer{memory: make(memory, small.Bytes), form: small}
		for i, kind := range []uint64{laneKind, ringKind} {
			e := p.entry(keyOf(kind, lane, uint64(7*i)), int(offset%window))
			e.offset.Store(offset)
			e.key.Store(uint64(keyOf(kind, lane, uint64(7*i))))
		}
		if offset < uint64(len(p.memory)) {
			copy(p.memory[offset:], block)
		}
		p.Lane(lane)
		in := p.Receiver(lane, 7)
		if in == nil {
			return
		}
		if offset < blocksAt || offset%pageBytes != 0 || offset+ringAt+uint64(small.Ring) > uint64(len(p.memory)) {
			t.Fatalf("a ring at %#x", offset)
		}
		out := newSender(p.memory[offset:][:ringAt+small.Ring], in.key)
		for range 3 {
			want := 1 + int(n)%64
			b, err := in.Peek(want)
			if err == nil && b != nil {
				if len(b) < want || len(b) > small.Ring {
					t.Fatalf("%d bytes are shown, want %d", len(b), want)
				}
				in.Skip(want)
			}
			in.Changed()
			out.Changed()
			if took, err := out.Send(block, nil, nil, func() {}); took > small.Ring || err != nil && took > 0 {
				t.Fatal(took, err)
			}
		}
	})
}
