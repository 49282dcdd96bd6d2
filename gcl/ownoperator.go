package gcl

import (
	"slices"
	"sync"
	"unsafe"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/enum"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// OperatorProperty is something about an operator of a program's own that the library makes use of.
type OperatorProperty uint8

// The properties. Without any an operator is associative and commutative, up to rounding.
const (
	// NotCommutative: a op b need not be b op a. Reductions then fold the data of ranks in rank order, as all of them
	// do with Options.Reproducible; those within a replica fold in the order of the fragments. Methods of the gallery
	// and of a program's own do not do such calls: they go as by Auto, or are errors with Options.Strict. Execute
	// refuses them.
	NotCommutative OperatorProperty = iota + 1

	// Idempotent: what is combined a second time changes nothing, as with MAX. A schedule may ask for that: see
	// schedule.Schedule.Again.
	Idempotent
)

// NewOperator makes an operator of combine, which combines elements one by one: dst[i] = a[i] op b[i] for three slices
// of one length. Every reduction takes it on elements of type T, by every method but native. It must be associative, up
// to rounding, and is commutative unless properties say otherwise:
//
//	xor, err := gcl.NewOperator("xor", func(dst, a, b []uint64) {
//		for i := range dst {
//			dst[i] = a[i] ^ b[i]
//		}
//	})
//	err = gcl.AllReduceInPlace(ctx, c, bits, xor)
//
// dst may be a or b, and else is apart from them. The slices are pieces of the data, cut anywhere, and belong to the
// library: combine keeps none of them, and changes nothing but dst. Replicas of one process, and IPUs of a replica,
// call it at the same time. It makes no calls of this package. If it panics, so does the call, and those of the others
// fail.
//
// A program makes an operator once: it is there for as long as the process runs, and ParseOperator knows its name. All
// processes of a job make theirs alike, in any order. Members compare name, T and properties in every call, and a
// difference is an ErrMismatch; functions cannot be compared. 16-bit floats are rounded by combine each time, also with
// Options.Reproducible. Package ir has no derivative of such an operator.
//
// A name is a lower case letter, and at most 63 lower case letters, digits and underscores behind it. Errors: a name
// that is malformed or taken, a nil function, an unknown property, and more than 200 operators.
func NewOperator[T tensor.Element](name string, combine func(dst, a, b []T), properties ...OperatorProperty) (Operator,
	error) {
	dtype := tensor.DTypeOf[T]()
	row := operatorRow{name: name, accepts: only(dtype)}
	for _, p := range properties {
		switch p {
		case NotCommutative:
			row.InOrder = true
		case Idempotent:
			row.again = true
		default:
			return 0, errorf("NewOperator: %d is no property of operators, want NotCommutative or Idempotent", p)
		}
	}
	row.own = operatorHash(name, dtype, row.InOrder, row.again)
	if err := enum.CheckName("an operator", name); err != nil {
		return 0, errorf("NewOperator: %w", err)
	}
	if combine == nil {
		return 0, errorf("NewOperator: the function of operator %s is nil", name)
	}
	return operatorTable.add(row, kernel.Type(dtype), loopOf(combine))
}

// add adds the row of an operator that combine is the loop of.
func (t *operatorsNow) add(row operatorRow, of kernel.Type, combine func(dst, a, b []byte)) (Operator, error) {
	t.adding.Lock()
	defer t.adding.Unlock()
	now := t.Load()
	if _, taken := now.names.Lookup(row.name); taken {
		return 0, errorf("NewOperator: the name %s is taken: this process has an operator by it", row.name)
	}
	fold, ok := kernel.NewOp(of, combine)
	if !ok {
		return 0, errorf("NewOperator: no room for the operator %s: this process has %d of its own already, which is the "+
			"most", row.name, kernel.MaxOwn)
	}
	row.Fold = fold
	t.set(append(slices.Clone(now.rows), row))
	return Operator(len(now.rows)), nil
}

// operatorHash is what members compare of an operator of a program's own. It is never 0.
func operatorHash(name string, dtype tensor.DType, inOrder, again bool) uint64 {
	hash := wire.Mix(wire.Seed, uint64(dtype)<<2|bit(inOrder)<<1|bit(again))
	for _, b := range []byte(name) {
		hash = wire.Mix(hash, uint64(b))
	}
	return max(hash, 1)
}

// only is the set of one element type.
func only(t tensor.DType) elements {
	return elements{t.String() + " alone", func(d tensor.DType) bool { return d == t }}
}

// loopBytes is how much of each slice is copied where it does not lie as Go wants a T to.
const loopBytes = 4 << 10

// room is for such pieces of dst, a and b.
var room = sync.Pool{New: func() any { return new([3][loopBytes / 8]uint64) }}

// loopOf is combine on bytes, which may have arrived at any address.
func loopOf[T tensor.Element](combine func(dst, a, b []T)) func(dst, a, b []byte) {
	return func(dst, a, b []byte) {
		d, err1 := tensor.FromBytes[T](dst)
		x, err2 := tensor.FromBytes[T](a)
		y, err3 := tensor.FromBytes[T](b)
		if err1 == nil && err2 == nil && err3 == nil {
			combine(d, x, y)
			return
		}
		words := room.Get().(*[3][loopBytes / 8]uint64)
		for lo := 0; lo < len(dst); lo += loopBytes {
			hi := min(lo+loopBytes, len(dst))
			d, x, y := piece[T](&words[0], hi-lo), piece[T](&words[1], hi-lo), piece[T](&words[2], hi-lo)
			load(x, a[lo:hi])
			load(y, b[lo:hi])
			combine(d, x, y)
			copy(dst[lo:hi], tensor.Bytes(d))
		}
		room.Put(words)
	}
}

// piece is room for so many bytes of elements.
func piece[T tensor.Element](words *[loopBytes / 8]uint64, bytes int) []T {
	var t T
	all := unsafe.Slice((*T)(unsafe.Pointer(words)), loopBytes/unsafe.Sizeof(t))
	return all[:bytes/int(unsafe.Sizeof(t))]
}

// load copies bytes to elements. A byte of a bool that is neither 0 nor 1 becomes 1.
func load[T tensor.Element](dst []T, src []byte) {
	bytes := tensor.Bytes(dst)
	copy(bytes, src)
	if tensor.DTypeOf[T]() == tensor.Bool {
		for i, b := range bytes {
			bytes[i] = min(b, 1)
		}
	}
}
