package metrics

import (
	"context"
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"

	"gogcl.dev/gcl"
)

// Metrics counts the calls of this process that it is told of, and serves the counts over HTTP. All methods may be
// called at any time, by several goroutines. The zero value is as one from New(nil). A Metrics must not be copied after
// its first use.
type Metrics struct {
	next *gcl.Trace // is told of everything too; nil: there is none

	full  atomic.Pointer[map[string]bool]    // names, when there are maxNames, which are all
	table [tableSlots]atomic.Pointer[series] // open addressing by key.hash; nothing is ever taken out

	mu       sync.Mutex             // guards what follows, and additions to table
	all      []*series              // those in table, in order of their first calls
	rest     [numOperations]*series // of keys for which there was no room
	names    map[string]bool        // of Comms that have series of their own
	failures map[failure]uint64     // calls

	pricing sync.Mutex      // held while prices are computed
	prices  map[key]float64 // by key.price; guarded by pricing
	fresh   []*unpriced     // series without a price so far; guarded by mu
}

const (
	maxNames   = 100
	maxSeries  = 1000
	tableSlots = 2048 // a power of two, twice maxSeries and more
)

// failure is what failed calls are told apart by.
type failure struct {
	operation
	name, kind string
}

// unpriced is a series and its first call.
type unpriced struct {
	series *series
	call   gcl.TraceCall
}

// New makes a Metrics. next, which may be nil, hears of all that the Metrics hears of: it is the program's own Trace.
func New(next *gcl.Trace) *Metrics { return &Metrics{next: next} }

// Trace returns what counts calls, for Options.Trace of any number of communicators and replicas of this process.
func (m *Metrics) Trace() *gcl.Trace {
	var t gcl.Trace
	if m.next != nil {
		t = *m.next
	}
	next := t.CollectiveEnd
	t.CollectiveEnd = func(c gcl.TraceCall, err error) {
		if err == nil {
			m.count(&c)
		} else {
			m.fail(&c, err)
		}
		if next != nil {
			next(c, err)
		}
	}
	return &t
}

// count counts a call that went well.
func (m *Metrics) count(c *gcl.TraceCall) {
	nanos := max(c.Elapsed().Nanoseconds(), 1)
	k := keyOf(c)
	s := m.find(&k)
	if names := m.full.Load(); s == nil && names != nil && !(*names)[k.name] {
		shared := k
		shared.name = other
		s = m.find(&shared)
	}
	if s == nil {
		s = m.enter(k, c)
	}
	s.mu.Lock()
	s.counts[bucketOf(nanos)]++
	s.nanos += nanos
	s.bytes += uint64(c.Bytes)
	s.lastNanos, s.lastBytes = nanos, c.Bytes
	s.mu.Unlock()
}

// fail counts a call that failed.
func (m *Metrics) fail(c *gcl.TraceCall, err error) {
	f := failure{operationOf(c), nameOf(c), kindOf(err)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures == nil {
		m.failures = map[failure]uint64{}
	}
	m.failures[f]++
}

// kindOf is the label of an error.
func kindOf(err error) string {
	peer := (*gcl.PeerError)(nil)
	switch {
	case errors.Is(err, gcl.ErrMismatch):
		return "mismatch"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &peer):
		return "peer"
	case errors.Is(err, gcl.ErrAborted):
		return "aborted"
	case errors.Is(err, gcl.ErrClosed):
		return "closed"
	}
	return "refused"
}

// find looks a series up; nil: there is none by that key.
func (m *Metrics) find(k *key) *series {
	for i := k.hash(); ; i++ {
		s := m.table[i%tableSlots].Load()
		if s == nil || s.key == *k {
			return s
		}
	}
}

// enter returns the series of a call for which find had none: a new one, or one that it shares.
func (m *Metrics) enter(k key, c *gcl.TraceCall) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.names[k.name] {
		if len(m.names) < maxNames {
			if m.names == nil {
				m.names = map[string]bool{}
			}
			m.names[k.name] = true
			if len(m.names) == maxNames {
				m.full.Store(&m.names)
			}
		} else {
			k.name = other
		}
	}
	if s := m.find(&k); s != nil { // by another goroutine, or of other names
		return s
	}
	if len(m.all) == maxSeries {
		o := operationOf(c)
		if m.rest[o] == nil {
			m.rest[o] = &series{operation: o, labels: restLabels(o)}
		}
		return m.rest[o]
	}
	s := newSeries(k, c)
	m.all = append(m.all, s)
	m.fresh = append(m.fresh, &unpriced{s, *c})
	i := k.hash()
	for m.table[i%tableSlots].Load() != nil {
		i++
	}
	m.table[i%tableSlots].Store(s)
	return s
}

// bucketOf is the bucket of a histogram that a time belongs to: the first whose bound is no less.
func bucketOf(nanos int64) int {
	return min((bits.Len64(uint64(nanos-1)>>shortestBits)+1)/2, len(bounds))
}
