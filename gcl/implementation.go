package gcl

import (
	"fmt"
	"strings"
)

// Implementation says how the steps of a method are carried out. The text forms are GCL's values of collectiveImplementation.
type Implementation uint8

// The implementations.
const (
	// AutoImplementation takes the cheapest that the transport and the method allow: Syncful for methods Auto and Direct where replicas share an address
	// space, else Syncless.
	AutoImplementation Implementation = iota

	// Syncless sends messages: no barrier, each replica runs as far ahead as its data allows.
	Syncless

	// Syncful steps together: the replicas meet at a barrier and read and write each other's memory. On a transport without transport.PeerMemory it is a
	// barrier before each round.
	Syncful

	// Hybrid is Syncful inside a link domain and Syncless between domains.
	Hybrid

	numImplementations
)

var implementationNames = [numImplementations]string{"Auto", "Syncless", "Syncful", "Hybrid"}

// String returns the text form, as in "Syncful".
func (i Implementation) String() string {
	if i < numImplementations {
		return implementationNames[i]
	}
	return fmt.Sprintf("Implementation(%d)", uint8(i))
}

// ParseImplementation is the inverse of String. The error lists what is valid.
func ParseImplementation(s string) (Implementation, error) {
	for i, name := range implementationNames {
		if s == name {
			return Implementation(i), nil
		}
	}
	return 0, fmt.Errorf("gcl: unknown implementation %q, want one of %s", s, strings.Join(implementationNames[:], ", "))
}

// MarshalText returns the text form, or an error if i is no implementation.
func (i Implementation) MarshalText() ([]byte, error) {
	if i >= numImplementations {
		return nil, fmt.Errorf("gcl: %v is not an implementation", i)
	}
	return []byte(i.String()), nil
}

// UnmarshalText parses the text form.
func (i *Implementation) UnmarshalText(text []byte) error {
	parsed, err := ParseImplementation(string(text))
	if err == nil {
		*i = parsed
	}
	return err
}
