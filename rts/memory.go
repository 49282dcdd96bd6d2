package rts

import (
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
}

// Memory returns what the step takes in a session, on each replica: what the session has allocated, as its plan has it
// laid out.
func (s *Step) Memory(session *ir.Session) (Memory, error) {
	var m Memory
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
	r := session.Report()
	for _, step := range r.Steps {
		var gathered, gradients, others int
		for _, t := range step.Alive {
			switch {
			case s.gathered[t.Of]:
				gathered += t.Bytes
			case s.gradients[t.Of]:
				gradients += t.Bytes
			default:
				others += t.Bytes
			}
		}
		m.Gathered, m.Gradients, m.Others = max(m.Gathered, gathered), max(m.Gradients, gradients), max(m.Others, others)
	}
	m.Arena = r.Arena
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
		{"others", m.Others}, {"arena", m.Arena}, {"peak", m.Peak},
	} {
		fmt.Fprintf(&b, "%-15s  %*d\n", row.name, len(fmt.Sprint(m.Peak)), row.bytes)
	}
	return b.String()
}
