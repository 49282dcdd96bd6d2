// Package popops takes slices of tensors at offsets that are known only when it runs, and writes, adds or compares
// slices back: one at a time, or rows of a table by a list of look-ups, as an embedding does.
//
//	table, 5 rows          offsets 3, 1, 3               MultiSlice            MultiUpdateAdd, scale 1
//	0  a a a                                             3  d d d
//	1  b b b               one row for each look-up      1  b b b              1  b b b + s1
//	2  c c c                                             3  d d d
//	3  d d d                                                                   3  (d d d + s0) + s2
//	4  e e e
//
//	err := popops.MultiSliceInto(rows, table, offsets, []int{0}, []int{1}, plan, popops.Options{})
//	err = popops.MultiUpdateAdd(table, grads, offsets, rate, []int{0}, []int{1}, plan, popops.Options{})
//
// It is the DynamicSlice interface of poplibs: docs/design/popops.md has each of its functions by name. The package
// knows tensors and element-wise loops, and nothing of replicas or programs.
//
// # Parameters
//
// t is what is sliced, dims the dimensions that are, and sizes how much of each; of the others a slice has all. Offsets
// are of uint32 or int32. Functions whose names end in At take offsets as a []int, which the host knows, and find one
// that is out of range at once. SliceRows and the other functions on rows are for who has slices of Go.
//
// # Rules
//
//   - Bad input is an error before anything is written. It names what is wrong and what would be right.
//   - What is written shares no memory with what is read.
//   - The functions that write to the caller's tensors allocate nothing once a call like it has been made. The memory
//     that they need is the plan's; without a plan it comes from a pool, which the garbage collector may empty.
//   - Results never depend on the plan, on the number of workers, or on the processor: all bits are those of the
//     look-ups in their order.
//   - Several calls may run at the same time, also with one plan, as long as none writes what another uses.
//
// # Plans
//
// Without a plan a call runs on the caller's goroutine. A [Plan], made for a table and numbers of look-ups, has several
// workers share it, when its cost model thinks that worth while: look-ups are split by look-ups, updates by rows of the
// table, so that each row has one worker and its updates an order, or by columns where all look-ups are of one row.
//
// # Files
//
//	functions   dynamic    one slice: DynamicSlice, DynamicUpdate
//	            multi      several slices of tensors, and rows of slices of Go
//	            create     tensors that are spread over workers
//	            options    Options, PlanOptions, and their text
//	plans       plan       Plan, and its text
//	            cost       the ways to split a call, and the seconds of each
//	            mapping    the elements of each worker
//	arguments   check      tensors, options and plan go together
//	            window     dims, sizes and offsets: the place of a slice in its tensor
//	execution   multicall  a call of multi: its checks, then rows or blocks
//	            blocks     slices of any form, as runs of elements
//	            rowcall    slices that are rows: a call, its parts, the workers
//	            scratch    the updates of one worker, in their order or sorted
package popops
