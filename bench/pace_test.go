package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/gcl"
)

// looper says whether to go on: a *testing.B, or a count.
type looper interface{ Loop() bool }

// times is a looper that goes on a number of times.
type times int

func (n *times) Loop() bool {
	*n--
	return *n >= 0
}

// pace keeps replicas at the same number of calls, though only replica 0 knows when the benchmark ends: it tells the
// others ahead, now and then, how many calls there will be at least, and in the end makes good on it. Nobody waits and
// nothing is allocated for it.
type pace struct {
	ahead int64
	limit atomic.Int64 // how many calls there will be, at least
	over  atomic.Bool  // how many there will be in all is limit
}

// newPace makes a pace for calls of a size: short calls are announced many at a time.
func newPace(size byteSize) *pace {
	p := &pace{ahead: 64}
	if size > 32<<10 {
		p.ahead = 2
	}
	p.limit.Store(p.ahead)
	return p
}

// lead calls do for as long as l says, and a few times more outside of it.
func (p *pace) lead(l looper, do func() error) error {
	defer p.over.Store(true) // on an error too, lest the others wait for ever
	limit, done := p.limit.Load(), int64(0)
	for l.Loop() {
		if limit-done <= p.ahead/2 {
			limit += p.ahead
			p.limit.Store(limit)
		}
		if err := do(); err != nil {
			return err
		}
		done++
	}
	for ; done < limit; done++ {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// follow calls do as often as the leader does.
func (p *pace) follow(do func() error) error {
	limit := int64(0)
	for done := int64(0); ; done++ {
		for done == limit {
			over := p.over.Load() // before limit, which changes no more once it is true
			limit = p.limit.Load()
			if done == limit {
				if over {
					return nil
				}
				runtime.Gosched()
			}
		}
		if err := do(); err != nil {
			return err
		}
	}
}

// warmUp makes, outside the timing, what is made once and kept: plans, and whatever a replica needs when it parks, for
// which every replica is late once.
func warmUp(c *gcl.Comm, do func() error) error {
	for range 3 {
		if err := do(); err != nil {
			return err
		}
	}
	for late := range c.Size() {
		if late == c.Rank() {
			time.Sleep(3 * time.Millisecond) // longer than it takes until a transport looks what keeps the others
		}
		if err := do(); err != nil {
			return err
		}
	}
	if c.Rank() == 0 {
		runtime.GC() // now rather than later
		stockUp()
	}
	return nil
}

// stockUp has the runtime keep a stock of what goroutines wait with, a small object each. A processor takes it from
// its own stock of up to 128, and where the goroutine wakes it goes to that processor's: until all are full, replicas
// that move between processors allocate now and then, which is not a call's doing.
func stockUp() {
	var all sync.WaitGroup
	var come atomic.Int64
	gate, n := make(chan struct{}), int64(256*runtime.GOMAXPROCS(0))
	for range n {
		all.Go(func() {
			come.Add(1)
			<-gate
		})
	}
	for come.Load() < n { // on a busy machine a fixed time is too short for some
		time.Sleep(100 * time.Microsecond)
	}
	time.Sleep(time.Millisecond) // the last are about to wait
	close(gate)
	all.Wait()
}

// run carries out the collective of d as often as l says, on replicas that are made for it, and checks the result of
// one call more. Sums in place are those of zeros, since real data would grow with each call.
func run(l looper, w way, d *data) error {
	endpoints, err := w.transport.open(d.n)
	if err != nil {
		return err
	}
	p := newPace(d.bytes)
	return gcl.Run(context.Background(), d.n, func(ctx context.Context, c *gcl.Comm) error {
		do := func() error { return d.call(ctx, c, w.form) }
		clear(d.dst[c.Rank()])
		if _, few := l.(*times); !few { // which nobody measures
			if err := warmUp(c, do); err != nil {
				return err
			}
		}
		keep := p.follow
		if c.Rank() == 0 {
			keep = func(do func() error) error { return p.lead(l, do) }
		}
		if err := keep(do); err != nil {
			return err
		}
		d.prepare(c.Rank(), w.form)
		if err := do(); err != nil {
			return err
		}
		if err := d.check(c.Rank()); err != nil {
			return fmt.Errorf("wrong result: %w", err)
		}
		return nil
	}, gcl.WithOptions(w.options), gcl.WithEndpoints(endpoints))
}
