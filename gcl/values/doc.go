// Package values has collectives on Go values of any type: maps, structs, strings, interfaces.
//
//	counts := map[string]int{} // of the words that this replica has read
//	all, err := values.Reduce(ctx, c, counts, 0, func(a, b map[string]int) map[string]int {
//		for word, n := range b {
//			a[word] += n
//		}
//		return a
//	})
//
// Values travel as package encoding/gob encodes them, or by the MarshalBinary and UnmarshalBinary, or GobEncode and
// GobDecode, of their type. So fields that are not exported stay behind; the dynamic types in interfaces are to be
// registered with [gob.Register], on all replicas; a value may be nil; functions and channels are errors, except as
// fields, which stay behind. An empty slice or map may arrive as nil. Within a value gob leaves out fields that are
// zero: so a field that points to zero arrives as nil, and -0.0 in a field as 0. A value that leads back to itself is
// an error. Every replica gets copies, of its own value too. Slices of numbers go faster by package gcl.
//
// # Rules
//
// All members of the group make the same calls in the same order, of the same type and root, as in package gcl, and
// take turns with calls of that. A difference is gcl.ErrMismatch on all members, and the text names both.
//
// A value that cannot be encoded or decoded, one of more than [MaxBytes], and a function that panics are an error on
// all members at once, which names the replica; on that replica it wraps the cause. Nobody waits, and the Comm stays
// usable. Any other error is one of the collectives of package gcl, which carry the bytes.
//
// A call makes three collectives: one that compares, one that moves the bytes, one that tells that all went well.
package values
