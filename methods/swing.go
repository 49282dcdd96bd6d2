package methods

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"gogcl.dev/methods/schedule"
)

// maxSwingRanks bounds the schedules of Swing, whose steps grow with the square of the ranks: 1024 on a ring have 3.1
// million.
const maxSwingRanks = 1 << 10

// Swing returns the schedule of an all-reduce by Swing on a torus of dims, whose ranks are numbered with the first
// dimension fastest, as in cost.Torus. It is a reduce-scatter, each step of which halves the chunks that a rank still
// has to do with, and an all-gather that takes the same steps back. The chunks that a rank sends in a step do not lie
// side by side: each run of them is a message. In step s of one dimension even places exchange with the place
//
//	rho(s) = 1 - 2 + 4 - ... + (-2)^s = 1, -1, 3, -5, 11, ...
//
// further, and odd ones with that as far back: partners are nearer than those of recursive doubling, at 1, 2, 4, 8.
// Steps are taken in the dimensions by turns. If concurrent, the data is cut in two parts for each dimension, all of
// which go at once: the first two begin in dimension 0, the next two in dimension 1, and of each two one goes the other
// way round. So all links are in use.
//
// See De Sensi, Bonato, Saam and Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth Allreduce", NSDI 2024.
//
// Errors: no dimensions, one of less than 1 place; one that is no power of two, which is errors.ErrUnsupported; fewer
// than 2 ranks, or more than 1024.
func Swing(dims []int, concurrent bool) (*schedule.Schedule, error) {
	s, err := swingSchedule(dims, concurrent)
	if err != nil {
		return nil, fmt.Errorf("methods: %w", err)
	}
	return s, nil
}

// swingSchedule is Swing with errors for a Prover, which has its own beginning for them.
func swingSchedule(dims []int, concurrent bool) (*schedule.Schedule, error) {
	size, parts, err := swing(dims, concurrent, maxSwingRanks)
	if err != nil {
		return nil, err
	}
	b := schedule.NewBuilder(schedule.AllReduce, size, 0, size*len(parts))
	for i, steps := range parts {
		all := 2 * len(steps)
		// kept holds, by rank, the chunks that a rank still has to do with after a step, from the last step on.
		kept := make([][]bool, size)
		for rank := range kept {
			kept[rank] = make([]bool, size)
			kept[rank][rank] = true
		}
		for s, step := range slices.Backward(steps) {
			before := make([][]bool, size)
			for rank := range size {
				partner := step.partner(rank)
				runs(kept[partner], func(first, n int) { b.Fold(s, rank, partner, i*size+first, n) })
				runs(kept[rank], func(first, n int) { b.Copy(all-1-s, rank, partner, i*size+first, n) })
				before[rank] = make([]bool, size)
				for chunk := range size {
					before[rank][chunk] = kept[rank][chunk] || kept[partner][chunk]
				}
			}
			kept = before
		}
	}
	return b.Build()
}

