package rts

import (
	"errors"
	"fmt"
	"strings"

	"gogcl.dev/ir"
)

// Memory is what a training step takes on each replica, in bytes. The first two are in streaming memory, as long as the
// session lives. The others are of the replica's own memory: each is the most that there is of its kind at any
// time, and they do not come at the same time.
type Memory struct {
	Parameters int // shards
	States     int // shards of what the optimiser keeps
	Gathered   int // whole parameters
	Gradients  int // of parameters, whole and in shards
	Others     int // activations, their gradients, inputs, and what is loaded to be updated
	Arena      int // what all of these take together, with what is lost to alignment and gaps
	Peak       int // Parameters, States, Arena, and the program's variables and scratch memory
	Host       int // copies on the host, which the replicas share, as [ir.Session.Report] has them; not in Peak
}

// Memory returns what the step takes in a session, on each replica: what the session has allocated, as its plan has it
// laid out.
func (s *Step) Memory(session *ir.Session) (Memory, error) {
	var m Memory
	if s == nil || s.program == nil {
		return m, errors.New("rts: no training step: Trainer.Step makes one")
	}
	if session == nil || session.Program() != s.program {
		return m, fmt.Errorf("rts: the session is of another program than the training step")
	}
	for _, k := range s.kept {
		bytes := k.buffer.Spec().Bytes()
		if k.state {
			m.States += bytes
		} else {
			m.Parameters += bytes
		}
	}
	gathered := func(t *ir.Tensor) bool { return s.gathered[t] }
	gradient := func(t *ir.Tensor) bool { return s.gradients[t] && !s.gathered[t] }
	other := func(t *ir.Tensor) bool { return !s.gradients[t] && !s.gathered[t] }
	r, most := session.Totals(gathered, gradient, other)
	m.Gathered, m.Gradients, m.Others = most[0], most[1], most[2]
	m.Arena, m.Host = r.Arena, r.Host
	m.Peak = m.Parameters + m.States + r.Peak
	return m, nil
}

// String is a table for a person to read.
func (m Memory) String() string {
	var b strings.Builder
	for _, row := range []struct {
		name  string
		bytes int
	}{
		{"parameters", m.Parameters}, {"optimiser state", m.States}, {"gathered", m.Gathered}, {"gradients", m.Gradients},
		{"others", m.Others}, {"arena", m.Arena}, {"peak", m.Peak}, {"host", m.Host},
	} {
		fmt.Fprintf(&b, "%-15s  %*d\n", row.name, len(fmt.Sprint(max(m.Peak, m.Host))), row.bytes)
	}
	return b.String()
}
