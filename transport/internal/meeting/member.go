package meeting

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/transport"
)

// What hosts have in common.

// ErrCrash is the error of a call that a user's code has left.
var ErrCrash = errors.New("a Combiner or a Worker panicked or ended its goroutine")

// CheckMembers says what is wrong with a list of members of size replicas, of which the caller is one.
func CheckMembers(members []int, caller, size int) error {
	for i, r := range members {
		switch {
		case r < 0 || r >= size:
			return &transport.ArgumentError{Reason: fmt.Sprintf("member %d of %d replicas", r, size)}
		case slices.Contains(members[:i], r):
			return &transport.ArgumentError{Reason: fmt.Sprintf("member %d twice", r)}
		}
	}
	if !slices.Contains(members, caller) {
		return &transport.ArgumentError{Reason: fmt.Sprintf("replica %d is not among the members", caller)}
	}
	return nil
}

// SameSlice reports whether two lists of members are one slice.
func SameSlice(a, b []int) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// How often a member with a processor of its own looks before it parks: up to some 50 us, which is what a park and a
// wake-up cost together when the other processor sleeps, and less when that has turned out to be in vain. The least
// must outlast a wake-up in the ordinary case, some 5 us, or two members that have parked once make each other park
// for ever: gclperf -n 2 showed 2 us at 8 B where it was shorter, 0.3 else. A look takes 1 to 2 ns.
const (
	MinSpins = 8 << 10
	MaxSpins = 32 << 10
)

// LooksPerCheck is how often a member looks for the others before it looks for an interruption, which costs as much as
// several looks.
const LooksPerCheck = 32
