package watch

import (
	"encoding/binary"
	"time"
)

// Times is when a replica's calls began and were over, which all members of their groups wait for: in bytes, since
// there are a thousand of them, and as many as are asked for must fit a message between processes.
//
// Each call is a varint of the number of its connection and group among those met so far, which are told when they are
// new; then how much its number is below that of the one before in the group; how many microseconds it began before
// the call in front of it; and one more than how many it took, or 0 where that is unknown. The newest comes first.
type Times struct {
	b     []byte
	known map[series]int
	last  []uint64      // by series: the number of the last one
	began time.Duration // of the last one
	most  int
}

// series is the calls of a group on a connection.
type series struct{ connection, group uint64 }

// timesRoom is what one more call takes at most.
const timesRoom = 6 * binary.MaxVarintLen64

// NewTimes makes Times of so many bytes at most.
func NewTimes(most int) *Times { return &Times{known: map[series]int{}, most: most} }

// Add adds a call, which began so long ago; took is 0 if it goes on or is unknown. It reports whether there was room.
func (t *Times) Add(connection, group, seq uint64, began, took time.Duration) bool {
	if len(t.b)+timesRoom > t.most {
		return false
	}
	s := series{connection, group}
	k, ok := t.known[s]
	if !ok {
		k = len(t.last)
		t.known[s] = k
		t.last = append(t.last, 0)
	}
	t.b = binary.AppendUvarint(t.b, uint64(k))
	if !ok {
		t.b = binary.AppendUvarint(binary.AppendUvarint(t.b, connection), group)
	}
	t.b = binary.AppendVarint(t.b, int64(t.last[k]-seq))
	t.b = binary.AppendVarint(t.b, (began - t.began).Microseconds())
	over := int64(0)
	if took > 0 {
		over = took.Microseconds() + 1
	}
	t.b = binary.AppendUvarint(t.b, uint64(over))
	t.last[k] = seq
	t.began += (began - t.began).Truncate(time.Microsecond)
	return true
}

// Bytes are the Times.
func (t *Times) Bytes() []byte { return t.b }

// A timed call.
type timed struct {
	series
	seq          uint64
	began, ended time.Duration // how long ago
	over         bool          // ended is known
}

// maxTimed is how many calls of a replica count.
const maxTimed = 1 << 13

// readTimes calls yield for the calls of Times until they end, or make no sense.
func readTimes(b []byte, yield func(timed)) {
	var known []timed
	var began time.Duration
	next := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			b = nil
			return 0
		}
		b = b[size:]
		return n
	}
	signed := func() int64 {
		n := next()
		return int64(n>>1) ^ -int64(n&1)
	}
	for n := 0; len(b) > 0 && n < maxTimed; n++ {
		k := next()
		if k > uint64(len(known)) || b == nil {
			return
		}
		if k == uint64(len(known)) {
			known = append(known, timed{series: series{next(), next()}})
		}
		c := &known[k]
		c.seq -= uint64(signed())
		began += time.Duration(signed()) * time.Microsecond
		if b == nil {
			return
		}
		over := next()
		c.began, c.over = began, over > 0
		c.ended = began - time.Duration(over-1)*time.Microsecond
		yield(*c)
	}
}
