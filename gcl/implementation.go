package gcl

import (
	"gogcl.dev/internal/enum"

	"gogcl.dev/gcl/internal/route"
)

// Implementation says how the steps of a method are carried out. The text forms are GCL's values of
// collectiveImplementation.
type Implementation uint8

// The implementations.
const (
	// AutoImplementation takes the cheapest that the transport and the method allow: Syncful for methods Auto and
	// Direct where replicas share memory, else Syncless. By method Auto a rule goes before that: see
	// Options.Tuning.
	AutoImplementation Implementation = Implementation(route.Auto)

	// Syncless sends messages: no barrier, each replica runs as far ahead as its data allows.
	Syncless Implementation = Implementation(route.Syncless)

	// Syncful steps together: the replicas meet at a barrier and read and write each other's memory. On a transport
	// without transport.PeerMemory it is a barrier before each round.
	Syncful Implementation = Implementation(route.Syncful)

	// Hybrid is Syncful among the members of a group in one link domain (see WithTopology) and Syncless between
	// domains: an all-reduce is a reduce-scatter inside, an all-reduce across and an all-gather inside, or where that
	// costs less a reduce to a leader inside, an all-reduce among leaders and a broadcast inside. The others go
	// correspondingly, see docs/design/hybrid.md. Every domain must hold equally many members. Of a group inside one
	// domain, and among the IPUs of a replica, it is Syncful; of a group with a member in each domain Syncless.
	// Reproducible reductions, and calls on several tensors, go the way that AutoImplementation takes.
	Hybrid Implementation = Implementation(route.Hybrid)
)

var implementationNames = enum.New[Implementation]("implementation",
	[]string{AutoImplementation: "Auto", Syncless: "Syncless", Syncful: "Syncful", Hybrid: "Hybrid"}...)

// String returns the text form, as in "Syncful".
func (i Implementation) String() string { return implementationNames.String(i) }

// ParseImplementation is the inverse of String. The error lists what is valid.
func ParseImplementation(s string) (Implementation, error) { return implementationNames.Parse(s) }

// MarshalText returns the text form, or an error if i is no implementation.
func (i Implementation) MarshalText() ([]byte, error) { return implementationNames.MarshalText(i) }

// UnmarshalText parses the text form. After an error i is what it was.
func (i *Implementation) UnmarshalText(text []byte) error {
	return implementationNames.UnmarshalText(i, text)
}
