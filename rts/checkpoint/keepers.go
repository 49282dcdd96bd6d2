package checkpoint

import "slices"

// ring says who has which files since the last Restore.
type ring struct {
	keeper  []int       // by replica: the one that keeps its files
	sent    [][]int     // by replica: the files that its keeper has too
	own     [][]int     // by replica: the files that it has
	lengths map[int]int // by file that this process keeps: bytes
}

// newRing says who keeps whose files.
func newRing(plans []said[plan], hosts []string) ring {
	n := len(plans)
	r := ring{keeper: keepers(hosts), own: make([][]int, n), sent: make([][]int, n), lengths: map[int]int{}}
	for k := range plans[0].Body.Has {
		var owners []int
		for replica, p := range plans {
			if p.Body.Has[k] {
				owners = append(owners, replica)
				r.own[replica] = append(r.own[replica], k)
			}
		}
		if o := owners[0]; len(owners) == 1 && n > 1 {
			r.sent[o] = append(r.sent[o], k)
		}
	}
	return r
}

// keepers says which replica keeps the files of each: the next one, or where there are several hosts one on another
// host. Each keeps those of one. With h the most replicas of one host, replicas in the order of their hosts keep those
// of the one h places before:
//
//	host       a a b b b c
//	replica    0 1 2 3 4 5
//	kept by    3 4 5 0 1 2
//
// Where one host has more than half of the replicas, some of its files stay on it.
func keepers(hosts []string) []int {
	var order []int
	most := 0
	for i, host := range hosts {
		if slices.Index(hosts, host) != i {
			continue
		}
		before := len(order)
		for r, h := range hosts {
			if h == host {
				order = append(order, r)
			}
		}
		most = max(most, len(order)-before)
	}
	if most == len(hosts) {
		most = 1
	}
	out := make([]int, len(hosts))
	for i, r := range order {
		out[r] = order[(i+most)%len(order)]
	}
	return out
}
