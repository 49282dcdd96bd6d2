package flight

import (
	"slices"
	"sync"
	"sync/atomic"

	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/internal/ticks"
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
	lane       uint64 // the connection's number that all replicas know it by

	// Used by whoever has the lane's turn.
	begun   uint64 // records begun so far; the last one is number begun-1
	records []record
	Method  methods.Method // of the call in progress
	Path    route.Path
	phase   uint64 // of Hybrid, from 1 on; 0: it has none, or the first has not begun
	Refused bool   // the call in progress, for its arguments

	head    atomic.Uint64 // 2n-1: record n-1 is the last, and running; 2n: it is over
	where   atomic.Uint64 // see enter
	reading atomic.Bool   // set under mu

	mu     sync.Mutex // guards what follows, and reading
	aside  []*Waiting // calls that wait for their turn, and the last that failed to get it
	closed bool
}

// record is one collective. It is written as a whole when it begins, and from end on when it is over.
type record struct {
	label      *Label
	seq        uint64
	count      uint64 // elements of the input
	began      int64  // by ticks.Now
	root       uint32
	collective uint8 // as in a transport.Call
	operator   uint8
	dtype      uint8

	state   state
	refused bool // for its arguments: failed, and nothing was sent
	method  uint8
	path    route.Path
	phase   uint8  // of Hybrid, the last one begun, from 1 on, or maxPhase for all that follow it; 0: none
	round   uint32 // the last one entered, from 1 on; 0: none
	end     int64  // by ticks.Now; 0: none yet, or a pathSmall that went well
}

// state is how far a collective has come.
type state uint8

// The states.
const (
	running state = iota
	done
	failed
	awaiting // its turn
)

// Label is what Comms of one name and group have in common.
type Label struct {
	Name    string
	Members []int // of the group, by rank
	Rank    int
	Group   uint64
}

// Waiting is a call that has not had its turn.
type Waiting struct{ record }

// Begin records that a call has its turn, since when.
func (f *Recorder) Begin(l *Label, call *transport.Call, since int64) {
	if f.reading.Load() {
		f.mu.Lock()
		defer f.mu.Unlock()
	}
	*f.slot(f.begun) = newRecord(l, call, since)
	f.begun++
	f.Method, f.Path, f.phase, f.Refused = 0, 0, 0, false
	f.head.Store(2*f.begun - 1)
}

func newRecord(l *Label, call *transport.Call, began int64) record {
	return record{
		label: l, seq: call.Seq, count: call.Count, root: call.Root, began: began,
		collective: call.Collective, operator: call.Operator, dtype: call.DType,
	}
}

// slot is where record n is. There is one slot more than a reader reads.
func (f *Recorder) slot(n uint64) *record { return &f.records[n%(flightLength+1)] }

// Enter records that the rank enters a round. What is stored is the number of the record, so that nobody takes it for
// that of the next, and of the round from 1 on.
func (f *Recorder) Enter(round int) {
	f.store(uint8(f.Method), f.Path, round+1)
}

// EnterPhase records that a phase of Hybrid begins.
func (f *Recorder) EnterPhase(phase uint64) {
	f.Method, f.Path, f.phase = 0, 0, phase
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

// unpackWhere sets what where says of record n, if it does.
func (r *record) unpackWhere(n, where uint64) {
	if where == 0 || where>>whereBits != n<<whereBits>>whereBits {
		return
	}
	r.round = uint32(where & (1<<roundBits - 1))
	r.method = uint8(where >> roundBits)
	r.path = route.Path(where >> (roundBits + methodBits) & (1<<pathBits - 1))
	r.phase = uint8(where >> (roundBits + methodBits + pathBits))
}

// End records that the call in progress is over.
func (f *Recorder) End(failure bool) {
	r := f.slot(f.begun - 1)
	r.unpackWhere(f.begun-1, f.where.Load())
	r.method, r.path, r.phase = uint8(f.Method), f.Path, uint8(min(f.phase, maxPhase))
	r.state, r.refused = done, f.Refused
	if failure {
		r.state = failed
	}
	if failure || f.Path != route.Small || f.phase > 0 {
		r.end = ticks.Now()
	}
	f.head.Store(2 * f.begun)
}

// maxAside is how many calls that failed to get their turn a flight recorder keeps.
const maxAside = 16

// Wait records that a call waits for its turn.
func (f *Recorder) Wait(l *Label, call *transport.Call) *Waiting {
	w := &Waiting{newRecord(l, call, ticks.Now())}
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
	last := record{label: r.label, seq: r.seq, count: r.count, began: r.began, root: r.root, collective: r.collective,
		operator: r.operator, dtype: r.dtype}
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

// Recorders are the recorders of a communicator's lanes in this process.
type Recorders struct {
	mu  sync.Mutex // guards all
	all []*Recorder

	describe func(transport.Call) string // what a call works on, as in "ADD float32 x 1024"

	Expired atomic.Bool // a Close has waited for closeTime
}

// New makes the recorders of a communicator. describe spells out what a call works on.
func New(describe func(transport.Call) string) *Recorders { return &Recorders{describe: describe} }

// maxClosed is how many recorders of closed connections of one replica are kept.
const maxClosed = 8

// Open sets up the recorder of a new lane. Without a receiver it is one in which no call begins and which nobody reads.
func (s *Recorders) Open(replica int, lane uint64) *Recorder {
	if s == nil {
		return &Recorder{}
	}
	f := &Recorder{Replica: replica, lane: lane, describe: s.describe, records: make([]record, flightLength+1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	closed := 0
	for _, o := range s.all {
		if o.Replica == replica {
			f.Connection = o.Connection + 1
			if o.IsClosed() {
				closed++
			}
		}
	}
	s.all = slices.DeleteFunc(s.all, func(o *Recorder) bool {
		surplus := closed > maxClosed && o.Replica == replica && o.Connection > 0 && o.IsClosed()
		if surplus {
			closed--
		}
		return surplus
	})
	s.all = append(s.all, f)
	return f
}

// Shared are the recorders of the communicator that an endpoint belongs to.
func Shared(endpoint transport.Endpoint, describe func(transport.Call) string) *Recorders {
	made := New(describe)
	if e, ok := endpoint.(transport.Shared); ok {
		all, _ := e.Shared().LoadOrStore(flightsKey{}, made)
		return all.(*Recorders)
	}
	return made
}

// flightsKey is where the recorders are in what endpoints of a process share.
type flightsKey struct{}

func (f *Recorder) IsClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// Close notes that the lane is no more. What it recorded stays.
func (f *Recorder) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// list returns the recorders by replica and connection.
func (s *Recorders) list() []*Recorder {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.all)
	slices.SortStableFunc(out, func(a, b *Recorder) int {
		if a.Replica != b.Replica {
			return a.Replica - b.Replica
		}
		return a.Connection - b.Connection
	})
	return out
}
