package gcl

import (
	"slices"
	"strings"

	"gogcl.dev/gcl/internal/flight"
)

// Dump says what the replicas were doing when a collective failed: a table for each connection of each replica of this
// process that shares the communicator. It takes an error of a collective, of Dup, Close, Work.Wait or Run, also
// joined to others or wrapped. For other errors it returns "".
//
// Every connection keeps its last 1,024 collectives, whether anything goes wrong or not. Shown are those around the
// failed one, which is marked; at other replicas those around their call of the same number in the same group; and the
// last. So a replica that was in another call, had not come as far, or waited for a turn can be told from those that
// waited for it:
//
//	gcl: flight recorder; times are relative to the failure of all-reduce #17 "w" on replica 1
//	replica 1, connection 0: 17 collectives
//	      began      took  state              call
//	  -12.106ms    8.12µs  done               all-reduce #16 "w" (ADD float32 x 8, group {0, 1}), direct, messages
//	>  -3.401ms   3.401ms  failed in round 1  all-reduce #17 "w" (ADD float32 x 8, group {0, 1}), direct, messages
//
// A call whose data is small and goes on peer memory takes hardly longer than a look at the clock, and so does one of
// up to 128 elements that sends nothing. When it goes well there is no second look: "< 1.5µs" is the time until the
// next call began, and after the last one there is none.
//
// Dump may be called at any time, from any goroutine, while collectives run; the sooner it is called the less has been
// overwritten. Communicators made by New have recorders of their own on a transport that does not implement
// transport.Shared.
//
// Processes have recorders of their own. When a communicator of processes fails, each tells the others its last
// records, 2 KiB of them, which Dump prints after its own. It waits a second at most, once, for those that have not
// come. Nothing comes from a process that has died.
func Dump(err error) string {
	found := findPlaces(err)
	var b strings.Builder
	var seen []*flight.Recorders
	for _, p := range found {
		if slices.Contains(seen, p.Recorders) {
			continue
		}
		seen = append(seen, p.Recorders)
		p.Recorders.Dump(&b, found)
		p.Recorders.Elsewhere(&b)
	}
	return b.String()
}

// Dump is as the function Dump, at any time and without an error: what the replicas of this process that share the
// communicator are doing now. Calls in progress come first, each with those for whom it waits:
//
//	replica 0 is in barrier #1 of group {0, 1} on connection 1 for 1.2s, waiting for replica 1,
//	which is in barrier #1 of group {0, 1} on connection 0 and has made no call on connection 1
//
// It is one line, folded here.
//
// It may be called while collectives run or wait, from any goroutine, and changes nothing. For a nil or zero Comm it is
// "".
func (c *Comm) Dump() string {
	if c.check() != nil || c.conn.flights == nil {
		return ""
	}
	return c.conn.flights.Now()
}

// recorded is an error that knows its place.
type recorded interface{ recordedAt() flight.Place }

// findPlaces collects the places of an error and of all that it wraps.
func findPlaces(err error) []flight.Place {
	if err == nil {
		return nil
	}
	var out []flight.Place
	if r, ok := err.(recorded); ok {
		if p := r.recordedAt(); p.Recorders != nil {
			out = append(out, p)
		}
	}
	for _, inner := range flight.Wrapped(err) {
		out = append(out, findPlaces(inner)...)
	}
	return out
}
