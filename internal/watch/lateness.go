package watch

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Late is how often a replica was the last to come to a call that all members of a group wait for, and by how much:
// from when all others had come.
type Late struct {
	Replica int           `json:"replica"`
	Last    int           `json:"last"`   // calls
	Of      int           `json:"of"`     // calls that are known of all members
	Median  time.Duration `json:"median"` // of those of Last
	Total   time.Duration `json:"total"`  // of the same
}

func (l Late) String() string {
	return fmt.Sprintf("replica %d was last in %d of %d calls, by %v in the median", l.Replica, l.Last, l.Of,
		Brief(l.Median))
}

// leastLate is how late is late: less than this a replica that waits spends in looking, and nobody is kept from
// anything.
const leastLate = 100 * time.Microsecond

// A replica is a straggler if it was last in one call of tenth, in leastCalls, and timesOthers as often as the others
// are in the mean: replicas that take turns in being last, as on a machine with more of them than cores, are none.
const (
	tenth       = 10
	leastCalls  = 25
	timesOthers = 2
)

// Lateness is how often each replica was last, by replica, as far as the processes know.
func Lateness(all []Process) []Late {
	arrivals := arrivalsOf(all)
	most := map[series]int{} // members that are known
	for key, come := range arrivals {
		most[key.series] = max(most[key.series], len(come))
	}
	of, late := map[int]int{}, map[int][]time.Duration{}
	for key, come := range arrivals {
		if len(come) < 2 || len(come) < most[key.series] {
			continue
		}
		slices.SortFunc(come, func(a, b arrival) int { return a.began.Compare(b.began) })
		for _, a := range come {
			of[a.replica]++
		}
		last := come[len(come)-1]
		if by := last.began.Sub(come[len(come)-2].began); by >= leastLate {
			late[last.replica] = append(late[last.replica], by)
		}
	}
	var out []Late
	for replica, calls := range of {
		l := Late{Replica: replica, Last: len(late[replica]), Of: calls}
		if l.Last > 0 {
			slices.Sort(late[replica])
			l.Median = late[replica][l.Last/2]
			for _, by := range late[replica] {
				l.Total += by
			}
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Late) int { return cmp.Compare(a.Replica, b.Replica) })
	return out
}

// Stragglers are those of Lateness that keep the others waiting, the worst first.
func Stragglers(all []Late) (out []Late) {
	sum := 0
	for _, l := range all {
		sum += l.Last
	}
	for _, l := range all {
		others := sum - l.Last
		if l.Last >= leastCalls && l.Last*tenth >= l.Of && l.Last*(len(all)-1) >= timesOthers*others {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b Late) int {
		return cmp.Compare(time.Duration(b.Last)*b.Median, time.Duration(a.Last)*a.Median)
	})
	return out
}

// callKey is a call of a group on a connection.
type callKey struct {
	series
	seq uint64
}

// arrival is when a replica came to a call, and when it was over.
type arrival struct {
	replica      int
	host         string
	began, ended time.Time
	over         bool
}

// arrivalsOf are the arrivals at each call, by one clock: those of hosts differ by what the ends of their calls differ
// in the median, since a call that all members wait for is over on all at about the same time.
func arrivalsOf(all []Process) map[callKey][]arrival {
	out := map[callKey][]arrival{}
	var hosts []string
	for _, p := range all {
		if !slices.Contains(hosts, p.Host) {
			hosts = append(hosts, p.Host)
		}
		for _, r := range p.Replicas {
			readTimes(r.Times, func(c timed) {
				key := callKey{c.series, c.seq}
				out[key] = append(out[key],
					arrival{r.Replica, p.Host, p.At.Add(-c.began), p.At.Add(-c.ended), c.over})
			})
		}
	}
	for _, host := range hosts[min(1, len(hosts)):] {
		var apart []time.Duration
		for _, come := range out {
			mine, theirs := endOn(come, host), endOn(come, hosts[0])
			if !mine.IsZero() && !theirs.IsZero() {
				apart = append(apart, theirs.Sub(mine))
			}
		}
		slices.Sort(apart)
		for key, come := range out {
			out[key] = slices.DeleteFunc(come, func(a arrival) bool { return a.host == host && apart == nil })
			for i := range out[key] {
				if a := &out[key][i]; a.host == host {
					a.began = a.began.Add(apart[len(apart)/2])
				}
			}
		}
	}
	return out
}

// endOn is when a call was over on a host, or zero where that is unknown.
func endOn(come []arrival, host string) time.Time {
	for _, a := range come {
		if a.host == host && a.over {
			return a.ended
		}
	}
	return time.Time{}
}
