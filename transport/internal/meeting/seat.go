package meeting

import (
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"gogcl.dev/transport"
)

// SmallLimit is the greatest message that is copied for the others to read instead of being read where it lies.
const SmallLimit = 4 << 10

// inlineLimit is the size of a message that lies in the notice itself.
const inlineLimit = 8

// queueLength is how many broadcasts a root can be ahead of the last of the others, at most. gclperf -n 8 -collective
// broadcast -place ip -sizes 8 on two cores, medians of five: 2.7 us with 8, 1.2 with 32, 0.90 with 64, 0.75 with 128.
// The memory for it grows as well: see spool.
const queueLength = 64

// notice is what a member says when it arrives. It fills a cache line.
type notice struct {
	number atomic.Uint64 // the stamp of the barrier, or in a queue the number of the Broadcast
	call   transport.Call
	inline [inlineLimit]byte
}

// stamp is the number of a barrier with two bits behind it: whether the member that arrives there holds the processors
// to be crowded, and whether its memory is hidden from the others.
func stamp(number uint64, crowded, hidden bool) uint64 {
	number <<= stampBits
	if crowded {
		number |= crowdedBit
	}
	if hidden {
		number |= hiddenBit
	}
	return number
}

const (
	crowdedBit = 1 << iota
	hiddenBit
	stampBits = iota
)

// Seat is a member's place at the table. Only the member writes. It begins at a cache line: Go puts a header before an
// object that has pointers and more than 512 bytes, and none before this one.
type Seat struct {
	notices [2]notice // by operation, in turn
	synced  atomic.Uint64
	inside  atomic.Bool // the member may touch the others' memory
	_       [64 - 12]byte
	boards  [2][SmallLimit]byte // small messages, by operation, in turn

	// queue holds the member's last broadcasts, by their numbers in turn: what it sent as a root; else it only says
	// that the member has taken what the root sent, and in which call it believes to be.
	//
	// Nobody is further than queueLength ahead of anybody: at each multiple of half of it a member waits until all
	// others have come as far as the multiple before. So nobody writes over what another may still read.
	queue [queueLength]notice
}

// at is the notice of a broadcast.
func (s *Seat) at(number uint64) *notice { return &s.queue[number%queueLength] }

// Hall is what all members write.
type Hall struct {
	count atomic.Uint64 // arrivals, at all barriers at which members count
	_     [56]byte
	done  atomic.Uint64 // the number of the last of these that is complete
	_     [56]byte
	next  atomic.Int64 // of a Share: its base, and the piece that nobody has taken
	_     [56]byte
	left  atomic.Int64 // of a Share: its base, and how many pieces are not done
	_     [56]byte

	// By operation, in turn; written by the last to arrive before it says that the barrier is complete.
	decided  [2]atomic.Uint64 // a decision
	_        [48]byte
	combined [2][SmallLimit]byte
}

// decision is the number of a barrier with what the last to arrive there has found out for all behind it: whether there
// is a result of a Combiner, and what becomes of Visit.nextSpread and Visit.hidden.
func decision(number uint64, combines, spreads, hides bool) uint64 {
	number <<= decisionBits
	if combines {
		number |= combinesBit
	}
	if spreads {
		number |= spreadsBit
	}
	if hides {
		number |= hidesBit
	}
	return number
}

const (
	combinesBit = 1 << iota
	spreadsBit
	hidesBit
	decisionBits = iota
)

// maxPieces is how many pieces a Share of one round has at most. The bits above are for the number of the operation: it
// tells Hall.next and Hall.left from what has been written over them.
const maxPieces = math.MaxInt >> (23 * (math.MaxUint >> 63))

// baseOf is what Hall.next and Hall.left count from in an operation. It is not 0.
func baseOf(operation uint64) int64 { return int64(operation%(1<<22)+1) << 40 }

// Place is what a member shares where each member's part of a table is a piece of memory of its own: zeros at first.
// The hall of a table is that of its first member.
type Place struct {
	seat  Seat
	hall  Hall
	spool [queueLength * SmallLimit]byte
}

// PlaceBytes is the size of a Place. It begins at a cache line.
const PlaceBytes = int(unsafe.Sizeof(Place{}))

// PlaceIn is the Place in PlaceBytes of memory.
func PlaceIn(b []byte) *Place { return (*Place)(unsafe.Pointer(&b[:PlaceBytes][0])) }

// Table is where the members of a group meet on one lane.
type Table struct {
	Members  []int // replica ids, by place
	Spacious bool  // every member can have a processor
	seats    []*Seat
	spools   []spool // by place
	hall     *Hall
	find     func(place int) *Place // nil: all seats are there
}

// spool is the boards of a member's queue, for messages that do not fit into a notice. Only the member writes.
type spool struct {
	boards []byte // nil until the first such message where the seats are made with the table
	_      [64 - 24]byte
}

// seat is that of a place, or nil: the member has not made it.
func (t *Table) seat(place int) *Seat {
	if s := t.seats[place]; s != nil || t.find == nil {
		return s
	}
	return t.look(place)
}

// look looks for the seat of a place where members make their own.
func (t *Table) look(place int) *Seat {
	p := t.find(place)
	if p == nil {
		return nil
	}
	t.seats[place], t.spools[place].boards = &p.seat, p.spool[:]
	if place == 0 {
		t.hall = &p.hall
	}
	return &p.seat
}

// board is where the message of a member's broadcast lies. The member has its seat.
func (t *Table) board(place int, number uint64, size int) []byte {
	if size <= inlineLimit {
		return t.seats[place].at(number).inline[:size]
	}
	at := int(number%queueLength) * SmallLimit
	return t.spools[place].boards[at : at+size]
}

// NewTable makes the table of some members, all of whose seats lie in this process. It keeps a copy of the list.
func NewTable(members []int, spacious bool) *Table {
	t := newTable(members)
	t.Spacious, t.hall = spacious, new(Hall)
	for i := range t.seats {
		t.seats[i] = new(Seat)
	}
	return t
}

// NewTableApart makes one member's view of the table of some members, each of which makes its own Place. find returns
// the Place of a member, or nil: it has not made it. What lies there may have been overwritten: see Visit.Check. It
// keeps a copy of the list. Whether every member can have a processor is said by Host.Crowded of each.
func NewTableApart(members []int, find func(place int) *Place) *Table {
	t := newTable(members)
	t.Spacious, t.find = true, find
	return t
}

func newTable(members []int) *Table {
	n := len(members)
	return &Table{Members: slices.Clone(members), seats: make([]*Seat, n), spools: make([]spool, n)}
}
