//go:build !linux

package stream

// yieldProcessor would let another thread have the processor.
func yieldProcessor() {}
