//go:build unix

package inproc

import "golang.org/x/sys/unix"

// processorsTaken is how often the kernel has taken a processor from a thread of this process that wanted to go on.
func processorsTaken() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return int64(u.Nivcsw)
}
