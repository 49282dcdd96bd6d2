//go:build unix

package main

import "golang.org/x/sys/unix"

// cpuSeconds is how long processors have worked for this process so far.
func cpuSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return -1
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
