// Package kernel holds the loops that everything else spends its time in: dst = a op b over bytes, element by element,
// and products of matrices.
//
// It knows element types and operators, and nothing of replicas, tensors or groups. A caller asks once for the function
// it needs and then runs it on as many buffers as it likes:
//
//	fold := kernel.Binary(kernel.Add, kernel.Float32) // nil: no such operator on this type
//	fold(dst, a, b)                                   // dst[i] = a[i] + b[i]
//
// # What there is
//
//	          Bool   integers   Float16, BFloat16              Float32, Float64
//	Add        -     wraps      in float32, rounded            IEEE
//	Mul        -     wraps      in float32, rounded            IEEE
//	Min, Max   -     yes        as Float32                     NaN if any operand is, -0 < +0
//	And, Or    yes   -          -                              -
//	AddRows    -     wraps      in float32, rounded            IEEE, of rows of a table by a list of pairs
//	Square     -     wraps      in float32, rounded            IEEE
//	Divide     -     -          in float32, rounded            IEEE, a true division
//	Widen      -     -          to Float32                     -
//	Narrow     -     -          from Float32, nearest even     -
//	Function   -     -          -                              in float64: Exp, Tanh, Gelu and others
//	Scale      -     -          -                              in float64
//
// A [Fold] does Add to Or on several sources at once and stores to several destinations, in one pass through memory:
//
//	fold := kernel.Fold{Op: kernel.Add, Type: kernel.Float32}.Loop()
//	fold(dsts, srcs, 8, false) // every dst[i] = (srcs[0][i] + srcs[1][i] + ...) / 8
//
// [MatMul] multiplies matrices of Float32, and an [Update] is a step of an optimiser on Float32 or Float64.
// [Exponentials] are a row of a softmax before it is divided by their sum. Neon has none of these of its own, and no
// [Function].
//
// # Versions
//
//	go       plain Go; what the others are held against
//	avx2     amd64 with AVX2 and F16C; what does not fill a register of 32 bytes is left to go
//	avx512   amd64 with AVX-512 F, BW, DQ and VL, and BMI2
//	neon     arm64; what does not fill a register of 16 bytes is left to go, and so are products of 64-bit integers, for
//	         which there is no instruction
//
// The fastest is chosen once, when the program starts; [Version] names it. With the build tag noasm, and on other
// processors, it is go. GODEBUG=cpu.avx512f=off, cpu.avx2=off or cpu.asimd=off takes one away.
//
// What neon computes has been tested under qemu; how fast it is nobody has measured. It has no stores that go past the
// caches, where Fold and [Copy] speak of them.
//
// The assembly has been generated, by the module in the folder gen; go generate does it again, with the same bytes as
// result. It cannot be interrupted, so no call of it touches more than 256 KiB: about 50 microseconds in the worst
// case.
//
// # Every version gives the same bits
//
// Replicas that run different versions must agree to the bit. Rounding is IEEE's, to nearest even, subnormals are kept
// (but for what an Update says of tiny values), and what IEEE leaves open is settled here: a NaN that an operator
// yields (Add, Mul, Min, Max, Square, Divide, an Update, a Function, Scale) is always the canonical one of its type,
// whatever NaNs went in. Hence all of Add, Mul, Min and Max are commutative to the bit.
//
//	Float16 0x7e00   BFloat16 0x7fc0   Float32 0x7fc00000   Float64 0x7ff8000000000000
//
// Conversions carry a NaN's sign and its leading payload bits over; see [F16ToF32], [F32ToF16], [BF16ToF32] and
// [F32ToBF16] for which of them make it quiet.
//
// # Rules for a caller
//
//   - Slices of one call have equal length, a multiple of the element size (Widen and Narrow: equally many elements).
//     A broken rule may panic or leave elements out; it never reads or writes outside the slices.
//   - Every slice starts at an address aligned for its element type, as Go aligns a []T.
//   - dst may be an operand (the same start). Any other overlap gives unspecified values.
//   - Elements are in the byte order of the host.
//   - A Bool is a byte: any but 0 counts as true, and results are 0 or 1.
//
// Functions of this package allocate nothing, and the ones they hand out neither. All are safe for concurrent use.
package kernel

//go:generate sh -c "cd gen && go run . -out .."
