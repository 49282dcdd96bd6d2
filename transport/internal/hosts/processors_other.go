//go:build !linux

package hosts

import "runtime"

// Processors are the numbers of those that the process may run on.
func Processors() (out []int) {
	for cpu := range runtime.NumCPU() {
		out = append(out, cpu)
	}
	return out
}
