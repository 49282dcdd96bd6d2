package flight

import (
	"slices"
	"sync"
	"sync/atomic"

	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/internal/watch"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
)

// flightLength is how many collectives a flight recorder keeps.
const flightLength = 1024

// Recorder is the flight recorder of one lane: what its last collectives were, when they began and how they went. Dump
// reads it.
//
// Recording costs two atomic stores, by a schedule one more for each round, one look at the clock, which for a call of
// 8 bytes is the greater part, and a second where a call takes longer; and no lock, since the lane's turn says who may
// write. A reader may come at any time. It raises reading and then looks at head: a writer that has not seen it can be
// no further than in the record that follows, in a slot of its own, and one that has seen it waits for mu before it
// begins another. So nobody writes to what is being read, and there is nothing to read twice.
type Recorder struct {
	Replica    int
	Connection int // 0 is the replica's first; Dups follow
	describe   func(transport.Call) string
	all        *Recorders // nil: nobody reads the recorder
	lane       uint64     // the connection's number that all replicas know it by

	// Used by whoever has the lane's turn.
	begun       uint64 // records begun so far; the last one is number begun-1
	records     []record
	method      methods.Method // of the call in progress
	path        route.Path     // of the call in progress
	phase       uint64         // of Hybrid, from 1 on; 0: it has none, or the first has not begun
	refused     bool           // the call in progress, for its arguments
	unconfirmed [unconfirmedLength + 1]transport.Call

	noted atomic.Uint64 // calls of NoteUnconfirmed

	head    atomic.Uint64 // 2n-1: record n-1 is the last, and running; 2n: it is over
	where   atomic.Uint64 // see Enter
	reading atomic.Bool   // set under mu

	looked uint64 // head at the last look for calls that wait; Recorders.mu guards it

	mu     sync.Mutex // guards what follows, and reading
	aside  []*Waiting // calls that wait for their turn, and the last that failed to get it
	closed bool
	failed func() *watch.Failure // of FailsBy; nil: of no lane
}

// Waiting is a call that has not had its turn.
type Waiting struct{ record }

// unconfirmedLength is how many calls that did not wait for all members a recorder keeps with their whole fingerprints.
const unconfirmedLength = 32

// NoteUnconfirmed records that the call in progress has succeeded, and need not have done so elsewhere. There is one
// slot more than a reader reads, as of records.
func (f *Recorder) NoteUnconfirmed(call *transport.Call) {
	if f.reading.Load() {
		f.mu.Lock()
		defer f.mu.Unlock()
	}
	n := f.noted.Load()
	f.unconfirmed[n%uint64(len(f.unconfirmed))] = *call
	f.noted.Store(n + 1)
}

// Unconfirmed finds a call of NoteUnconfirmed by its group and number, among the last.
func (f *Recorder) Unconfirmed(group, seq uint64) (call transport.Call, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading.Store(true)
	defer f.reading.Store(false)
	end := f.noted.Load()
	for n := end; n > 0 && n+unconfirmedLength > end; n-- {
		if c := &f.unconfirmed[(n-1)%uint64(len(f.unconfirmed))]; c.Group == group && c.Seq == seq {
			return *c, true
		}
	}
	return call, false
}

// Begin records that a call has its turn, since when.
func (f *Recorder) Begin(l *Label, call *transport.Call, since int64) {
	if f.reading.Load() {
		f.mu.Lock()
		defer f.mu.Unlock()
	}
	f.slot(f.begun).begin(l, call, since)
	f.begun++
	f.method, f.path, f.phase, f.refused = 0, 0, 0, false
	f.head.Store(2*f.begun - 1)
}

// slot is where record n is. There is one slot more than a reader reads.
func (f *Recorder) slot(n uint64) *record { return &f.records[n%(flightLength+1)] }

// Choose records how the call in progress, or its phase, is carried out.
func (f *Recorder) Choose(m methods.Method, p route.Path) { f.method, f.path = m, p }

// Refuse records that the call in progress was refused for its arguments.
func (f *Recorder) Refuse() { f.refused = true }

// Enter records that the rank enters a round. What is stored is the number of the record, so that nobody takes it for
// that of the next, and of the round from 1 on.
func (f *Recorder) Enter(round int) {
	f.store(uint8(f.method), f.path, round+1)
}

// EnterPhase records that a phase of Hybrid begins.
func (f *Recorder) EnterPhase(phase uint64) {
	f.method, f.path, f.phase = 0, 0, phase
	f.store(0, 0, 0)
}

// Bits of where: the round, the method, the path, the phase and the last of the record's number.
const (
	roundBits  = 20
	methodBits = 8
	pathBits   = 4
	phaseBits  = 8
	whereBits  = roundBits + methodBits + pathBits + phaseBits
	maxPhase   = 1<<phaseBits - 1
)

