package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// pickCores returns a core for each of n replicas, of those in gclrun's affinity mask.
func pickCores(n int) ([]int, error) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		return nil, fmt.Errorf("-bind: which cores gclrun may use: %w", err)
	}
	var cores []int
	for core := 0; len(cores) < own.Count(); core++ {
		if own.IsSet(core) {
			cores = append(cores, core)
		}
	}
	if n > len(cores) {
		return nil, fmt.Errorf("-bind: %d replicas, but gclrun may use %d cores only", n, len(cores))
	}
	return spread(cores, siblings)[:n], nil
}

// spread puts hardware threads that share a core behind those that have one to themselves: first the first thread of
// each core, then the second of each.
//
//	cores 0 1 2 3, of which 0 and 1 share, and 2 and 3   ->   0 2 1 3
func spread(cores []int, siblings func(core int) string) []int {
	turn := map[int]int{} // by core: how many of its siblings come before it
	seen := map[string]int{}
	for _, core := range cores {
		with := siblings(core)
		turn[core] = seen[with]
		seen[with]++
	}
	out := slices.Clone(cores)
	slices.SortStableFunc(out, func(a, b int) int { return turn[a] - turn[b] })
	return out
}

// siblings names the hardware threads of a core, as in "0,4". Where the kernel does not say, the core is alone.
func siblings(core int) string {
	text, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", core))
	if err != nil {
		return fmt.Sprintf("%d\n", core)
	}
	return string(text)
}

// onCore calls start while the calling thread is bound to a core, which a process that start makes inherits. The
// goroutine must be locked to its thread: then the runtime makes new threads from another one, and they stay free.
func onCore(core int, start func() error) (err error) {
	var own, one unix.CPUSet
	one.Set(core)
	if err := errors.Join(unix.SchedGetaffinity(0, &own), unix.SchedSetaffinity(0, &one)); err != nil {
		return fmt.Errorf("-bind: core %d: %w", core, err)
	}
	defer func() {
		if back := unix.SchedSetaffinity(0, &own); back != nil {
			err = errors.Join(err, fmt.Errorf("-bind: back to all cores: %w", back))
		}
	}()
	return start()
}
