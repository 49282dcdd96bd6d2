package popops

import (
	"math"
	"sync"
)

// crew is workers with their memory, for one call at a time. The first works on the caller's goroutine, each other on
// one of its own, which ends with the call.
type crew struct {
	call    rowCall
	parts   []part
	scratch []scratch
	start   []func() // start[i] is part i+1; made once, so that a call allocates nothing
	working sync.WaitGroup
}

// newCrew is a crew of so many workers, each of which may sort so many pairs at once.
func newCrew(workers, most int) *crew {
	c := &crew{parts: make([]part, workers), scratch: make([]scratch, workers)}
	for i := range workers {
		c.scratch[i].most = most
		if i > 0 {
			c.start = append(c.start, func() {
				defer c.working.Done()
				c.work(i)
			})
		}
	}
	return c
}

// work does part i.
func (c *crew) work(i int) {
	if c.call.verb == take {
		c.call.take(c.parts[i], &c.scratch[i])
	} else {
		c.call.update(c.parts[i], &c.scratch[i])
	}
}

// run carries out the call in as many parts as are filled in, and forgets it.
func (c *crew) run(parts int) {
	c.working.Add(parts - 1)
	for _, start := range c.start[:parts-1] {
		go start()
	}
	c.work(0)
	c.working.Wait()
	c.call = rowCall{}
}

// alone are crews of one worker, for calls without a plan.
var alone = sync.Pool{New: func() any { return newCrew(1, pairsWithin(defaultProportion, math.MaxInt)) }}

// crews are those of a plan, for as many calls at the same time as there have been.
type crews struct {
	mu      sync.Mutex
	free    []*crew // guarded by mu
	workers int
	most    int // pairs
}

// take is a crew that nobody uses.
func (c *crews) take() *crew {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		crew := c.free[n-1]
		c.free = c.free[:n-1]
		return crew
	}
	return newCrew(c.workers, c.most)
}

// give is a crew back.
func (c *crews) give(crew *crew) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, crew)
}
