package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Process is what a process of a job says of itself.
type Process struct {
	Job       string    `json:"job,omitempty"`
	Run       string    `json:"run"`  // a number of this run of the job that no other run has
	Size      int       `json:"size"` // replicas of the job
	Host      string    `json:"host,omitempty"`
	PID       int       `json:"pid,omitempty"`
	Program   string    `json:"program,omitempty"`
	Transport string    `json:"transport,omitempty"`
	At        time.Time `json:"at"`                // of this, by the clock of the host
	Failure   *Failure  `json:"failure,omitempty"` // nil: its communicator has not failed
	Replicas  []Replica `json:"replicas"`
	Heard     []Process `json:"heard,omitempty"` // what others have said when it was about to write a file
}

// Failure is why a communicator has failed.
type Failure struct {
	Error   string `json:"error"`
	Replica int    `json:"replica"`        // where it began, as far as the process knows; -1: it does not
	Kind    Kind   `json:"kind,omitempty"` // "": that replica has failed by itself
}

// Replica is what a process says of one of its replicas.
type Replica struct {
	Replica     int          `json:"replica"`
	Connections []Connection `json:"connections,omitempty"`
	BytesPerSec int64        `json:"bytes_per_second,omitempty"` // of the calls that began within Window
	Times       []byte       `json:"times,omitempty"`            // of calls that all members wait for: see Times
	Left        bool         `json:"left,omitempty"`             // all connections are closed
	Stack       string       `json:"stack,omitempty"`            // see Stacks; "": unknown
}

// Kind is what a failure says about the replica where it began.
type Kind string

// The kinds.
const (
	Lost     Kind = "lost"     // it has died, or says nothing any more
	Left     Kind = "left"     // it has left while others waited for it
	Waited   Kind = "waited"   // the time for a call of it was over: others are to blame
	Disputed Kind = "disputed" // it has found that replicas disagree
)

// Window is how long the calls go back that BytesPerSec counts.
const Window = 2 * time.Second

// Connection is what a replica has done on one connection.
type Connection struct {
	ID     uint64 `json:"id"`               // which all replicas know it by; 0 is the first
	Number int    `json:"number,omitempty"` // of the connections of the replica
	Closed bool   `json:"closed,omitempty"`
	Calls  []Call `json:"calls,omitempty"`  // the last ones, the last at the end
	Queued []Call `json:"queued,omitempty"` // which have not had their turn

	// Reached has the number of the last call by group. More says that there may be calls of groups that it has not,
	// Cut that there was no room for connections that follow this one.
	Reached map[uint64]uint64 `json:"reached,omitempty"`
	More    bool              `json:"more,omitempty"`
	Cut     bool              `json:"cut,omitempty"`
}

// Call is a collective, a barrier or a message.
type Call struct {
	Name   string        `json:"name"`              // as errors have it: all-reduce #3 "layer3/grads"
	Group  string        `json:"group,omitempty"`   // as errors have it; "": it has none
	Waits  []Part        `json:"waits,omitempty"`   // what it takes, if it is going on
	Began  time.Duration `json:"began_ns"`          // how long ago
	Took   time.Duration `json:"took_ns,omitempty"` // 0: it goes on, or was a quick one
	State  State         `json:"state,omitempty"`   // "": it goes on
	Inside bool          `json:"inside,omitempty"`  // it goes on, or did when the communicator failed
	Phase  int           `json:"phase,omitempty"`   // of Hybrid, from 1 on
	Round  int           `json:"round,omitempty"`   // the last one that was entered, from 1 on
	Data   string        `json:"data,omitempty"`    // what it works on
	Method string        `json:"method,omitempty"`  // how it goes
	Path   string        `json:"path,omitempty"`
}

// Part is a call of a group, or the messages from one replica to another, whose members it waits for.
type Part struct {
	Group   uint64 `json:"group"`
	Seq     uint64 `json:"seq"`
	Members []int  `json:"members,omitempty"` // nil: those that have come to it are all that is known
}

// State is how far a call has come.
type State string

// The states of a call.
const (
	Running State = ""
	Done    State = "done"
	Failed  State = "failed"
	Queued  State = "waiting for its turn"
)

// Last is the last call of a connection that had its turn.
func (c *Connection) Last() (call Call, ok bool) {
	if len(c.Calls) == 0 {
		return call, false
	}
	return c.Calls[len(c.Calls)-1], true
}

// Full is the name of a call and its group.
func (c *Call) Full() string {
	if c.Group == "" {
		return c.Name
	}
	return c.Name + " of group " + c.Group
}

// Came reports whether the replica has come to a call of the connection; not known says that there was no room to tell.
func (c *Connection) Came(group, seq uint64) (came, known bool) {
	reached, told := c.Reached[group]
	return told && reached >= seq, told || !c.More
}

// on returns the replica's connection with an ID, or nil.
func (r *Replica) on(id uint64) *Connection {
	for i := range r.Connections {
		if r.Connections[i].ID == id {
			return &r.Connections[i]
		}
	}
	return nil
}

// Known reports whether the replica has told of all its connections.
func (r *Replica) Known() bool {
	return len(r.Connections) > 0 && !r.Connections[len(r.Connections)-1].Cut
}

// Standing is how a replica stands to a call that another one is in.
type Standing int

