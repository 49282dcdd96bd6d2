//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

// init registers what this processor can run. No arm64 that Go runs on is without ASIMD; but GODEBUG may hide it.
func init() {
	if cpu.ARM64.HasASIMD {
		register(neonTable().version())
	}
}
