package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// ends is how the replicas of a job are ended: each at a step, and a while after.
type ends struct {
	stop    bool // the one victim is stopped, until the others have ended
	victims []int
	at      []int
	after   []time.Duration
}

// plan decides by a seed.
func (s *surviving) plan(seed uint64) (o surviveOrder, e ends) {
	r := rand.New(rand.NewPCG(seed, 34))
	o.Size, o.Steps = 2+r.IntN(6), s.steps
	if s.processes > 0 {
		o.Size = s.processes
	}
	o.Transport = networks[1+r.IntN(len(networks)-1)]
	if s.network != "" {
		o.Transport = s.network
	}
	many := 1
	switch k := r.IntN(10); {
	case s.single:
	case k < 2 && o.Size > 2:
		e.stop, o.Silence = true, surviveSilence
	case k < 6:
		many = 1 + r.IntN(o.Size-1)
	}
	e.victims = r.Perm(o.Size)[:many]
	at := r.IntN(s.steps / 2)
	for range e.victims {
		e.at = append(e.at, at)
		e.after = append(e.after, time.Duration(r.Int64N(int64(20*time.Millisecond))))
		if r.IntN(2) == 0 { // the next one not at the same time
			at = r.IntN(s.steps / 2)
		}
	}
	if s.grow || !s.single && !e.stop && r.IntN(2) == 0 {
		o.Comers = many
	}
	if len(s.hosts) > 0 {
		s.overHosts(&o, &e)
	}
	return o, e
}

// overHosts has more than half of the replicas go on: over several hosts fewer may not. Others come where the job
// meets, so only while replica 0 lives.
func (s *surviving) overHosts(o *surviveOrder, e *ends) {
	o.Transport = "auto"
	if o.Size == 2 {
		o.Size = 3
	}
	many := min(len(e.victims), (o.Size-1)/2)
	e.victims, e.at, e.after = e.victims[:many], e.at[:many], e.after[:many]
	o.Comers = min(o.Comers, many)
	if slices.Contains(e.victims, 0) {
		o.Comers = 0
	}
}