// SwingTorus returns the Generator of the all-reduce by [Swing], for groups of 2 to 1024 ranks on a torus of dims. One
// that is 0 is chosen from the number of ranks, so that the dimensions are as alike as can be. Without any the ranks
// are a ring. A dimension that is no power of two, and ranks that the dimensions do not fit, are an error that is
// errors.ErrUnsupported. A dimension below 0 or of 1 is an error.
//
//	D dimensions, N ranks, n bytes   chunks   rounds      sent by each rank
//	one alone                        N        2 log2 N    2n (N-1)/N
//	concurrent                       2D N     2 log2 N    2n (N-1)/N
//
// Messages are many: one for each run of chunks that lie side by side. Each element is combined on one rank, and not in
// the order of the ranks. So the Generator does no request with RankOrder.
//
//	all-reduce, 8 ranks, 8 chunks, 6 rounds
//	round   0   1     2       3       4     5
//	chunks  4   2     1       1       2     4
//	rank 0 ─⊕─ ───⊕─ ─⊕───── ─▲───── ───▲─ ─▲─
//	        │     │   │       │         │   │
//	rank 1 ─⊕─ ─⊕─│─ ─│───⊕─ ─│───▲─ ─▲─│─ ─▼─
//	            │ │   │   │   │   │   │ │
//	rank 2 ─⊕─ ─⊕─│─ ─│─⊕─│─ ─│─▲─│─ ─▼─│─ ─▲─
//	        │     │   │ │ │   │ │ │     │   │
//	rank 3 ─⊕─ ─⊕─│─ ─⊕─│─│─ ─▼─│─│─ ─▲─│─ ─▼─
//	            │ │     │ │     │ │   │ │
//	rank 4 ─⊕─ ─⊕─│─ ─⊕─│─│─ ─▲─│─│─ ─▼─│─ ─▲─
//	        │     │   │ │ │   │ │ │     │   │
//	rank 5 ─⊕─ ─⊕─│─ ─│─⊕─│─ ─│─▼─│─ ─▲─│─ ─▼─
//	            │ │   │   │   │   │   │ │
//	rank 6 ─⊕─ ─⊕─│─ ─│───⊕─ ─│───▼─ ─▼─│─ ─▲─
//	        │     │   │       │         │   │
//	rank 7 ─⊕─ ───⊕─ ─⊕───── ─▼───── ───▼─ ─▼─
//
//	all-reduce, 4 ranks, 16 chunks, 4 rounds
//	round   0       1       2       3
//	chunks  4       2       2       4
//	rank 0 ─⊕─⊕─── ─⊕─⊕─── ─▲─▲─── ─▲─▲───
//	        │ │     │ │     │ │     │ │
//	rank 1 ─⊕─│─⊕─ ─⊕─│─⊕─ ─▼─│─▲─ ─▼─│─▲─
//	          │ │     │ │     │ │     │ │
//	rank 2 ─⊕─⊕─│─ ─⊕─⊕─│─ ─▲─▼─│─ ─▲─▼─│─
//	        │   │   │   │   │   │   │   │
//	rank 3 ─⊕───⊕─ ─⊕───⊕─ ─▼───▼─ ─▼───▼─
//
//shape:swing all-reduce 8
//shape:swing_2d all-reduce 4
func SwingTorus(concurrent bool, dims ...int) Generator {
	dims = slices.Clone(dims)
	if len(dims) == 0 {
		dims = []int{0}
	}
	fit := func(r Request) ([]int, error) {
		if err := r.only(schedule.AllReduce); err != nil {
			return nil, err
		}
		dims, err := fitDims(dims, r.Size)
		if err != nil {
			return nil, err
		}
		return dims, nil
	}
	within := func(r Request) ([]int, error) {
		dims, err := fit(r)
		if err == nil && r.Size > maxSwingRanks {
			err = fmt.Errorf("swing among %d ranks, want at most %d: %w", r.Size, maxSwingRanks,
				errors.ErrUnsupported)
		}
		return dims, err
	}
	return described{
		func(r Request) (*schedule.Schedule, error) {
			dims, err := within(r)
			if err != nil {
				return nil, err
			}
			return swingSchedule(dims, concurrent)
		},
		func(r Request) (*schedule.Traffic, error) {
			dims, err := fit(r)
			if err != nil {
				return nil, err
			}
			return swingTraffic(dims, concurrent)
		},
		func(r Request) error {
			dims, err := within(r)
			if err == nil {
				_, _, err = swing(dims, concurrent, maxSwingRanks)
			}
			return err
		},
	}
}

// runs calls do for each run of true.
func runs(set []bool, do func(first, n int)) {
	for i := 0; i < len(set); i++ {
		first := i
		for i < len(set) && set[i] {
			i++
		}
		if i > first {
			do(first, i-first)
		}
	}
}

