package main

import (
	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// newBuffer makes the buffer of a replica: n elements in huge pages from 2 MiB up where the system allows. free gives
// it back.
func newBuffer[T tensor.Element](c *gcl.Comm, n int) (buffer []T, free func(), err error) {
	buffer, err = gcl.Alloc[T](c, n)
	if err != nil {
		return nil, nil, err
	}
	return buffer, func() { _ = gcl.Free(c, buffer) }, nil // of what Alloc gave, once
}
