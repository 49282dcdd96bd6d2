package measure

import (
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/methods/schedule"
)

// Collective is one of the operations that are measured: those of the table of contracts.
type Collective schedule.Collective

// CollectiveNames are the names of all, as nccl-tests and -collective have them: without hyphens.
func CollectiveNames() []string {
	var names []string
	for _, c := range Collectives() {
		names = append(names, c.String())
	}
	return names
}

func (c Collective) String() string {
	return strings.ReplaceAll(schedule.Collective(c).String(), "-", "")
}

// Collectives are those of all names.
func Collectives() []Collective {
	var out []Collective
	for _, c := range schedule.Collectives() {
		out = append(out, Collective(c))
	}
	return out
}

// ParseCollectives reads names with commas between them, or "all".
func ParseCollectives(text string) ([]Collective, error) {
	if text == "all" {
		return Collectives(), nil
	}
	var out []Collective
	names := CollectiveNames()
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, Unknown("-collective", name, append(names, "all"))
		}
		out = append(out, Collective(i))
	}
	return out, nil
}

// Contract is what the collective promises.
func (c Collective) Contract() schedule.Contract { return schedule.Collective(c).Contract() }

// Reduces reports whether the collective has an operator.
func (c Collective) Reduces() bool { return c.Contract().Combines }

// Rooted reports whether the collective has a root.
func (c Collective) Rooted() bool { return c.Contract().Rooted() }

// PerReplica reports whether the larger buffer has a part for each replica.
func (c Collective) PerReplica() bool { return c.Contract().PerRank() }

// Count is the number of elements that a call has for a size in bytes: for each replica where PerReplica says so, else
// in all. It is rounded up where each replica must have as many, and 1 at least.
func (c Collective) Count(size, elemSize, n int) int {
	elems := max(size/elemSize, 1)
	if c.PerReplica() {
		return (elems-1)/n + 1
	}
	return elems
}

// Larger is the number of elements of the larger of a replica's two buffers.
func (c Collective) Larger(count, n int) int {
	if c.PerReplica() {
		return count * n
	}
	return count
}

// lengths are the elements of a replica's input and of its result.
func (c Collective) lengths(count, n int) (input, result int) {
	whole, contract := c.Larger(count, n), c.Contract()
	return contract.Input.Elements(whole, n), contract.Output.Elements(whole, n)
}

// BusFactor is nccl-tests' factor: see schedule.Contract.
func (c Collective) BusFactor(n int) float64 { return c.Contract().BusFactor(n) }

// Place says whether a result lies apart from the input.
type Place uint8

const (
	OutOfPlace Place = iota
	InPlace
)

var placeNames = [...]string{"oop", "ip"}

func (p Place) String() string { return placeNames[p] }

// ParsePlaces reads oop, ip or both.
func ParsePlaces(text string) ([]Place, error) {
	switch text {
	case "both":
		return []Place{OutOfPlace, InPlace}, nil
	case "oop":
		return []Place{OutOfPlace}, nil
	case "ip":
		return []Place{InPlace}, nil
	}
	return nil, fmt.Errorf("-place %q, want oop, ip or both", text)
}
