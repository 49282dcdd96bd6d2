package ir

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/tensor"
)

// Report says what memory a session takes on each replica, and what for, step by step. The report itself takes 48 bytes
// for each tensor that is alive in each step, since Steps list them all: 50 MB for a way forward and back of 2,000
// operations that keeps what it makes, and four times as much for twice the operations. [Session.Totals] has no Steps.
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
	all := &aliveness{starting: make([][]int, s.plan.numbered)}
	for _, x := range s.plan.locations {
		if x.inSteps() {
			all.arena = append(all.arena, x)
		}
	}
	slices.SortStableFunc(all.arena, func(a, b *location) int { return cmp.Compare(a.offset, b.offset) })
	for i, x := range all.arena {
		all.texts = append(all.texts, AliveTensor{x.of, reference(x.of), x.of.graph.name, x.spec.Bytes()})
		all.starting[x.first] = append(all.starting[x.first], i)
	}
	r.add(s.plan.steps, all, 0)
	return r
}

// aliveness follows what is alive from step to step.
type aliveness struct {
	arena    []*location   // in the order of their places
	texts    []AliveTensor // of arena
	starting [][]int       // by step: indices in arena of what comes to be alive
	alive    []int         // indices in arena, ascending
}

// at is what is alive in a step. It is called for each step in turn.
func (a *aliveness) at(step int) (out []AliveTensor, bytes int) {
	a.alive = slices.DeleteFunc(a.alive, func(i int) bool { return a.arena[i].last < step })
	if more := a.starting[step]; len(more) > 0 {
		a.alive = append(a.alive, more...)
		slices.Sort(a.alive)
	}
	if len(a.alive) == 0 {
		return nil, 0
	}
	out = make([]AliveTensor, len(a.alive))
	for k, i := range a.alive {
		out[k] = a.texts[i]
		bytes += out[k].Bytes
	}
	return out, bytes
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
func (r *Report) add(steps []*step, all *aliveness, depth int) {
	for _, s := range steps {
		out := StepReport{Op: s.text(), Graph: s.node.graph.name, Position: s.node.pos, Depth: depth,
			Scratch: s.scratchBytes()}
		out.Alive, out.Bytes = all.at(s.at)
		r.Steps = append(r.Steps, out)
		r.add(s.body, all, depth+1)
		r.add(s.els, all, depth+1)
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

// mostShown is of how many tensors that are alive in a step the text of a report names.
const mostShown = 12

// shown are the largest tensors that are alive, mostShown or fewer, in the order of their places.
func (s *StepReport) shown() []AliveTensor {
	if len(s.Alive) <= mostShown {
		return s.Alive
	}
	var places []int // by size, of equal ones the first place
	for i, t := range s.Alive {
		k := len(places)
		for k > 0 && s.Alive[places[k-1]].Bytes < t.Bytes {
			k--
		}
		if k < mostShown {
			places = slices.Insert(places[:min(len(places), mostShown-1)], k, i)
		}
	}
	slices.Sort(places)
	out := make([]AliveTensor, len(places))
	for k, i := range places {
		out[k] = s.Alive[i]
	}
	return out
}

// String is a table for a person to read: the sums, and for each step what is alive. Of more than 12 tensors a step
// has the largest, and how many others there are with their bytes, so that the text grows with the steps alone.
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
		fmt.Fprintf(&b, "%-*s  %*d", width, texts[i], sizes, s.Bytes)
		shown, rest := s.shown(), s.Bytes
		if len(shown) > 0 {
			b.WriteByte(' ')
		}
		for _, t := range shown {
			fmt.Fprintf(&b, " %s:%d", t.Tensor, t.Bytes)
			rest -= t.Bytes
		}
		if others := len(s.Alive) - len(shown); others > 0 {
			fmt.Fprintf(&b, " and %d more:%d", others, rest)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// indented is the text of a step inside so many loops and choices. A report may be a caller's own, with any depth.
func indented(depth int, text string) string {
	return strings.Repeat("  ", min(max(depth, 0), maxIndent)) + text
}

// maxIndent bounds the indentation in a report: deeper steps stand below each other.
const maxIndent = 40
