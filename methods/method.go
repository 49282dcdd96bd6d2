package methods

import (
	"fmt"
	"strings"
)

// Method names a way to carry out a collective. The text forms are GCL's option values.
type Method uint8

// The methods. Direct and RecursiveDoubling are this library's own, the others are GCL's.
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
	numMethods
)

var names = [numMethods]string{"auto", "broadcast", "clockwise_ring", "anticlockwise_ring", "bidirectional_ring_pair",
	"meet_in_middle_ring", "quad_directional_ring", "direct", "recursive_doubling"}

// All lists the methods that make schedules: every one but Auto.
func All() []Method {
	return []Method{SendToAll, ClockwiseRing, AnticlockwiseRing, BidirectionalRingPair, MeetInMiddleRing, QuadDirectionalRing, Direct, RecursiveDoubling}
}

// String returns the text form, as in "clockwise_ring".
func (m Method) String() string {
	if m < numMethods {
		return names[m]
	}
	return fmt.Sprintf("Method(%d)", uint8(m))
}

// Parse is the inverse of String. The error lists what is valid.
func Parse(s string) (Method, error) {
	for m, name := range names {
		if s == name {
			return Method(m), nil
		}
	}
	return Auto, fmt.Errorf("methods: unknown method %q, want one of %s", s, strings.Join(names[:], ", "))
}

// MarshalText returns the text form, or an error if m is no method.
func (m Method) MarshalText() ([]byte, error) {
	if m >= numMethods {
		return nil, fmt.Errorf("methods: %v is not a method", m)
	}
	return []byte(m.String()), nil
}

// UnmarshalText parses the text form. After an error m is what it was.
func (m *Method) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*m = parsed
	}
	return err
}
