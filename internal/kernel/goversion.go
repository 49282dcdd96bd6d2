package kernel

import "unsafe"

// goVersion is the version in plain Go. It has every loop, and it is what the others are held against.
func goVersion() *version {
	v := &version{name: "go", matMul: goMatMul}
	v.binary[And][Bool] = binaryLoop(and)
	v.binary[Or][Bool] = binaryLoop(or)

	numbers[int8](v, Int8)
	numbers[int16](v, Int16)
	numbers[int32](v, Int32)
	numbers[int64](v, Int64)
	numbers[uint8](v, Uint8)
	numbers[uint16](v, Uint16)
	numbers[uint32](v, Uint32)
	numbers[uint64](v, Uint64)
	numbers[float32](v, Float32)
	numbers[float64](v, Float64)

	v.divide[Float32] = divideLoop(divide[float32])
	v.divide[Float64] = divideLoop(divide[float64])

	halves(v, Float16)
	halves(v, BFloat16)

	v.copyRows = goCopyRows
	updates[float32](v, Float32)
	updates[float64](v, Float64)
	functions[float32](v, Float32)
	functions[float64](v, Float64)
	softmaxes[float32](v, Float32)
	softmaxes[float64](v, Float64)
	for t := Type(1); t < typeEnd; t++ {
		v.addRows[t], v.addWideRows[t] = goAddRows(t), goAddWideRows(t)
	}

	for _, f := range everyFold() {
		if loop := goFold(f); loop != nil {
			v.fold[f.index()] = loop.whole()
		}
	}
	return v
}

// numbers fills in what all numbers that Go can calculate with have in common.
func numbers[T number](v *version, t Type) {
	v.binary[Add][t] = binaryLoop(add[T])
	v.binary[Mul][t] = binaryLoop(mul[T])
	v.binary[Min][t] = binaryLoop(minimum[T])
	v.binary[Max][t] = binaryLoop(maximum[T])
	v.square[t] = unaryLoop(square[T])
}

// halves fills in what the 16-bit floats have.
func halves(v *version, t Type) {
	for _, op := range []Op{Add, Mul, Min, Max} {
		v.binary[op][t] = binaryLoop(func(dst, a, b []uint16) { binary16(op, t, dst, a, b) })
	}
	v.square[t] = unaryLoop(func(dst, src []uint16) { square16(t, dst, src) })
	v.divide[t] = divideLoop(func(dst, src []uint16, by int) { divide16(t, dst, src, by) })
	v.widen[t] = func(dst, src []byte) { widen16(t, view[float32](dst), view[uint16](src)) }
	v.narrow[t] = func(dst, src []byte) { narrow16(t, view[uint16](dst), view[float32](src)) }
}

// binaryLoop makes a loop over elements one over bytes.
func binaryLoop[T number](loop func(dst, a, b []T)) func(dst, a, b []byte) {
	return func(dst, a, b []byte) { loop(view[T](dst), view[T](a), view[T](b)) }
}

// unaryLoop makes a loop over elements one over bytes.
func unaryLoop[T number](loop func(dst, src []T)) func(dst, src []byte) {
	return func(dst, src []byte) { loop(view[T](dst), view[T](src)) }
}

// divideLoop makes a loop over elements one over bytes.
func divideLoop[T number](loop func(dst, src []T, by int)) func(dst, src []byte, by int) {
	return func(dst, src []byte, by int) { loop(view[T](dst), view[T](src), by) }
}

// view is b seen as elements. The caller of the package answers for b's alignment.
func view[T number](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}
