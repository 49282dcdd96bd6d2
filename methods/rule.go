package methods

import (
	"fmt"

	"gogcl.dev/internal/enum"
	"gogcl.dev/methods/schedule"
)

// Rule says which method a collective takes over some numbers of ranks, from a size on: a line of [Rules].
type Rule struct {
	Collective schedule.Collective // any but Barrier

	// Fewest and Most are the numbers of ranks that the rule is for, 2 or more. Most is 0 where there is no upper
	// limit.
	Fewest, Most int

	FromBytes int64  // the least size of the larger of a rank's two buffers
	Shared    bool   // FromBytes is divided by the number of ranks: it is the least size of all their buffers together
	Method    Method // neither Auto nor Native

	// Implementation is that with which the method was measured. AnyImplementation leaves it to gcl.
	Implementation Implementation

	Measured string // what was measured, for people: one line of text
	Line     int    // in the text, from 1
}

// Implementation is how a Rule has the steps of its method carried out. The names are gcl.Implementation's.
type Implementation uint8

// The implementations of rules.
const (
	AnyImplementation Implementation = iota // as gcl.AutoImplementation takes for the method
	Syncless                                // messages
	Syncful                                 // replicas step together on peer memory
)

var implementationNames = enum.New[Implementation]("implementation",
	[]string{AnyImplementation: "Auto", Syncless: "Syncless", Syncful: "Syncful"}...)

// String returns "Auto", "Syncless" or "Syncful".
func (i Implementation) String() string { return implementationNames.String(i) }

// covers reports whether the rule is for so many ranks.
func (r *Rule) covers(ranks int) bool { return ranks >= r.Fewest && (r.Most == 0 || ranks <= r.Most) }

// reaches reports whether the rule is for so many bytes of each of so many ranks.
func (r *Rule) reaches(bytes int64, ranks int) bool {
	if !r.Shared {
		return bytes >= r.FromBytes
	}
	n := int64(ranks)
	least := r.FromBytes / n // rounded up: the product of bytes and ranks may not be an int64
	if r.FromBytes%n > 0 {
		least++
	}
	return bytes >= least
}

// from is FromBytes as rules have it: "64KiB", or "8193/ranks" if the ranks share it.
func (r *Rule) from() string {
	if r.Shared {
		return sizeText(r.FromBytes) + sharedSuffix
	}
	return sizeText(r.FromBytes)
}

// sharedSuffix stands behind the size of a rule that is Shared.
const sharedSuffix = "/ranks"

// way is the method, with a slash and the implementation behind it if the rule has one.
func (r *Rule) way() string {
	if r.Implementation == AnyImplementation {
		return r.Method.String()
	}
	return r.Method.String() + "/" + r.Implementation.String()
}

// ranks is "4", "5-7" or "8-".
func (r *Rule) ranks() string {
	switch r.Most {
	case r.Fewest:
		return fmt.Sprint(r.Fewest)
	case 0:
		return fmt.Sprintf("%d-", r.Fewest)
	}
	return fmt.Sprintf("%d-%d", r.Fewest, r.Most)
}

// String is the rule as a line of a table, as in "all-reduce 5-7 64KiB direct/Syncful 12.1 us".
func (r Rule) String() string {
	line := fmt.Sprintf("%v %s %s %s", r.Collective, r.ranks(), r.from(), r.way())
	if r.Measured != "" {
		line += " " + r.Measured
	}
	return line
}

// sizeText is a size as rules have it: "0", "4100", "64KiB".
func sizeText(bytes int64) string {
	unit := 0
	for unit+1 < len(sizeUnits) && bytes > 0 && bytes%1024 == 0 {
		bytes /= 1024
		unit++
	}
	return fmt.Sprint(bytes) + sizeUnits[unit]
}

// sizeUnits are powers of 1024.
var sizeUnits = []string{"", "KiB", "MiB", "GiB"}
