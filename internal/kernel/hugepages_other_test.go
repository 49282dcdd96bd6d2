//go:build !linux

package kernel

func hugePages(n int) []byte { return aligned(n) }

func freePages([]byte) {}