func (f *Recorder) store(method uint8, p route.Path, round int) {
	where := (f.begun-1)<<phaseBits | min(f.phase, maxPhase)
	where = where<<pathBits | uint64(p)
	where = where<<methodBits | uint64(method)
	f.where.Store(where<<roundBits | uint64(min(round, 1<<roundBits-1)))
}

// fewElements is how many a call that sends nothing copies about as fast as the clock is read.
const fewElements = 128

// End records that the call in progress is over. now is by ticks.Now, or 0: nobody has looked at the clock.
func (f *Recorder) End(failure bool, now int64) {
	r := f.slot(f.begun - 1)
	r.unpackWhere(f.begun-1, f.where.Load())
	r.method, r.path, r.phase = uint8(f.method), f.path, uint8(min(f.phase, maxPhase))
	r.state, r.refused = done, f.refused
	if failure {
		r.state = failed
	}
	quick := f.path == route.Small || f.path == route.Local && r.count <= fewElements
	if r.end = now; now == 0 && (failure || !quick || f.phase > 0) {
		r.end = ticks.Now()
	}
	f.head.Store(2 * f.begun)
}

// maxAside is how many calls that failed to get their turn a flight recorder keeps.
const maxAside = 16

// Wait records that a call waits for its turn.
func (f *Recorder) Wait(l *Label, call *transport.Call) *Waiting {
	w := &Waiting{}
	w.begin(l, call, ticks.Now())
	w.state = awaiting
	f.mu.Lock()
	defer f.mu.Unlock()
	f.aside = append(f.aside, w)
	return w
}

// Admitted forgets a call that has its turn now.
func (f *Recorder) Admitted(w *Waiting) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.aside = slices.DeleteFunc(f.aside, func(o *Waiting) bool { return o == w })
}

// TurnedAway records a call that failed before it got its turn. began is when it started to wait; 0 if unknown.
func (f *Recorder) TurnedAway(l *Label, call *transport.Call, began int64) {
	w := f.Wait(l, call)
	f.mu.Lock()
	defer f.mu.Unlock()
	w.state, w.end = failed, ticks.Now()
	if began != 0 {
		w.began = began
	}
	ended := 0
	for _, o := range f.aside {
		if o.state == failed {
			ended++
		}
	}
	f.aside = slices.DeleteFunc(f.aside, func(o *Waiting) bool {
		surplus := o.state == failed && ended > maxAside
		if surplus {
			ended--
		}
		return surplus
	})
}

// newest calls yield for the records of calls that had their turn, the last first, until that returns false.
func (f *Recorder) newest(yield func(r *record) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading.Store(true)
	defer f.reading.Store(false)
	head := f.head.Load()
	begun := (head + 1) / 2
	for n := begun; n > 0 && n+flightLength > begun; n-- {
		r := *f.slotRead(n-1, head)
		if !yield(&r) {
			return
		}
	}
}

// slotRead is record n as a reader may see it, given head. The last, if it is running, may end at any time: what is
// written then is not the reader's.
func (f *Recorder) slotRead(n, head uint64) *record {
	r := f.slot(n)
	if 2*n+1 != head {
		return r
	}
	last := record{label: r.label, seq: r.seq, also: r.also, count: r.count, began: r.began, root: r.root,
		collective: r.collective, operator: r.operator, dtype: r.dtype}
	last.unpackWhere(n, f.where.Load())
	return &last
}

// read copies the records: those of calls that had their turn, with the number of the first, and the others.
func (f *Recorder) read() (records []record, first uint64, aside []*Waiting) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading.Store(true)
	defer f.reading.Store(false)
	head := f.head.Load()
	begun := (head + 1) / 2
	if begun > flightLength {
		first = begun - flightLength
	}
	for n := first; n < begun; n++ {
		records = append(records, *f.slotRead(n, head))
	}
	for _, w := range f.aside {
		copied := *w
		aside = append(aside, &copied)
	}
	return records, first, aside
}

// IsClosed reports whether the connection is no more.
func (f *Recorder) IsClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// FailsBy is told what says why calls of the lane would fail, nil if they would not, or if the replica has closed it.
func (f *Recorder) FailsBy(failed func() *watch.Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = failed
}

// failure is why calls of the lane would fail, or would have failed when it was closed; nil if they would not.
func (f *Recorder) failure() *watch.Failure {
	f.mu.Lock()
	failed := f.failed
	f.mu.Unlock()
	if failed == nil {
		return nil
	}
	return failed() // which may read recorders
}

// BeginClose notes that the replica makes no more calls on the lane, which is about to be closed. Close follows: until
// then closing the lane may show why it fails.
func (f *Recorder) BeginClose() {
	f.mu.Lock()
	before := f.closed
	f.closed = true
	f.mu.Unlock()
	if f.all != nil && !before {
		f.all.closed()
	}
}

// Close notes that the lane is no more. What it recorded stays.
func (f *Recorder) Close() {
	last := f.failure()
	f.mu.Lock()
	f.failed = func() *watch.Failure { return last } // without what the lane needed
	f.mu.Unlock()
	f.BeginClose()
}
