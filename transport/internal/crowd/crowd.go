// Package crowd says whether the processors are crowded: whether other programs want them so much that a replica cannot
// count on having one.
//
// Where every replica can have a processor, a member of a meeting waits by looking again and again, and parks after
// some 50 us. With one busy loop beside as many replicas as processors that is the worst way. The kernel puts the
// threads of two replicas on one processor. The first looks in vain until it parks. Only then does the second run, and
// by then a third has parked, and takes 50 us to wake. An all-reduce of 8 B among four replicas took 100 us so, call
// after call. It takes 2 us where members let other goroutines run while they wait, as they do where replicas outnumber
// processors.
//
// So an endpoint watches how much of its time goes into long waits, and how often the kernel takes processors from the
// process. When both are much, the processors count as crowded for a while, and meetings go as those of more replicas
// than processors. After that they try the other way again. A try that fails soon doubles the length of the next while.
//
// The first window of an endpoint is no evidence, nor is the first after a long time without a long wait. The monitor
// of Go's runtime wakes some 60 times in the first 5 ms of a process, and again after the process was idle. Where
// replicas have all processors it takes one each time. Replicas wait for each other then, too: not all have begun.
package crowd

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Watch says whether the processors are crowded, for all lanes of a process or for all its replicas.
type Watch struct {
	began time.Time
	taken func() int64
	until atomic.Int64 // nanoseconds since began: when the crowded time ends; 0: there is none

	mu     sync.Mutex    // guards ended and length
	ended  time.Duration // since began: when the last crowded time ends or ended
	length time.Duration // of the last crowded time
}

// The lengths of crowded times. The shortest costs little if it was a mistake. After the longest a try costs some 5 ms.
const (
	minCrowded = 10 * time.Millisecond
	maxCrowded = time.Second
)

// What is evidence: in a window of at least windowLength, long waits took an endpoint a waitedShare-th of the time, and
// the kernel took processors from the process at this rate a second. On four cores, four replicas lose
// processors 300 to 800 times a second on an idle machine, and 1,600 to 7,000 times with a busy loop beside them
// (/usr/bin/time -f %c gclperf -n 4; the same of examples/rts).
const (
	windowLength = 5 * time.Millisecond
	longWindow   = 100 * time.Millisecond
	waitedShare  = 4
	crowdedRate  = 1200
)

// Window is a stretch of time in which an endpoint watches how long it waits.
type Window struct {
	began  time.Duration // by Watch.Elapsed
	waited time.Duration // in long waits
	taken  int64         // what Watch.taken returned when the window began
	counts bool          // it may be evidence: the window before was not longer than longWindow
}

// Init begins to watch. taken says how often the kernel has taken a processor from the process: Taken, but in tests.
func (c *Watch) Init(taken func() int64) { c.began, c.taken = time.Now(), taken }

// Force has the processors count as crowded, for good, or not: for replicas that outnumber them, and for tests.
func (c *Watch) Force(crowded bool) {
	until := int64(0)
	if crowded {
		until = math.MaxInt64
	}
	c.until.Store(until)
}

// Window begins a window.
func (c *Watch) Window() Window { return Window{began: c.Elapsed(), taken: c.taken()} }

// Elapsed is the time since Init.
func (c *Watch) Elapsed() time.Duration { return time.Since(c.began) }

// Crowded reports whether the processors are crowded.
func (c *Watch) Crowded() bool {
	until := c.until.Load()
	if until == 0 || until == math.MaxInt64 {
		return until != 0
	}
	if int64(c.Elapsed()) < until {
		return true
	}
	c.until.CompareAndSwap(until, 0)
	return false
}

// Waited adds a long wait, from a moment until now, to a window, and begins the next window when this one is long
// enough.
func (c *Watch) Waited(w *Window, from time.Duration) {
	now := c.Elapsed()
	w.waited += now - from
	took := now - w.began
	if took < windowLength {
		return
	}
	taken := c.taken()
	if w.tooMuch(took, taken) {
		c.begin(now, w.counts)
	}
	*w = Window{began: now, taken: taken, counts: took <= longWindow}
}

// tooMuch reports whether a window that took so long is evidence of crowded processors.
func (w *Window) tooMuch(took time.Duration, taken int64) bool {
	rate := float64(taken-w.taken) / took.Seconds()
	return w.waited >= took/waitedShare && rate >= crowdedRate
}

// begin begins a crowded time, unless there is one. Where the window does not count it does so soon after a crowded
// time only.
func (c *Watch) begin(now time.Duration, counts bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case now < c.ended:
		return
	case now-c.ended < c.length:
		c.length = min(2*c.length, maxCrowded)
	case !counts:
		return
	default:
		c.length = minCrowded
	}
	c.ended = now + c.length
	c.until.Store(int64(c.ended))
}
