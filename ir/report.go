package ir

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/tensor"
)

// Report says what memory a session takes on each replica, and what for, step by step.
type Report struct {
	Peak      int // bytes of a replica: Arena, Variables and Scratch
	Arena     int // bytes of what is alive for a while; each tensor begins a cache line of 64 bytes
	Variables int // bytes of the variables, each from a cache line on
	// bytes that the operation in progress has beside its tensors: the most that one wants, and one of what is started
	Scratch   int
	Constants int // bytes of the constants, which all replicas share; not in Peak
	Host      int // bytes of copies on the host, of which all replicas have one: see Session.Report; not in Peak
	Alive     int // bytes of the tensors of the step with most; Arena less this is lost to cache lines and to gaps
	Steps     []StepReport
}

// StepReport is a step of a program with called graphs in the place of their calls.
type StepReport struct {
	Op       string
	Graph    string // in which it was built
	Position Position
	Depth    int           // of the loops and choices around it
	Alive    []AliveTensor // in the arena while it runs, in the order of their places
	Bytes    int           // of Alive
	Scratch  int           // bytes of its own
}

// AliveTensor is a tensor in the arena. A graph that is called twice may have two of the same name.
type AliveTensor struct {
	Of     *Tensor
	Tensor string // as programs as text have it: "%3.x"
	Graph  string
	Bytes  int
}

// Report returns what memory the session takes. Host is what there is as it is called: what variables begin with, which
// the program keeps for its sessions; the host's values of variables that an Exit has downloaded or Write has given;
// and what packages keep with the program ([Hosted]). Beside that the caller has what streams are given and give.
func (s *Session) Report() *Report {
	if !s.made() {
		return &Report{}
	}
	r, _ := s.Totals()
	var arena []*location
	for _, x := range s.plan.locations {
		if x.inSteps() {
			arena = append(arena, x)
		}
	}
	slices.SortStableFunc(arena, func(a, b *location) int { return cmp.Compare(a.offset, b.offset) })
	r.add(s.plan.steps, arena, 0)
	return r
}

// Totals returns Report without the Steps, which of a program with thousands of them take more memory than its
// replicas. For each of the functions most has the most bytes of tensors alive in one step, of those that it is true
// of.
func (s *Session) Totals(of ...func(*Tensor) bool) (r *Report, most []int) {
	if !s.made() {
		return &Report{}, make([]int, len(of))
	}
	m := s.plan
	r = &Report{
		Peak:  m.arena + m.variables + m.scratch + m.besideScratch,
		Arena: m.arena, Variables: m.variables, Scratch: m.scratch + m.besideScratch, Host: s.hostBytes(),
	}
	seen := map[*tensor.Tensor]bool{}
	for _, x := range m.locations {
		if x.kind == ofConstant && !seen[x.constant] {
			seen[x.constant] = true
			r.Constants += x.spec.Bytes()
		}
	}
	r.Alive = m.mostAlive(func(*Tensor) bool { return true })
	for _, f := range of {
		most = append(most, m.mostAlive(f))
	}
	return r, most
}

// inSteps reports whether a location is of the arena and alive in a step.
func (x *location) inSteps() bool { return x.kind == inArena && x.last >= 0 }

// mostAlive is the most bytes of some tensors that are alive in one step.
func (m *memoryPlan) mostAlive(of func(*Tensor) bool) int {
	if of == nil {
		return 0
	}
	changes := make([]int, m.numbered+1) // bytes that come to be alive in a step, less those that no longer are
	for _, x := range m.locations {
		if x.inSteps() && of(x.of) {
			changes[x.first] += x.spec.Bytes()
			changes[x.last+1] -= x.spec.Bytes()
		}
	}
	most, alive := 0, 0
	for _, change := range changes {
		alive += change
		most = max(most, alive)
	}
	return most
}

// hostBytes is what Report's Host has. It may be called beside a run.
func (s *Session) hostBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := 0
	for i, v := range s.program.variables {
		sum += len(v.value.Bytes())
		if t := s.values[i]; t != nil {
			sum += len(t.Bytes())
		}
	}
	for _, x := range s.program.attached {
		if h, is := x.(Hosted); is {
			sum += h.HostBytes()
		}
	}
	return sum
}

// add appends some steps.
func (r *Report) add(steps []*step, arena []*location, depth int) {
	for _, s := range steps {
		out := StepReport{Op: s.text(), Graph: s.node.graph.name, Position: s.node.pos, Depth: depth,
			Scratch: s.scratchBytes()}
		for _, x := range arena {
			if x.first <= s.at && s.at <= x.last {
				out.Alive = append(out.Alive, AliveTensor{x.of, reference(x.of), x.of.graph.name, x.spec.Bytes()})
				out.Bytes += x.spec.Bytes()
			}
		}
		r.Steps = append(r.Steps, out)
		r.add(s.body, arena, depth+1)
		r.add(s.els, arena, depth+1)
	}
}

// text is what the step does.
func (s *step) text() string {
	if s.from != nil {
		return fmt.Sprintf("copy %s to %s for %s", reference(s.from.of), reference(s.to.of), s.node.op.Name())
	}
	return describeOp(s.node.op)
}

// scratchBytes is what an operation wants beside its tensors.
func (s *step) scratchBytes() int {
	if o, is := s.node.op.(Scratcher); is && s.from == nil {
		return o.ScratchBytes(specsOf(s.node.in))
	}
	return 0
}

// String is a table for a person to read: the sums, and for each step what is alive.
func (r *Report) String() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "memory of a replica: %d bytes\n", r.Peak)
	for _, part := range []struct {
		name  string
		bytes int
		note  string
	}{
		{"arena", r.Arena, fmt.Sprintf("at most %d alive", r.Alive)}, {"variables", r.Variables, ""}, {"scratch", r.Scratch, ""},
		{"constants", r.Constants, "shared by the replicas"},
		{"host", r.Host, "shared by the replicas"},
	} {
		line := fmt.Sprintf("  %-9s  %*d", part.name, len(fmt.Sprint(max(r.Peak, r.Constants, r.Host))), part.bytes)
		if part.note != "" {
			line += "  " + part.note
		}
		b.WriteString(line + "\n")
	}
	width, sizes := 0, 0
	texts := make([]string, len(r.Steps))
	for i, s := range r.Steps {
		texts[i] = indented(s.Depth, s.Op)
		width, sizes = max(width, len([]rune(texts[i]))), max(sizes, len(fmt.Sprint(s.Bytes)))
	}
	for i, s := range r.Steps {
		line := fmt.Sprintf("%-*s  %*d ", width, texts[i], sizes, s.Bytes)
		for _, t := range s.Alive {
			line += fmt.Sprintf(" %s:%d", t.Tensor, t.Bytes)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
