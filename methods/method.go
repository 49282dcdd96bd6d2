package methods

import "gogcl.dev/internal/enum"

// Method names a way to carry out a collective. The text forms are GCL's option values.
type Method uint8

// The methods. Direct, RecursiveDoubling and Native are this library's own, the others are GCL's.
const (
	Auto                  Method = iota // choose by collective, group size and bytes
	SendToAll                           // everyone sends everything to everyone: GCL's broadcast
	ClockwiseRing                       // fragments go round the ring
	AnticlockwiseRing                   // the other way round
	BidirectionalRingPair               // half the data each way
	MeetInMiddleRing                    // every fragment half way round, from both sides
	QuadDirectionalRing                 // a quarter each way on each of two rings
	Direct                              // each piece straight to its owner and back
	RecursiveDoubling                   // partners at distance 1, 2, 4, ...: a logarithmic number of rounds
	Native                              // a collective of the transport's own engine: there is no schedule
	numMethods
)

// names are those of the table.
var names = enum.New[Method]("method", tableNames()...)

func tableNames() []string {
	var out []string
	for m := range table {
		out = append(out, table[m].name)
	}
	return out
}

// All lists the methods that make schedules: every one but Auto and Native.
func All() []Method {
	var out []Method
	for m := range numMethods {
		if table[m].ways != nil {
			out = append(out, m)
		}
	}
	return out
}

// Values lists all methods by their numbers, Auto and Native among them.
func Values() []Method {
	out := make([]Method, numMethods)
	for m := range out {
		out[m] = Method(m)
	}
	return out
}

// Rings is how many ring orders the method follows: 0, 1 (Spec.Ring) or 2 (Spec.Second too). A reduction in rank order
// follows none.
func (m Method) Rings() int {
	if m < numMethods {
		return table[m].rings
	}
	return 0
}

// String returns the text form, as in "clockwise_ring".
func (m Method) String() string { return names.String(m) }

// Parse is the inverse of String. The error lists what is valid.
func Parse(s string) (Method, error) { return names.Parse(s) }

// MarshalText returns the text form, or an error if m is no method.
func (m Method) MarshalText() ([]byte, error) { return names.MarshalText(m) }

// UnmarshalText parses the text form. After an error m is what it was.
func (m *Method) UnmarshalText(text []byte) error { return names.UnmarshalText(m, text) }
