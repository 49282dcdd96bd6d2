package schedule

import (
	"errors"
	"fmt"
)

// Strided returns the span of as many chunks in the same memory, from the same one on, in runs of run chunks, each
// beginning stride chunks after the one before. Numbers go round, so that a stride of Chunks-1 goes down by one. A span
// of one run stays as it is.
//
//	of 8 chunks                       0  1  2  3  4  5  6  7
//	Out(2, 3)                               ●  ●  ●             O2-4
//	Out(1, 4).Strided(1, 2)              ●     ●     ●     ●    O1:2x4
//	Out(5, 4).Strided(1, 1)           ●              ●  ●  ●    O5:1x4
//	Out(1, 5).Strided(2, 3)              ●  ●     ●  ●     ●    O1-2:3x5
//
// In Scratch a slot has a place for each chunk from its Base on, whether a span uses it or not. The chunks of a strided
// span lie in their places, and none may be below the Base. A message of a strided span is one message.
func (s Span) Strided(run, stride int) Span {
	if s.Count > run || run < 1 {
		s.Run, s.Stride = run, stride
	}
	return s
}

// MaxRuns is how many runs a span may have. A list of so many takes 0.9 GiB.
const MaxRuns = 1 << 24

// AppendRuns appends to dst the spans without a stride of which a span consists, in its order, as few as possible. The
// span is that of a schedule of so many chunks. One whose stride cannot be there, and one of more than MaxRuns,
// consists of none.
func (s Span) AppendRuns(dst []Span, chunks int) []Span {
	if s.Stride == 0 {
		return append(dst, s)
	}
	if s.Run < 1 || s.Stride < 1 || s.Stride >= chunks || s.Count > chunks || s.First < 0 || s.First >= chunks ||
		(s.Count-1)/s.Run >= MaxRuns {
		return dst
	}
	first := len(dst)
	part := Span{Buf: s.Buf, Slot: s.Slot, Base: s.Base, First: s.First}
	for left := s.Count; left > 0; {
		n := min(s.Run, left)
		left -= n
		next := part.First + s.Stride
		if next >= chunks {
			next -= chunks
		}
		for n > 0 {
			part.Count = min(n, chunks-part.First)
			n -= part.Count
			if last := len(dst) - 1; last >= first && dst[last].First+dst[last].Count == part.First {
				dst[last].Count += part.Count
			} else {
				dst = append(dst, part)
			}
			part.First = 0 // if the run goes round
		}
		part.First = next
	}
	return dst
}

// AppendRuns appends to dst steps without a stride that together do the same, in the order of the chunks, as few as
// possible. A message becomes several. The step is one that [Check] accepts, of a schedule of so many chunks.
func (st Step) AppendRuns(dst []Step, chunks int) []Step {
	if st.Src.Stride == 0 && st.Dst.Stride == 0 {
		return append(dst, st)
	}
	var memory [2][8]Span
	srcs, dsts := st.Src.AppendRuns(memory[0][:0], chunks), st.Dst.AppendRuns(memory[1][:0], chunks)
	both := st
	switch st.Verb {
	case Send:
		for _, both.Src = range srcs {
			dst = append(dst, both)
		}
		return dst
	case Recv:
		for _, both.Dst = range dsts {
			dst = append(dst, both)
		}
		return dst
	}
	for len(srcs) > 0 && len(dsts) > 0 {
		both.Src, both.Dst = srcs[0], dsts[0]
		n := min(both.Src.Count, both.Dst.Count)
		both.Src.Count, both.Dst.Count = n, n
		dst = append(dst, both)
		srcs, dsts = behind(srcs, n), behind(dsts, n)
	}
	return dst
}

// behind is what follows the first n chunks of runs, of which the first has as many.
func behind(runs []Span, n int) []Span {
	runs[0].First, runs[0].Count = runs[0].First+n, runs[0].Count-n
	if runs[0].Count == 0 {
		return runs[1:]
	}
	return runs
}

// chunk is the number of chunk i of a span, of so many in the schedule.
func (s *Span) chunk(i, chunks int) int {
	if s.Stride == 0 {
		return s.First + i
	}
	return int((int64(s.First) + int64(i/s.Run)*int64(s.Stride) + int64(i%s.Run)) % int64(chunks))
}

// has reports whether a span that checkSpan accepts, of a schedule of so many chunks, has a chunk.
func (s *Span) has(chunk, chunks int) bool {
	if s.Stride == 0 {
		return s.First <= chunk && chunk < s.First+s.Count
	}
	at := s.walk(chunks)
	for range s.Count {
		if at.next() == chunk {
			return true
		}
	}
	return false
}

// walk goes over the chunks of a span that checkSpan accepts.
type walk struct {
	at, left        int // the next chunk, and how many of its run are left
	start           int // of the run
	run, stride, of int // of: chunks in all
}

func (s *Span) walk(chunks int) walk {
	return walk{at: s.First, left: s.Run, start: s.First, run: s.Run, stride: s.Stride, of: chunks}
}

// next is the number of the next chunk.
func (w *walk) next() int {
	if w.stride > 0 {
		if w.left == 0 {
			w.start = around(w.start+w.stride, w.of)
			w.at, w.left = w.start, w.run
		}
		w.left--
	}
	f := w.at
	w.at = around(f+1, w.of)
	return f
}

// around is the number that n, which is less than twice as many, has round the chunks.
func around(n, chunks int) int {
	if n >= chunks {
		return n - chunks
	}
	return n
}

// checkStride refuses a strided span that cannot be, or that leaves chunks lo to hi-1 or its slot.
func checkStride(sp *Span, lo, hi, chunks int) error {
	switch {
	case sp.Run < 1 || sp.Stride < 1 || sp.Stride >= chunks:
		return fmt.Errorf("runs of %d chunks, each %d after the one before: want at least 1, and strides of less than the "+
			"%d chunks", sp.Run, sp.Stride, chunks)
	case sp.Count <= sp.Run:
		return fmt.Errorf("%d chunks in runs of %d: one run has no stride", sp.Count, sp.Run)
	case (sp.Count-1)/sp.Run >= MaxRuns:
		return fmt.Errorf("%d chunks in runs of %d, which are more than %d runs", sp.Count, sp.Run, MaxRuns)
	case sp.Count > chunks || sp.First < 0 || sp.First >= chunks:
		return fmt.Errorf("%d chunks from chunk %d on of %d", sp.Count, sp.First, chunks)
	}
	if sp.Buf == Scratch {
		if sp.Base < 0 {
			return fmt.Errorf("a slot that begins with chunk %d", sp.Base)
		}
		lo = sp.Base
	}
	runs, last := (sp.Count+sp.Run-1)/sp.Run, (sp.Count-1)%sp.Run+1 // last: chunks of the last run
	start, apart := sp.First, 0                                     // apart: from the first run up to this one
	for i := range runs {
		length, behind := sp.Run, sp.Run // behind: chunks of the run that is i after another, at least
		if i == runs-1 {
			length, behind = last, last
		}
		if i > 0 && (apart < sp.Run || chunks-apart < behind) {
			return errors.New("it has a chunk twice")
		}
		switch round := start+length > chunks; {
		case round && (lo > 0 || hi < chunks), !round && (start < lo || start+length > hi):
			return fmt.Errorf("it leaves chunks %d to %d", lo, hi-1)
		}
		apart = around(apart+sp.Stride, chunks)
		start = around(sp.First+apart, chunks)
	}
	return nil
}