// SwingTraffic returns the messages of [Swing], described without steps: all chunks from one rank to another in one
// message. Errors are those of Swing, but for up to 65536 ranks.
func SwingTraffic(dims []int, concurrent bool) (*schedule.Traffic, error) {
	t, err := swingTraffic(dims, concurrent)
	if err != nil {
		return nil, fmt.Errorf("methods: %w", err)
	}
	return t, nil
}

// swingTraffic is SwingTraffic with errors for others to complete.
func swingTraffic(dims []int, concurrent bool) (*schedule.Traffic, error) {
	size, parts, err := swing(dims, concurrent, maxRanks)
	if err != nil {
		return nil, err
	}
	t := &schedule.Traffic{Size: size, Chunks: size * len(parts)}
	count := len(parts[0])
	for s := range count {
		t.Rounds = append(t.Rounds, swingRound(parts, s, size>>(s+1), true))
	}
	for s := count - 1; s >= 0; s-- {
		t.Rounds = append(t.Rounds, swingRound(parts, s, size>>(s+1), false))
	}
	return t, nil
}

// swingRound is step s of all parts.
func swingRound(parts [][]swingStep, s, chunks int, fold bool) schedule.Alike {
	alike := schedule.Alike{Times: 1}
	for _, steps := range parts {
		alike.Flows = append(alike.Flows, schedule.Flow{Stride: steps[s].stride, Radix: steps[s].places,
			Move: steps[s].move, Alternate: true, Chunks: chunks, Fold: fold})
	}
	return alike
}

// swingStep is an exchange along one dimension: even places with the one move further, odd ones with that as far back.
type swingStep struct {
	stride, places int // of the dimension
	move           int
}

func (s swingStep) partner(rank int) int {
	at := rank / s.stride % s.places
	move := s.move
	if at%2 == 1 {
		move = -move
	}
	return rank + ((at+move)%s.places+s.places)%s.places*s.stride - at*s.stride
}

// swing is the number of ranks, and for each part of the data its steps, all as many.
func swing(dims []int, concurrent bool, most int) (size int, parts [][]swingStep, err error) {
	if len(dims) == 0 {
		return 0, nil, errors.New("swing on a torus without dimensions")
	}
	size = 1
	for i, d := range dims {
		if d < 1 {
			return 0, nil, fmt.Errorf("swing with %d places in dimension %d, want a power of two", d, i)
		}
		if d&(d-1) != 0 {
			return 0, nil, fmt.Errorf("swing with %d places in dimension %d, want a power of two: %w", d, i,
				errors.ErrUnsupported)
		}
		if d > most/size {
			return 0, nil, fmt.Errorf("swing on a torus of %v: more than %d ranks", dims, most)
		}
		size *= d
	}
	if size < 2 {
		return 0, nil, fmt.Errorf("swing on a torus of %v: 1 rank, want 2 or more", dims)
	}
	begins, ways := 1, []int{1}
	if concurrent {
		begins, ways = len(dims), []int{1, -1}
	}
	for begin := range begins {
		for _, way := range ways {
			parts = append(parts, swingSteps(dims, begin, way))
		}
	}
	return size, parts, nil
}

// swingSteps are those of one part, which begins in a dimension and goes one way round or the other.
func swingSteps(dims []int, begin, way int) []swingStep {
	var out []swingStep
	taken := make([]int, len(dims))
	rho := make([]int, len(dims)) // of the next step
	left, strides := 0, make([]int, len(dims))
	for i, stride := 0, 1; i < len(dims); i++ {
		strides[i], rho[i] = stride, 1
		stride *= dims[i]
		left += bits.Len(uint(dims[i])) - 1
	}
	for turn := begin; left > 0; turn++ {
		i := turn % len(dims)
		if 1<<taken[i] == dims[i] {
			continue
		}
		out = append(out, swingStep{strides[i], dims[i], way * rho[i]})
		rho[i] = 1 - 2*rho[i]
		taken[i]++
		left--
	}
	return out
}
