package topology

import (
	"fmt"

	"gogcl.dev/internal/enum"
)

// RingName is a ring by GCL's name for it, the value of the option "topology". The zero value is [Auto].
type RingName uint8

// The rings. Their orders are in the package comment, their rules at [Topology.Rings].
const (
	Auto           RingName = iota // whichever fits the machine
	RungRing2                      // straight up by rungs, around at the top; one ring on each side
	RungRing4                      // the same, replicas of two rungs
	RungRing8                      // the same, replicas of four rungs
	RingOnLine                     // up over every other replica, back over the rest; one ring on each side
	PeripheralRing                 // round the edge: up the left column, down the right
)

var ringNames = enum.New[RingName]("ring", []string{Auto: "auto", RungRing2: "rung-ring-2", RungRing4: "rung-ring-4",
	RungRing8: "rung-ring-8", RingOnLine: "ring-on-line", PeripheralRing: "peripheral-ring"}...)

// String returns GCL's spelling, as in "rung-ring-2".
func (r RingName) String() string { return ringNames.String(r) }

// ParseRing returns the ring of a name as [RingName.String] spells it. The error lists them all.
func ParseRing(name string) (RingName, error) { return ringNames.Parse(name) }

// MarshalText returns the name. An unknown ring is an error.
func (r RingName) MarshalText() ([]byte, error) { return ringNames.MarshalText(r) }

// UnmarshalText sets the ring from its name. After an error it is what it was.
func (r *RingName) UnmarshalText(text []byte) error { return ringNames.UnmarshalText(r, text) }

// course is the way a ring takes through the replicas of one domain, numbered from the bottom.
type course uint8

const (
	straight  course = iota // 0 1 2 3 ...
	upAndBack               // the even ones going up, the odd ones coming back
)

// course says which way a ring takes here, and its name if it has one. The error says why it does not fit.
func (t Topology) course(name RingName) (course, RingName, error) {
	needs := 0
	switch name {
	case Auto:
		return t.autoCourse()
	case PeripheralRing:
		needs = 1
	case RungRing2, RingOnLine:
		needs = 2
	case RungRing4:
		needs = 4
	case RungRing8:
		needs = 8
	default:
		return 0, 0, fmt.Errorf("topology: %w", ringNames.Check(name))
	}
	if t.ipus != needs {
		return 0, 0, fmt.Errorf("topology: ring %v is for replicas of %d IPUs, these have %d", name, needs, t.ipus)
	}
	if name == PeripheralRing || name == RingOnLine {
		return upAndBack, name, nil
	}
	if t.shape == OpenLadder {
		return 0, 0, fmt.Errorf("topology: ring %v goes around at the top: it needs a ladder with joined ends, this "+
			"one is open", name)
	}
	return straight, name, nil
}

// autoCourse picks by shape and replica size. Sizes that GCL has no name for take the course of those that have.
func (t Topology) autoCourse() (course, RingName, error) {
	switch {
	case t.shape == Clique:
		return straight, Auto, nil
	case t.ipus == 1:
		return upAndBack, PeripheralRing, nil
	case t.shape == OpenLadder && t.ipus == 2:
		return upAndBack, RingOnLine, nil
	case t.shape == OpenLadder:
		return upAndBack, Auto, nil
	case t.ipus == 2:
		return straight, RungRing2, nil
	case t.ipus == 4:
		return straight, RungRing4, nil
	case t.ipus == 8:
		return straight, RungRing8, nil
	}
	return straight, Auto, nil
}