// The standings, of which all but Unknown and Come come with a text.
const (
	Unknown Standing = iota // it had no room to tell
	Come                    // it has come to the call
	Aside                   // it has, and is in another one on another connection
	Behind                  // it has, and has not come as far
	Absent                  // it has not come to it
)

// Stand says how the replica stands to a part of a call of a connection, in which another has come to a phase and a
// round, and what it does if that may keep the other waiting. here is as in Doing.
func (r *Replica) Stand(connection uint64, part Part, phase, round int, here string) (s Standing, text string) {
	c := r.on(connection)
	if c == nil && !r.Known() {
		return Unknown, ""
	}
	aside := r.Aside(connection)
	came, known := false, true
	if c != nil {
		came, known = c.Came(part.Group, part.Seq)
	}
	switch {
	case !known:
		return Unknown, ""
	case !came:
		text = r.Doing(connection, here)
		if aside != "" {
			text = aside + " and " + text
		}
		return Absent, text
	case aside != "":
		return Aside, "is in it, and " + aside
	}
	if last, ok := c.Last(); ok && last.State != Done && slices.ContainsFunc(last.Waits, func(p Part) bool {
		return p.Group == part.Group && p.Seq == part.Seq
	}) && (last.Phase < phase || last.Phase == phase && last.Round < round) {
		return Behind, "is in " + last.progress() + " of it"
	}
	return Come, ""
}

// Doing says what the replica does on a connection, which it is not in a call of that others wait for. here is " on
// connection 0", or "" where there is one connection only.
func (r *Replica) Doing(id uint64, here string) string {
	c := r.on(id)
	if c == nil {
		return "has not opened" + cutOn(here)
	}
	last, ok := c.Last()
	for _, q := range c.Queued {
		if q.State == Queued {
			behind := "a function given to Start"
			if ok && last.State == Running {
				behind = last.Full()
			}
			return fmt.Sprintf("has %s wait for its turn%s, behind %s", q.Name, here, behind)
		}
	}
	switch {
	case c.Closed:
		return "has left" + here
	case !ok:
		return "has made no call" + here
	case last.Inside:
		return "is in " + last.Full() + here
	}
	return fmt.Sprintf("has made no call%s for %v, since %s", here, Brief(last.Over()), last.Full())
}

// cutOn is " connection 0" of " on connection 0".
func cutOn(here string) string {
	if len(here) > 3 {
		return here[3:]
	}
	return here
}

// Aside says in which calls the replica is on connections other than one, or "".
func (r *Replica) Aside(but uint64) string {
	var out []string
	for i := range r.Connections {
		c := &r.Connections[i]
		if last, ok := c.Last(); ok && c.ID != but && !c.Closed && last.Inside {
			out = append(out, fmt.Sprintf("is in %s on connection %d", last.Full(), c.Number))
		}
	}
	return strings.Join(out, " and ")
}

// Over is how long ago the call was over, or began if it is not. Of a quick one only its beginning is known, which is
// as good.
func (c *Call) Over() time.Duration { return max(c.Began-c.Took, 0) }

// Brief is a duration of few digits, for texts.
func Brief(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// Shorten takes from what a process says, in steps from 0 on, what there may be no room for. It reports whether there
// was anything to take.
func (p *Process) Shorten(step int) bool {
	switch step {
	case 0:
		p.Program = ""
		for i := range p.Replicas {
			p.Replicas[i].Times = nil
		}
		return true
	case 1:
		if f := p.Failure; f != nil && len(f.Error) > shortError {
			p.Failure = &Failure{f.Error[:shortError] + "...", f.Replica, f.Kind}
		}
		return true
	case 2:
		for i := range p.Replicas {
			r := &p.Replicas[i]
			r.Connections = slices.Clone(r.Connections)
			slices.SortStableFunc(r.Connections, func(a, b Connection) int { // first those that others may wait for
				return cmp.Compare(b.inside(), a.inside())
			})
		}
		return true
	case 3:
		for i := range p.Replicas {
			for k := range p.Replicas[i].Connections {
				c := &p.Replicas[i].Connections[k]
				for n := range c.Calls {
					for m := range c.Calls[n].Waits {
						c.Calls[n].Waits[m].Members = nil
					}
				}
			}
		}
		return true
	case 4:
		for i := range p.Replicas {
			p.Replicas[i].Stack = ""
		}
		return true
	}
	for i := len(p.Replicas) - 1; i >= 0; i-- {
		r := &p.Replicas[i]
		if n := len(r.Connections); n > 1 {
			r.Connections = r.Connections[:n-1]
			r.Connections[n-2].Cut = true
			return true
		}
	}
	if n := len(p.Replicas); n > 0 {
		p.Replicas = p.Replicas[:n-1]
		return true
	}
	return false
}

// shortError is how many bytes of an error there is room for where there is little.
const shortError = 200

// inside is 1 if the replica is in a call, and else 0.
func (c *Connection) inside() int {
	if last, ok := c.Last(); ok && last.Inside {
		return 1
	}
	return 0
}

// progress is how far a call has come, for a text.
func (c *Call) progress() string {
	var parts []string
	if c.Phase > 0 {
		parts = append(parts, fmt.Sprintf("phase %d", c.Phase))
	}
	if c.Round > 0 {
		parts = append(parts, fmt.Sprintf("round %d", c.Round-1))
	}
	if parts == nil {
		return "the beginning"
	}
	return strings.Join(parts, ", ")
}
