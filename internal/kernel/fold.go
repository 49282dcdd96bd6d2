package kernel

// Fold says how several sources become one result that is stored to several destinations, in one pass:
//
//	for i := range dsts[0] {
//		x := srcs[0][i]
//		for _, s := range srcs[1:] { x = x op s[i] } // in the order of srcs
//		if by > 1 { x /= by }
//		for _, d := range dsts { d[i] = x }
//	}
//
// The bits are those of Binary applied to one source after the other, then Divide.
type Fold struct {
	Op   Op
	Type Type

	// Square squares each source first, as the function Square does. Only for Add.
	Square bool

	// Wide keeps what is folded of 16-bit floats in float32, and rounds once, after the division. Without it each
	// operator rounds, as Binary does. Other types take no notice.
	Wide bool
}

// Many returns the loop of Fold{Op: op, Type: t}, or nil when op does not take elements of type t.
func Many(op Op, t Type) func(dsts, srcs [][]byte, by int, stream bool) {
	return Fold{Op: op, Type: t}.Loop()
}

// Loop returns the loop, or nil when there is no such operator on the type. Of its arguments
//
//   - dsts and srcs are of equal length each, and there is at least one of both. A dst may be a src (the same start);
//     other overlaps give unspecified values;
//   - a single source is copied as it is, NaNs and all, unless it is squared or divided;
//   - by is the divisor of floats, rounded as Divide's; none up to 1. Integers and Bool are never divided;
//   - stream asks for stores that go past the caches, for what nobody reads before it would have left them. They are
//     fenced: once the loop has returned, whoever is told so sees the data. Where a dst is not on a cache line while
//     dsts[0] is, its stores are ordinary ones. Measured (BenchmarkMany): it pays when dsts are not srcs and all
//     together are 16 MiB or more, up to twice as fast; in place it never does, it takes two to four times as long.
//     Versions without such stores (go, neon) take no notice.
func (f Fold) Loop() func(dsts, srcs [][]byte, by int, stream bool) {
	if o := ownOn(f.Op, f.Type); o != nil {
		return o.many
	}
	if f.Op >= opEnd || f.Type >= typeEnd {
		return nil
	}
	return chosen.fold[f.index()]
}

// foldEnd is one past the last index of a Fold.
const foldEnd = 4 * int(opEnd) * int(typeEnd)

// index is f's place in a table. Op and Type must be in range.
func (f Fold) index() int {
	i := int(f.Op)*int(typeEnd) + int(f.Type)
	if f.Square {
		i += foldEnd / 2
	}
	if f.Wide && (f.Type == Float16 || f.Type == BFloat16) {
		i += foldEnd / 4
	}
	return i
}

// everyFold lists all there could be, and some that there are not.
func everyFold() []Fold {
	var all []Fold
	for _, square := range []bool{false, true} {
		for _, wide := range []bool{false, true} {
			for op := Op(1); op < opEnd; op++ {
				for t := Type(1); t < typeEnd; t++ {
					all = append(all, Fold{op, t, square, wide})
				}
			}
		}
	}
	return all
}

// plainCopy reports whether a fold of so many sources changes nothing.
func (f Fold) plainCopy(srcs [][]byte, by int) bool { return len(srcs) == 1 && by <= 1 && !f.Square }

// foldLength is the length of all dsts and srcs; it panics if one is shorter than the first.
func foldLength(dsts, srcs [][]byte) int {
	n := len(dsts[0])
	for _, d := range dsts {
		_ = d[:n]
	}
	for _, s := range srcs {
		_ = s[:n]
	}
	return n
}
