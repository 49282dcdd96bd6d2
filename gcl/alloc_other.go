//go:build !linux

package gcl

// adviseHuge does nothing: the system has no such advice, or needs none.
func adviseHuge([]byte) {}
