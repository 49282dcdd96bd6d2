// Package ticks is a clock that costs less than time.Now: on amd64 the time stamp counter of the processor. Reading
// that takes 10 ns, where time.Since takes 25 and time.Now 47 (two-core virtual EPYC). With the build tag noasm, on
// other processors, and where the counter does not tick at one rate, it is time.Since.
//
// Ticks are not nanoseconds. A Scale, made when somebody wants to read them, converts them: it knows how many ticks
// have gone by since the program began, and how much time.
package ticks

import (
	"sync"
	"sync/atomic"
	"time"
)

// useCounter says that Now reads the counter.
var useCounter atomic.Bool

// epoch is a moment by both clocks.
var epoch = begin()

func begin() moment {
	useCounter.Store(invariant())
	return now()
}

// FollowTime has Now go by package time, in the whole program: so ticks are virtual where time is, in a bubble of
// testing/synctest. Then a tick is a nanosecond. It returns what undoes it: Now reads the counter again when all calls
// of FollowTime have been undone. What lasts across a change has a wrong length.
func FollowTime() (undo func()) {
	following.Lock()
	defer following.Unlock()
	if following.count++; following.count == 1 {
		following.counter = useCounter.Swap(false)
	}
	return sync.OnceFunc(func() {
		following.Lock()
		defer following.Unlock()
		if following.count--; following.count == 0 {
			useCounter.Store(following.counter)
		}
	})
}

// following is the calls of FollowTime that have not been undone.
var following struct {
	sync.Mutex
	count   int
	counter bool // useCounter before the first
}

type moment struct {
	ticks int64
	time  time.Time
}

// now looks at both clocks, as close to one another as it gets in some tries.
func now() moment {
	var best moment
	closest := int64(-1)
	for range 5 {
		before := Now()
		t := time.Now()
		if apart := Now() - before; closest < 0 || apart < closest {
			best, closest = moment{before + apart/2, t}, apart
		}
	}
	return best
}

// Scale converts ticks.
type Scale struct {
	nanosPerTick float64
}

// NewScale measures how long a tick takes, by all the time since the program began. If that is less than a millisecond
// it waits for one. Where time is not the processor's, as in a bubble of testing/synctest, a tick counts as a
// nanosecond, which it is by FollowTime only.
func NewScale() Scale {
	s, _ := measure()
	return s
}

// measure makes a Scale, and reports whether a tick was measured and not just taken for a nanosecond.
func measure() (s Scale, measured bool) {
	if !useCounter.Load() { // Now is in nanoseconds
		return Scale{1}, false
	}
	for range 2 {
		m := now()
		if elapsed := m.time.Sub(epoch.time); elapsed >= time.Millisecond && m.ticks > epoch.ticks {
			return Scale{float64(elapsed) / float64(m.ticks-epoch.ticks)}, true
		}
		time.Sleep(time.Millisecond)
	}
	return Scale{1}, false
}

// known is the Scale of Since; nil: nobody has measured a tick for it yet.
var known atomic.Pointer[Scale]

// Since is the time since a reading of Now. The first call makes a Scale, as NewScale does. All others take that one,
// so they cost little more than Now.
func Since(from int64) time.Duration { return Between(from, Now()) }

// Between is the time from one reading of Now to another, by the Scale of Since.
func Between(from, to int64) time.Duration {
	s := known.Load()
	if s == nil || !useCounter.Load() {
		made, measured := measure()
		if s = &made; measured {
			known.Store(s)
		}
	}
	return s.Between(from, to)
}

// Between is the time from one reading of Now to another.
func (s Scale) Between(from, to int64) time.Duration {
	return time.Duration(float64(to-from) * s.nanosPerTick)
}
