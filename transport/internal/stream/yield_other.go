//go:build !linux

package stream

// YieldProcessor would let another thread have the processor.
func YieldProcessor() {}
