package main

import (
	"io/fs"
	"strconv"
	"strings"
)

// cpuTimes are the clock ticks since the start of the machine, of all its processors together, and of this process.
type cpuTimes struct {
	all, busy float64 // busy: neither idle nor waiting for a disk; what the hypervisor took is busy too
	own       float64 // of this process' threads
	cores     int
	known     bool
}

// readTimes reads what Linux has under its root. On other systems nothing is known.
func readTimes(root fs.FS) (t cpuTimes) {
	machine, err1 := fs.ReadFile(root, "proc/stat")
	self, err2 := fs.ReadFile(root, "proc/self/stat")
	if err1 != nil || err2 != nil {
		return t
	}
	for line := range strings.Lines(string(machine)) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 9 && f[0] == "cpu": // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user
			for i, text := range f[1:9] {
				n, _ := strconv.ParseFloat(text, 64) // 0: counts for nothing
				if t.all += n; i != 3 && i != 4 {
					t.busy += n
				}
			}
		case len(f) > 0 && strings.HasPrefix(f[0], "cpu"):
			t.cores++
		}
	}
	// The name of the program, in brackets, may have anything in it. The fields behind it begin with the third.
	f := strings.Fields(string(self[strings.LastIndexByte(string(self), ')')+1:]))
	if len(f) < 13 {
		return cpuTimes{}
	}
	user, err1 := strconv.ParseFloat(f[11], 64)
	system, err2 := strconv.ParseFloat(f[12], 64)
	t.own = user + system
	t.known = t.cores > 0 && err1 == nil && err2 == nil
	return t
}

// loadOf is how many processors other programs kept busy between two times, during which the processes of this host
// that measure were busy for own ticks. It is -1 where that is not known. Ticks are long, 10 ms mostly: what is shorter
// than some of them gives a rough number.
func loadOf(before, after cpuTimes, own float64) float64 {
	all := after.all - before.all
	if !before.known || !after.known || !(all > 0) {
		return -1
	}
	return max(after.busy-before.busy-own, 0) / (all / float64(after.cores))
}
