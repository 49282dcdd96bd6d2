//go:build unix

package measure

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// reserve asks the system for memory and gives it back. The error is the system's.
func reserve(bytes float64) error {
	if bytes >= math.MaxInt {
		return os.NewSyscallError("mmap", unix.ENOMEM)
	}
	memory, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	return os.NewSyscallError("munmap", unix.Munmap(memory))
}
