package main

import (
	"context"
	"runtime"

	"gogcl.dev/internal/measure"
)

// taken is what a call takes of this process, at its first replica: all replicas of the process together. The others
// have 0.
type taken struct {
	allocs  float64
	cpu     float64 // seconds of processors
	unknown float64 // 1: cpu is not known
}

// reading is what this process has used so far, at its first replica.
//
//	calls   barrier   arrived   allocations   barrier   leaving   calls
type reading struct {
	arrived, leaving float64 // seconds of processors, -1: not known
	mallocs          uint64
}

// reading reads between calls. None of them allocates while it counts, and counting is none of their time.
func (r *runner) reading(ctx context.Context) (now reading, err error) {
	if err := r.Clerk.Barrier(ctx); err != nil {
		return now, err
	}
	if r.first() {
		now.arrived = measure.CPUSeconds()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		now.mallocs = m.Mallocs
	}
	if err := r.Clerk.Barrier(ctx); err != nil {
		return now, err
	}
	if r.first() {
		now.leaving = measure.CPUSeconds()
	}
	return now, nil
}

// until is what each of some calls took between two readings.
func (r reading) until(after reading, calls int) (u taken) {
	u.allocs = float64(after.mallocs-r.mallocs) / float64(calls)
	if u.cpu = (after.arrived - r.leaving) / float64(calls); r.leaving < 0 || after.arrived < 0 {
		u.cpu, u.unknown = 0, 1
	}
	return u
}

// medianTaken is the median over parts of the time: what is made once and kept, such as room for one more message in
// flight, is none of a call's.
func medianTaken(all []taken) (u taken) {
	var allocs, cpu []float64
	for _, one := range all {
		allocs, cpu, u.unknown = append(allocs, one.allocs), append(cpu, one.cpu), max(u.unknown, one.unknown)
	}
	u.allocs, u.cpu = measure.Median(allocs), measure.Median(cpu)
	return u
}
