package meeting

import (
	"slices"
	"sync/atomic"

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

// stamp is the number of a barrier with one bit behind it: whether the member that arrives there holds the processors
// to be crowded.
func stamp(number uint64, crowded bool) uint64 {
	number <<= 1
	if crowded {
		number |= 1
	}
	return number
}

// crowdedAt is the bit of a stamp.
func crowdedAt(stamp uint64) bool { return stamp&1 != 0 }

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
	count atomic.Int32 // who has arrived at the barrier in progress
	_     [60]byte
	done  atomic.Uint64 // the barriers that are complete
	_     [56]byte
	next  atomic.Int64 // of a Share: the piece that nobody has taken
	_     [56]byte
	left  atomic.Int64 // of a Share: how many pieces are not done
	_     [56]byte

	// By operation, in turn; written by the last to arrive before it says that the barrier is complete.
	combines [2]bool // whether there is a result for all
	spreads  [2]bool // what becomes of Visit.nextSpread
	_        [60]byte
	combined [2][SmallLimit]byte
}

// Table is where the members of a group meet on one lane.
type Table struct {
	Members  []int // replica ids, by place
	Spacious bool  // every member can have a processor
	seats    []*Seat
	spools   []spool // by place
	hall     *Hall
}

// spool is the boards of a member's queue, for messages that do not fit into a notice. Only the member writes.
type spool struct {
	boards []byte // made with the first such message
	_      [64 - 24]byte
}

// board is where the message of a member's broadcast lies.
func (t *Table) board(place int, number uint64, size int) []byte {
	if size <= inlineLimit {
		return t.seats[place].at(number).inline[:size]
	}
	at := int(number%queueLength) * SmallLimit
	return t.spools[place].boards[at : at+size]
}

// NewTable makes the table of some members, all of whose seats lie in this process. It keeps a copy of the list.
func NewTable(members []int, spacious bool) *Table {
	n := len(members)
	t := &Table{Members: slices.Clone(members), Spacious: spacious, seats: make([]*Seat, n), spools: make([]spool, n),
		hall: new(Hall)}
	for i := range t.seats {
		t.seats[i] = new(Seat)
	}
	return t
}
