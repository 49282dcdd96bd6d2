package cost

import (
	"fmt"
	"math"
	"time"
)

// Network is what connects replicas: links, each in one direction, and for each pair of replicas the links that a
// message takes. The same question always has the same answer. [Machine], [Torus], [FatTree] and [ParseGraph] make
// networks, which may be shared.
type Network interface {
	// Replicas is how many there are. Their ids count from 0.
	Replicas() int

	// Links is how many there are, at most 1<<26. Their numbers count from 0.
	Links() int

	// Link returns the link of a number.
	Link(number int) Link

	// Route appends to links the numbers of those that a message between two different replicas takes, in order: none
	// if nothing is in its way, so that it takes the time of the processors alone. An error says that no way leads
	// there.
	Route(links []int, from, to int) ([]int, error)
}

// Link is one direction between two neighbours: equal cables, of which each message takes the one with least to carry
// in the round, the first of several.
type Link struct {
	BytesPerSecond float64       // of one cable; at least 0.001, and finite
	Latency        time.Duration // from the first byte sent to the first byte there; at least 0
	Cables         int           // 1 to 1024; 0 means 1
}

// These bound the memory that a price takes.
const (
	maxReplicas = 1 << 24
	maxLinks    = 1 << 26
	maxCables   = 1 << 10
)

// minBytesPerSecond is the least speed of a cable. Times of all lengths of buffers are finite with it.
const minBytesPerSecond = 1e-3

// Check refuses a link that cannot be.
func (l Link) Check() error {
	switch {
	case !(l.BytesPerSecond >= minBytesPerSecond) || math.IsInf(l.BytesPerSecond, 1):
		return fmt.Errorf("%v bytes per second, want a finite number, at least %v", l.BytesPerSecond, minBytesPerSecond)
	case l.Latency < 0:
		return fmt.Errorf("a latency of %v, want 0 or more", l.Latency)
	case l.Cables < 0 || l.Cables > maxCables:
		return fmt.Errorf("%d cables, want 1 to %d, or 0 for 1", l.Cables, maxCables)
	}
	return nil
}

func checkNetwork(n Network) error {
	if n == nil {
		return fmt.Errorf("cost: no network")
	}
	if links := n.Links(); links < 0 || links > maxLinks {
		return fmt.Errorf("cost: a network of %d links, want 0 to %d", links, maxLinks)
	}
	if replicas := n.Replicas(); replicas < 0 || replicas > maxReplicas {
		return fmt.Errorf("cost: a network of %d replicas, want 0 to %d", replicas, maxReplicas)
	}
	return nil
}
