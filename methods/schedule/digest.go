package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
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

// digest adds what a contract says to a digest; nil says nothing.
func (c *CustomContract) digest(add func(...int)) {
	if c == nil {
		return
	}
	list := func(l []int) { // by runs of numbers that follow each other, since those of contributors are long
		add(len(l))
		for i := 0; i < len(l); {
			first := i
			for i++; i < len(l) && l[i] == l[i-1]+1; i++ {
			}
			add(l[first], i-first)
		}
	}
	list([]int{len(c.Name), len(c.Inputs), len(c.Outputs), len(c.Wants)})
	for i := range len(c.Name) {
		add(int(c.Name[i]))
	}
	flags := 0
	if c.Combines {
		flags |= 1
	}
	if c.Wants != nil {
		flags |= 2
	}
	if c.Sizes != nil {
		flags |= 4
	}
	add(flags)
	list(c.Sizes)
	for _, l := range slices.Concat(c.Inputs, c.Outputs) {
		list(l)
	}
	for _, of := range c.Wants {
		add(len(of))
		for _, l := range of {
			list(l)
		}
	}
}
