package segment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPeerBytes: what a process finds of another's pages lies in the pages, whatever it is asked for.
func TestPeerBytes(t *testing.T) {
	p := newPeer(make(memory, paged.Bytes), paged, nil)
	from, end := uint64(paged.Bytes-paged.Pages), uint64(paged.Bytes)
	for _, x := range []struct {
		offset, n uint64
		ok        bool
	}{
		{from, end - from, true}, {from, 1, true}, {end - 1, 1, true}, {from + 5, 7, true},
		{0, 0, true}, {end, 0, true}, {math.MaxUint64, 0, true},
		{from - 1, 1, false}, {from - 1, 2, false}, {0, 1, false}, {0, end, false}, {from, end - from + 1, false},
		{end, 1, false}, {end - 1, 2, false}, {end + 1, 1, false}, {from, math.MaxUint64, false},
		{from + 1, math.MaxUint64, false}, {end, math.MaxUint64, false}, {math.MaxUint64, 1, false},
		{math.MaxUint64, math.MaxUint64, false}, {math.MaxUint64 - from, from + 1, false}, {1 << 63, 1 << 63, false},
	} {
		checkBytes(t, p, x.offset, x.n, x.ok)
	}
	none := newPeer(make(memory, small.Bytes), small, nil)
	for _, offset := range []uint64{0, blocksAt, uint64(small.Bytes) - 1, uint64(small.Bytes)} {
		if b, ok := none.Bytes(offset, 1); ok || b != nil {
			t.Errorf("offset %d of a segment without pages is taken", offset)
		}
	}
}

// checkBytes compares Bytes with what it is to return.
func checkBytes(t *testing.T, p *Peer, offset, n uint64, want bool) {
	t.Helper()
	b, ok := p.Bytes(offset, n)
	if ok != want || uint64(len(b)) != n && ok || uint64(cap(b)) != n && ok || b != nil && !ok {
		t.Errorf("%d bytes at %#x: %d bytes, capacity %d, %v, want %v", n, offset, len(b), cap(b), ok, want)
	}
	if ok && n > 0 && addressOf(b) != addressOf(p.memory)+uintptr(offset) {
		t.Errorf("%d bytes at %#x lie elsewhere", n, offset)
	}
}

// FuzzPeerBytes is TestPeerBytes with anything.
func FuzzPeerBytes(f *testing.F) {
	p := newPeer(make(memory, paged.Bytes), paged, nil)
	f.Add(uint64(paged.Bytes-paged.Pages), uint64(paged.Pages))
	f.Add(uint64(math.MaxUint64), uint64(2))
	f.Fuzz(func(t *testing.T, offset, n uint64) {
		want := n == 0 || offset >= uint64(paged.Bytes-paged.Pages) && offset <= uint64(paged.Bytes) &&
			n <= uint64(paged.Bytes) && offset+n <= uint64(paged.Bytes)
		checkBytes(t, p, offset, n, want)
	})
}

// TestExtents takes and gives back parts in any order: no two overlap, all lie where they are to, and what is given
// back is joined, so that all can be had in one at the end.
func TestExtents(t *testing.T) {
	const from, bytes, page = 1 << 21, 64 << 21, 4096
	r := rand.New(rand.NewPCG(3, 4))
	free := extents{{from, bytes}}
	var taken []extent
	sum := 0
	for range 20_000 {
		if len(taken) > 0 && r.IntN(100) < 48 {
			i := r.IntN(len(taken))
			free.put(taken[i])
			sum -= taken[i].bytes
			taken = slices.Delete(taken, i, i+1)
		} else {
			n, align := page*(1+r.IntN(1<<r.IntN(12))), page
			if n >= 1<<21 {
				align = 1 << 21
			}
			x, ok := free.take(n, align)
			if !ok {
				continue
			}
			if x.bytes != n || x.at%align != 0 || x.at < from || x.at+n > from+bytes {
				t.Fatalf("%d bytes, a multiple of %d: %+v", n, align, x)
			}
			for _, y := range taken {
				if x.at < y.at+y.bytes && y.at < x.at+x.bytes {
					t.Fatalf("%+v overlaps %+v", x, y)
				}
			}
			taken = append(taken, x)
			sum += n
		}
		if free.bytes() != bytes-sum {
			t.Fatalf("%d bytes are free, want %d", free.bytes(), bytes-sum)
		}
		for i := range free[:max(len(free)-1, 0)] {
			if free[i].at+free[i].bytes >= free[i+1].at {
				t.Fatalf("%+v and %+v touch", free[i], free[i+1])
			}
		}
	}
	for _, x := range taken {
		free.put(x)
	}
	if x, ok := free.take(bytes, 1<<21); !ok || x != (extent{from, bytes}) || len(free) != 0 {
		t.Errorf("all of it: %+v, %v; %v", x, ok, free)
	}
	if x, ok := free.take(page, page); ok {
		t.Errorf("of nothing: %+v", x)
	}
}
