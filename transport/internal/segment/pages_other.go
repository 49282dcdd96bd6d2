//go:build !linux || !(amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64)

package segment

import (
	"errors"
	"fmt"
	"runtime"
)

// sharePages fails: see the file for Linux on machines of 64 bits.
func sharePages(int, int, []byte) error {
	return fmt.Errorf("pages in shared memory: %w: this is %s on %s", errors.ErrUnsupported, runtime.GOOS,
		runtime.GOARCH)
}

// unsharePages does nothing: there is nothing to undo.
func unsharePages([]byte) error { return nil }

// retirePages does nothing.
func retirePages(int, int, uintptr, int, *bool) error { return nil }

// removePages does nothing.
func removePages([]byte) {}
