package metrics

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"
	"sync"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// operation tells collectives from messages between two replicas, which have metrics of their own.
type operation uint8

const (
	collectives operation = iota
	messages
	numOperations
)

// operationNames are the label that says which collective or message it is, and how names of metrics begin.
var operationNames = [numOperations]struct{ label, prefix string }{
	collectives: {"collective", "gcl_collective_"},
	messages:    {"p2p_operation", "gcl_p2p_"},
}

// key is what series are told apart by. Numbers are packed: a call compares them as words.
type key struct {
	name, transport string
	who             uint64 // the replica, and the ranks
	what            uint64 // a byte each: the operation, kindOfCall, bits of the bytes, phases, method, path
}

// Kinds of calls beside those that are the number of a collective.
const (
	within  = 1 << 6 // is added to the number
	barrier = uint8(schedule.Barrier)
)

// Kinds of messages.
const (
	refused uint8 = iota // of no replica
	sends
	receives
	exchanges
)

var messageNames = [...]string{refused: "message", sends: "send", receives: "receive", exchanges: "send and receive"}

func operationOf(c *gcl.TraceCall) operation {
	if c.Message {
		return messages
	}
	return collectives
}

// kindOfCall is a number for what a call is among those of its operation, which nameOf spells out.
func kindOfCall(c *gcl.TraceCall) (kind uint8) {
	switch {
	case c.Message:
		if c.To >= 0 {
			kind |= sends
		}
		if c.From >= 0 {
			kind |= receives
		}
		return kind
	case c.Barrier:
		return barrier
	case c.IPUs > 0:
		return uint8(c.Collective) | within
	}
	return uint8(c.Collective)
}

// nameOf is the label of what a call is.
func nameOf(c *gcl.TraceCall) string {
	kind := kindOfCall(c)
	if c.Message {
		return messageNames[kind]
	}
	name := schedule.Collective(kind &^ within).String()
	if c.IPUs > 0 {
		name += " within the replica"
	}
	return name
}

func keyOf(c *gcl.TraceCall) key {
	what := uint64(operationOf(c))<<40 | uint64(kindOfCall(c))<<32 | uint64(bits.Len(uint(c.Bytes)))<<24 |
		uint64(min(c.Phase, 1))<<16 | uint64(methodOf(c))<<8 | uint64(c.Path)
	return key{c.Name, c.Transport, uint64(c.Replica)<<32 | uint64(ranksOf(c)), what}
}

// methodOf is the number of the method. Of a call in phases no method is that of all.
func methodOf(c *gcl.TraceCall) uint8 {
	if c.Phase > 0 {
		return 0
	}
	return uint8(c.Method)
}

// ranksOf is over how many ranks, or IPUs, a call goes.
func ranksOf(c *gcl.TraceCall) int {
	if c.IPUs > 0 {
		return c.IPUs
	}
	return c.Size
}

// price is what series have in common that have one price: all but the replica and the name.
func (k key) price() key {
	k.name = ""
	k.who &= 1<<32 - 1
	return k
}

var seed = maphash.MakeSeed()

func (k *key) hash() uint64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio: the upper bits of a product depend on all
	return ((maphash.String(seed, k.name)^k.what)*golden ^ k.who) * golden >> 32
}

// Bounds of the buckets are powers of four: 256 ns, 1,024 ns, and so on.
const shortestBits = 8

// bounds are the greatest times of the buckets, in nanoseconds; there is one bucket more, without a bound.
var bounds = [...]int64{
	1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30, 1 << 32,
	1 << 34, // 17 s
}

// series is what is known of calls that have all labels alike.
type series struct {
	key       key
	operation operation
	labels    string  // with commas between them
	factor    float64 // see schedule.Contract.BusFactor; 0: nothing says how much moves

	_  [128]byte  // what follows is written in each call of a replica, so it shares no cache line with that of another
	mu sync.Mutex // guards what follows, up to the padding
	counted
	_ [128]byte
}

// counted are the counts of a series.
type counted struct {
	counts    [len(bounds) + 1]uint64 // calls by bucket
	nanos     int64                   // of all calls
	bytes     uint64                  // of all calls
	lastNanos int64                   // of the last call
	lastBytes int                     // of the last call
	price     float64                 // seconds; 0: not known
}

// read copies the counts.
func (s *series) read() counted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counted
}

// other is the value of labels that are shared, for lack of room.
const other = "other"

func newSeries(k key, c *gcl.TraceCall) *series {
	s, ranks := &series{key: k, operation: operationOf(c)}, ranksOf(c)
	switch {
	case c.Message:
		s.factor = 1
	case !c.Barrier && ranks > 1:
		s.factor = c.Collective.Contract().BusFactor(ranks)
	}
	method := c.Method.String()
	switch {
	case c.Phase > 0:
		method = "hybrid"
	case c.Method == methods.Auto:
		method = "none"
	}
	s.labels = labels("replica", fmt.Sprint(c.Replica), operationNames[s.operation].label, nameOf(c),
		"message_size", sizeText(bits.Len(uint(c.Bytes))), "nranks", fmt.Sprint(ranks),
		"comm_name", orElse(k.name, "unknown"), "method", method, "path", c.Path.String(),
		"transport", orElse(c.Transport, "none"))
	return s
}

// restLabels are those of series that share what is left.
func restLabels(o operation) string {
	return labels("replica", other, operationNames[o].label, other, "message_size", other, "nranks", other,
		"comm_name", other, "method", other, "path", other, "transport", other)
}

func orElse(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// escapes are those of values of labels.
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labels joins names and values, which take turns.
func labels(all ...string) string {
	var b strings.Builder
	for i := 0; i < len(all); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%s="%s"`, all[i], escapes.Replace(strings.ToValidUTF8(all[i+1], "\uFFFD")))
	}
	return b.String()
}

// sizeText is the range of numbers of bytes of a length in bits.
func sizeText(length int) string {
	if length == 0 {
		return "0"
	}
	return powerText(length-1) + "-" + powerText(length)
}

// powerText is a power of two, in bytes.
func powerText(power int) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	return fmt.Sprint(1<<(power%10), units[power/10])
}
