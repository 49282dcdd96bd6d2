package schedule

import (
	"crypto/sha256"
	"encoding/binary"
)

// stridedBuffers is what a digest adds to the buffer of a strided span. No buffer has a number as high.
const stridedBuffers = 1 << 8

// Digest is the SHA-256 of all that the schedule says: equal schedules have the same digest on every machine, and
// others another. It says nothing of whether the schedule is right. Of nil it is that of the zero Schedule.
func (s *Schedule) Digest() [32]byte {
	if s == nil {
		s = &Schedule{}
	}
	h := sha256.New()
	b := make([]byte, 0, 4<<10)
	add := func(numbers ...int) {
		for _, n := range numbers {
			b = binary.AppendVarint(b, int64(n))
		}
		if len(b) > cap(b)-1<<8 { // a step is shorter
			h.Write(b)
			b = b[:0]
		}
	}
	span := func(sp Span) {
		if sp.Stride == 0 && sp.Run == 0 {
			add(int(sp.Buf), sp.Slot, sp.Base, sp.First, sp.Count)
			return
		}
		add(stridedBuffers+int(sp.Buf), sp.Slot, sp.Base, sp.First, sp.Count, sp.Stride, sp.Run)
	}
	steps := func(list []Step) {
		add(len(list))
		for i := range list {
			st := &list[i]
			add(int(st.Verb), st.Peer)
			span(st.Src)
			span(st.Dst)
		}
	}
	flags := 0
	if s.Apart {
		flags |= 1
	}
	if s.Again {
		flags |= 2
	}
	add(int(s.Collective), s.Size, s.Root, s.Chunks, flags, len(s.Programs))
	for _, p := range s.Programs {
		add(len(p))
		for _, r := range p {
			steps(r.Moves)
			steps(r.Then)
		}
	}
	s.Custom.digest(add)
	h.Write(b)
	return [32]byte(h.Sum(nil))
}
