// Package slice has the dynamic slices of package popops as operations of programs of package ir, with gradients.
//
// A [Form] says what slices are, and has a method for each thing to do with them, by the rules of the functions of
// popops that its kind names. What changes a tensor there returns a new one here, which has a gradient, or with InPlace
// in its name changes it where it lies, as [ops.Accumulate] does:
//
//	rows := slice.Form{Kind: slice.Multi, Dims: []int{0}, Sizes: []int{1}}
//	found := rows.Slice(table, words) // (n, 1, width)
//	table = rows.UpdateAddInPlace(table, dRows, words, minusRate)
//
// Shapes, types, plans and options are checked when the program is built, as is that what is changed shares no memory
// with what is read, and an error has the caller's line; what depends on the offsets is checked when it runs:
// an offset out of range of a slice by [Dynamic], ValidateIndices, IndicesAreSorted. A plan may be given to several
// operations, on all replicas: each makes itself one like it, with memory of its own. Without a plan, slices by single
// entries of one dimension (rows) have one of a single worker. All memory is taken when the session is made, and a run
// allocates nothing; only slices of several dimensions, or of several entries, of 16-bit floats that are added use
// memory that calls share, which the garbage collector may take away between runs.
//
// # Gradients
//
// Offsets have none. y is the output, dy its gradient; slices(dy) are those of dy at the same offsets, and zeros out of
// range; "this was the last" is of each element.
//
//	operation     gradients
//	Slice         dt = zeros, updated with dy at the same place (Dynamic: it wraps around as the slice has)
//	              or to which dy is added by UpdateAdd (Multi)
//	Update        dt = dy, zeros where it was updated    ds = slices(dy) where this was the last, else zeros
//	UpdateAdd     dt = dy    ds = scale * slices(dy)     dscale = the sum of s * slices(dy)
//	UpdateMax     dt, ds = dy for the first to have the greatest value, t before s, and s in the order
//	              of the offsets; zeros for all others; +0 is greater than -0, and a NaN than all else
//
// They are operations of this package and package ir, and have gradients themselves, all but that of UpdateMax.
// What is in place has none. In the gradient of an update that adds, what has an offset out of range counts as zeros,
// whatever it is.
//
// A Slice, Update or UpdateAdd that is part of a gradient uses the plan of its operation where it is one for
// that too, and else one made for it, with as many workers, the same memory and distribution. What finds the last and
// the first to be the greatest goes by rows with a single worker, and uses no plan. Options are those of the operation,
// so offsets that IndicesAreSorted promises to be sorted must be, if a gradient updates by them; but a PartialType is
// only of what adds, and what a slice takes no notice of is no error of its gradient: a PartialType that sums of the
// type cannot have, and IndicesAreSorted with other than one dimension.
//
// # Rows of a table
//
// The rows of a table that indices of shape (n) name are what Slice of the form above gives for offsets (n, 1), with
// ValidateIndices if one out of range is to be an error, but for a dimension of 1 in the result.
package slice
