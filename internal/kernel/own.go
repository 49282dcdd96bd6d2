package kernel

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// own is an operator of a program's own. Its Op is opEnd and its place in the list.
type own struct {
	takes  Type
	binary func(dst, a, b []byte)
	second func(dst, a, b []byte) // dst = b op a
	many   func(dsts, srcs [][]byte, by int, stream bool)
}

// The operators of programs, which are added and never change. owning guards the adding.
var (
	owning sync.Mutex
	owns   atomic.Pointer[[]own]
)

// MaxOwn is how many operators of its own a program may have.
const MaxOwn = 200

// NewOp adds an operator of the program's own on one type, for as long as the program runs. Binary and Fold have it
// from then on; Square, Wide and a divisor do not apply to it. combine is dst[i] = a[i] op b[i] for three slices of one
// length, of which dst may be a or b; it is called by several goroutines at once. With MaxOwn of them ok is false.
func NewOp(t Type, combine func(dst, a, b []byte)) (op Op, ok bool) {
	owning.Lock()
	defer owning.Unlock()
	var list []own
	if l := owns.Load(); l != nil {
		list = *l
	}
	if len(list) == MaxOwn {
		return 0, false
	}
	list = append(slices.Clone(list), own{
		takes: t, binary: combine, many: foldBy(combine),
		second: func(dst, a, b []byte) { combine(dst, b, a) },
	})
	owns.Store(&list)
	return opEnd + Op(len(list)-1), true
}

// Own reports whether op is an operator of the program's own.
func (op Op) Own() bool { return op >= opEnd }

// ownOn is an operator of the program's own, or nil where it does not take elements of type t.
func ownOn(op Op, t Type) *own {
	l := owns.Load()
	if l == nil || op < opEnd || int(op-opEnd) >= len(*l) || (*l)[op-opEnd].takes != t {
		return nil
	}
	return &(*l)[op-opEnd]
}

// Second returns the loop dst[i] = b[i] op a[i], or nil when op does not take elements of type t. It is Binary but for
// operators of the program's own: the others are commutative.
func Second(op Op, t Type) func(dst, a, b []byte) {
	if o := ownOn(op, t); o != nil {
		return o.second
	}
	return Binary(op, t)
}

// ownBlock is how many bytes of each source a fold of several takes at a time: with a handful of sources they are still
// in the first-level cache when the result is stored.
const ownBlock = 4 << 10

// blocks are where folds of several keep what they have so far, since a dst may be any of the srcs. The words are for
// the alignment.
var blocks = sync.Pool{New: func() any { return new([ownBlock / 8]uint64) }}

// foldBy is a Fold's loop of a combination of two.
func foldBy(combine func(dst, a, b []byte)) func(dsts, srcs [][]byte, by int, stream bool) {
	return func(dsts, srcs [][]byte, _ int, _ bool) {
		n := foldLength(dsts, srcs)
		block := blocks.Get().(*[ownBlock / 8]uint64)
		words := unsafe.Slice((*byte)(unsafe.Pointer(block)), ownBlock)
		for lo := 0; lo < n; lo += ownBlock {
			hi := min(lo+ownBlock, n)
			so := srcs[0][lo:hi]
			if len(srcs) > 1 {
				so = words[:hi-lo]
				combine(so, srcs[0][lo:hi], srcs[1][lo:hi])
				for _, s := range srcs[2:] {
					combine(so, so, s[lo:hi])
				}
			}
			for _, d := range dsts {
				copy(d[lo:hi], so)
			}
		}
		blocks.Put(block)
	}
}
