// Package tensor holds what the collectives move: element types, shapes, and tensors whose type is known at run time.
//
// A [DType] is an element type as a value, [Element] the constraint that all of them satisfy, [DTypeOf] the way from
// one to the other. A [Tensor] is a dtype, a [Shape] and bytes; its elements lie in row-major order, densely:
//
//	x, err := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
//
//	shape (2, 3)      x[0,0] x[0,1] x[0,2]      bytes  | 1 | 2 | 3 | 4 | 5 | 6 |
//	                  x[1,0] x[1,1] x[1,2]              x[i,j] is element 3*i + j
//
// The package knows nothing of replicas and calculates nothing: it stores, views and describes.
//
// # Rules for a caller
//
//   - Bytes are in the byte order of the host. Nothing here converts between orders; replicas are of one order.
//   - [Bytes], [FromBytes], [FromSlice], [View], [Of] and [Rows] copy nothing: both sides are the same memory, who
//     writes to one writes to the other. A Tensor has no lock.
//   - A bool is a byte of 0 or 1. Bytes of any other value are refused where they come in, and must not be written
//     through a view.
//   - A Float16 or BFloat16 is its bits: Float16(1) is not one but the smallest subnormal. Use [Float16FromFloat32].
//
// A caller's mistake is an error that names both sides of what disagrees; only an index out of range panics, as in Go.
package tensor
