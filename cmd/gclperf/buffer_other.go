//go:build !linux

package main

import (
	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// newBuffer makes the buffer of a replica, of n elements.
//
// It is the one place where buffers come from; gcl.Alloc is to take its place.
func newBuffer[T tensor.Element](_ *gcl.Comm, n int) (buffer []T, free func(), err error) {
	return make([]T, n), func() {}, nil
}
