// Package pack lays out several tensors in one stretch of memory, so that one message serves them all, and folds them
// where they lie.
//
// It knows no rank, no schedule and no buffer of a caller's.
package pack
