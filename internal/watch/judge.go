package watch

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Job is what is known of a job.
type Job struct {
	Name      string    `json:"job"`
	Run       string    `json:"run"` // see Process
	Size      int       `json:"size"`
	Transport string    `json:"transport,omitempty"`
	Processes []Process `json:"processes"`
	Missing   []Missing `json:"missing,omitempty"`
}

// Missing is a replica that says nothing.
type Missing struct {
	Replica int    `json:"replica"`
	PID     int    `json:"pid,omitempty"` // 0: unknown
	Why     string `json:"why"`           // as in "does not answer"
}

// Edge says that a replica waits for another in a call.
type Edge struct {
	From   int           `json:"from"`
	To     int           `json:"to"`
	Call   string        `json:"call"`
	Waited time.Duration `json:"waited_ns"`
	Why    string        `json:"why"` // what To does, as in "has made no call for 3s, since barrier #1"
}

// Verdict is who waits for whom.
type Verdict struct {
	Edges []Edge `json:"edges,omitempty"` // by From, and To
	Sinks []int  `json:"sinks,omitempty"` // who is waited for and waits for nobody

	// Cycle is replicas of which each waits for the next, and the last for the first, where there are no Sinks.
	Cycle []int `json:"cycle,omitempty"`
}

// replicas are what the processes say, by replica.
func (j *Job) replicas() map[int]*Replica {
	out := map[int]*Replica{}
	for i := range j.Processes {
		for k := range j.Processes[i].Replicas {
			r := &j.Processes[i].Replicas[k]
			out[r.Replica] = r
		}
	}
	return out
}

// processes are those of the replicas.
func (j *Job) processes() map[int]*Process {
	out := map[int]*Process{}
	for i := range j.Processes {
		for _, r := range j.Processes[i].Replicas {
			out[r.Replica] = &j.Processes[i]
		}
	}
	return out
}

// Judge finds out who waits for whom.
func (j *Job) Judge() Verdict {
	all, of := j.replicas(), j.processes()
	why := map[int]string{}
	for _, m := range j.Missing {
		why[m.Replica] = m.Why
	}
	several := false
	for _, r := range all {
		several = several || len(r.Connections) > 1
	}
	var v Verdict
	for _, r := range all {
		known := map[int]bool{r.Replica: true} // it is said already that it waits for them
		for i := range r.Connections {
			c := &r.Connections[i]
			last, ok := c.Last()
			if !ok || !last.Inside {
				continue
			}
			here := ""
			if several {
				here = fmt.Sprintf(" on connection %d", c.Number)
			}
			for _, part := range last.Waits {
				for _, to := range part.members(all, c.ID) {
					if known[to] {
						continue
					}
					standing, text := Unknown, ""
					switch o, silent := all[to], why[to]; {
					case o != nil && after(of[to], of[r.Replica], &last):
						standing, text = o.Stand(c.ID, part, last.Phase, last.Round, here)
					case o == nil && silent != "":
						standing, text = Absent, silent
					}
					if standing >= Behind {
						known[to] = true
						waited := max(last.Began-last.Took, 0)
						v.Edges = append(v.Edges, Edge{r.Replica, to, last.Full() + here, waited, text})
					}
				}
			}
		}
	}
	slices.SortFunc(v.Edges, func(a, b Edge) int { return cmp.Or(a.From-b.From, a.To-b.To) })
	v.Sinks = sinks(v.Edges)
	if len(v.Edges) > 0 && v.Sinks == nil {
		v.Cycle = cycle(v.Edges)
	}
	return v
}

// after reports whether the process p has been looked at after a replica of o had begun a call, as far as their clocks
// are one: else it may have come to it meanwhile.
func after(p, o *Process, call *Call) bool {
	return p.Host != o.Host || p.At.After(o.At.Add(-call.Began))
}

// members are those of a part, as far as they are known.
func (p *Part) members(all map[int]*Replica, connection uint64) []int {
	if p.Members != nil {
		return p.Members
	}
	var out []int
	for replica, r := range all {
		if c := r.on(connection); c != nil && c.Reached[p.Group] > 0 {
			out = append(out, replica)
		}
	}
	slices.Sort(out)
	return out
}

// sinks are those who are waited for and wait for nobody.
func sinks(edges []Edge) (out []int) {
	waits := map[int]bool{} // for somebody
	for _, e := range edges {
		waits[e.From] = true
	}
	for _, e := range edges {
		if !waits[e.To] {
			out = append(out, e.To)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// cycle is replicas each of which waits for the next, where everybody who is waited for waits.
func cycle(edges []Edge) []int {
	next, place := map[int]int{}, map[int]int{}
	for _, e := range slices.Backward(edges) {
		next[e.From] = e.To
	}
	var walk []int
	for at := edges[0].From; ; at = next[at] {
		if i, seen := place[at]; seen {
			return walk[i:]
		}
		place[at] = len(walk)
		walk = append(walk, at)
	}
}
