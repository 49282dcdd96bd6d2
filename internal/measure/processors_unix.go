//go:build unix

package measure

import "golang.org/x/sys/unix"

// CPUSeconds is how long processors have worked for this process so far, or -1 where that is not known.
func CPUSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return -1
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
