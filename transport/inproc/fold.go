package inproc

import "gogcl.dev/transport"

// How much is read from a peer's memory before looking whether to stop. All are multiples of 64 bytes.
const (
	copyBlock = 64 << 10 // one message: a few microseconds
	foldBlock = 16 << 10 // several: what is folded into stays in the first-level cache until the last of them

	// Much is copied two to three times faster past the caches, which is what copy does on amd64 with pieces of 1 MiB
	// and more. Below 8 MiB there is nothing in it (BenchmarkExchange/pattern=pingpong).
	longCopies    = 8 << 20 // all the plain receives of a batch
	longCopyBlock = 1 << 20
)

// apply carries out the receives batch[from:to], the next ones of one chain, all of which are claimed. It returns false
// when it stopped in the middle.
func (e *endpoint) apply(from, to int) bool {
	links, slots := e.batch[from:to], e.slots[from:to]
	buf := links[0].Buf
	block := copyBlock
	switch {
	case len(links) > 1 || links[0].Next:
		block = foldBlock
	case links[0].Kind == transport.Recv && e.copied >= longCopies:
		block = longCopyBlock
	}
	for lo := 0; lo < len(buf); lo += block {
		if e.interruption() != nil {
			return false
		}
		hi := min(lo+block, len(buf))
		applyBlock(links, slots, lo, hi)
	}
	return true
}

// applyBlock carries out the links on bytes [lo, hi). A plain receive with a fold behind it is not copied first: the
// fold reads it where it is.
func applyBlock(links []transport.Transfer, slots []*slot, lo, hi int) {
	dst := links[0].Buf[lo:hi:hi]
	acc := dst // what has been folded so far
	for k := range links {
		t := &links[k]
		arrived := slots[k].bytes()[lo:hi:hi]
		switch {
		case t.Kind == transport.Recv:
			acc = arrived
			continue
		case !t.Next:
			acc = t.With[lo:hi:hi]
		case len(t.With) > 0 && &t.With[0] != &t.Buf[0]:
			t.Fold(dst, acc, t.With[lo:hi:hi])
			acc = dst
		}
		t.Fold(dst, acc, arrived)
		acc = dst
	}
	if &acc[0] != &dst[0] {
		copy(dst, acc)
	}
}
