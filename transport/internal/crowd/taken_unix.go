//go:build unix

package crowd

import "golang.org/x/sys/unix"

// Taken is how often the kernel has taken a processor from a thread of this process that wanted to go on.
func Taken() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return int64(u.Nivcsw)
}
