package flight

import (
	"slices"
	"sync"
	"sync/atomic"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/watch"
	"gogcl.dev/transport"
)

// Recorders are the recorders of a communicator's lanes in this process.
type Recorders struct {
	mu     sync.Mutex // guards what follows, up to the empty line
	all    []*Recorder
	open   int       // of all that are not closed
	heard  []Reports // what the replicas of other processes tell
	stalls stalls
	job    watch.Process // see Identify
	atEnd  []func()
	bodies map[int]uint64 // goroutines by replica: see Body
	noQuit bool           // see IgnoreQuit

	quits bool // SIGQUIT prints the dump as long as one is open; process.mu guards it

	phases sync.Map // the names of groups that make phases, by wire.PhaseGroup

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
	f := &Recorder{Replica: replica, lane: lane, describe: s.describe, all: s,
		records: make([]record, flightLength+1)}
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
	if s.open++; s.open == 1 {
		s.enter()
	}
	s.lookLater()
	return f
}

// NamePhases notes which groups make phases of the calls of a whole group, since their numbers do not tell the members.
func (f *Recorder) NamePhases(whole uint64, groups [][]int) {
	if f.all == nil {
		return
	}
	for _, members := range groups {
		f.all.phases.LoadOrStore(wire.PhaseGroup(wire.GroupID(members, 0), whole), wire.MembersName(members))
	}
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
