package kernel

// version is one implementation of the loops, known by its name. A nil entry means that the version has no loop of its
// own for that pair, and an earlier version's is taken.
type version struct {
	name   string
	binary [opEnd][typeEnd]func(dst, a, b []byte)
	square [typeEnd]func(dst, src []byte)
	divide [typeEnd]func(dst, src []byte, by int)
	widen  [typeEnd]func(dst, src []byte)
	narrow [typeEnd]func(dst, src []byte)
	fold   [foldEnd]func(dsts, srcs [][]byte, by int, stream bool)
	stream func(dst, src []byte) // a copy past the caches
	matMul func(c, a, b []float32, p Product)

	addRows     [typeEnd]rowsLoop
	addWideRows [typeEnd]rowsLoop
	copyRows    func(dst, src []byte, pairs []uint64, at Rows)

	update [updateEnd][typeEnd]updateLoop

	function  [functionEnd][typeEnd]func(dst, src []byte)
	geluSlope [typeEnd]func(dst, x, g []byte)

	greatest   [typeEnd]func(src []byte) float64
	shiftedExp [typeEnd]func(dst, src []byte, shift float64) float64 // of a segment
	scale      [typeEnd]func(dst, src []byte, by float64)
}

// versions lists every version that this machine can run, slowest first. Tests run them all.
var versions = []*version{goVersion()}

// chosen holds what the package hands out: the fastest loop there is for each entry. It is fixed once package
// initialisation is over.
var chosen = *versions[0]

// register adds a version that this machine can run. A version of a processor calls it from an init function in its own
// file, after asking the processor; of several, the fastest last.
func register(v *version) {
	versions = append(versions, v)
	for op := range v.binary {
		overlay(chosen.binary[op][:], v.binary[op][:])
	}
	overlay(chosen.square[:], v.square[:])
	overlay(chosen.divide[:], v.divide[:])
	overlay(chosen.widen[:], v.widen[:])
	overlay(chosen.narrow[:], v.narrow[:])
	overlay(chosen.fold[:], v.fold[:])
	overlay(chosen.addRows[:], v.addRows[:])
	overlay(chosen.addWideRows[:], v.addWideRows[:])
	for u := range v.update {
		overlay(chosen.update[u][:], v.update[u][:])
	}
	for f := range v.function {
		overlay(chosen.function[f][:], v.function[f][:])
	}
	overlay(chosen.geluSlope[:], v.geluSlope[:])
	overlay(chosen.greatest[:], v.greatest[:])
	overlay(chosen.shiftedExp[:], v.shiftedExp[:])
	overlay(chosen.scale[:], v.scale[:])
	if v.copyRows != nil {
		chosen.copyRows = v.copyRows
	}
	if v.stream != nil {
		chosen.stream = v.stream
	}
	if v.matMul != nil {
		chosen.matMul = v.matMul
	}
	chosen.name = v.name
}

// overlay replaces the functions of under by those of over that are there.
func overlay[F func(_, _, _ []byte) | func(_, _ []byte) | func(_, _ []byte, _ int) | func(_, _ [][]byte, _ int,
	_ bool) | rowsLoop | updateLoop | func(_ []byte) float64 | func(_, _ []byte, _ float64) float64 | func(_,
	_ []byte, _ float64)](
	under, over []F,
) {
	for i, f := range over {
		if f != nil {
			under[i] = f
		}
	}
}

// Version names the fastest version in use, such as "go".
func Version() string { return chosen.name }

// Binary returns the loop dst[i] = a[i] op b[i], or nil when op does not take elements of type t.
func Binary(op Op, t Type) func(dst, a, b []byte) {
	if o := ownOn(op, t); o != nil {
		return o.binary
	}
	if op >= opEnd || t >= typeEnd {
		return nil
	}
	return chosen.binary[op][t]
}

// Square returns the loop dst[i] = src[i] * src[i], or nil when t is not a number.
func Square(t Type) func(dst, src []byte) { return at(&chosen.square, t) }

// Divide returns the loop dst[i] = src[i] / by, or nil when t is not a floating point type. by is rounded to the type
// that the division is made in (Float64 for Float64, else Float32), which changes nothing up to 2^24.
func Divide(t Type) func(dst, src []byte, by int) { return at(&chosen.divide, t) }

// Widen returns the loop dst[i] = Float32(src[i]) with src of type t, or nil when t is not a 16-bit float. dst is twice
// as long as src and must not overlap it.
func Widen(t Type) func(dst, src []byte) { return at(&chosen.widen, t) }

// Narrow returns the loop dst[i] = t(src[i]) with src of type Float32, rounded to nearest even, or nil when t is not a
// 16-bit float. dst is half as long as src and must not overlap it.
func Narrow(t Type) func(dst, src []byte) { return at(&chosen.narrow, t) }

// Copy is copy(dst, src) of as many bytes as dst has; they are the same or do not overlap. stream asks for stores that
// go past the caches, as for a Fold.
func Copy(dst, src []byte, stream bool) {
	src = src[:len(dst)]
	if stream && chosen.stream != nil {
		chosen.stream(dst, src)
		return
	}
	for len(dst) > 0 {
		n := min(len(dst), pieceBytes(2)) // the runtime's copy cannot be interrupted either
		copy(dst[:n], src)
		dst, src = dst[n:], src[n:]
	}
}

// at is loops[t], and nil for a t out of range.
func at[F any](loops *[typeEnd]F, t Type) F {
	if t >= typeEnd {
		t = 0
	}
	return loops[t]
}
