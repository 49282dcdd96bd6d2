package hosts

import "golang.org/x/sys/unix"

// Processors are the numbers of those that the process may run on, nil if the system does not tell.
func Processors() (out []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for cpu := 0; len(out) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			out = append(out, cpu)
		}
	}
	return out
}
