package ir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// randomProgram is a program of all that a program can have, on int64.
type randomProgram struct {
	*Program
	rng       *rand.Rand
	in, out   []*Stream
	callables []*Graph
	ifs       bool
	started   []*Started // of the graph that is being filled; not waited for
}

var randomLengths = []int{1, 3, 8, 33}

func newRandomProgram(seed uint64, ifs bool) *randomProgram {
	p := &randomProgram{Program: New(1), rng: rand.New(rand.NewPCG(seed, 1)), ifs: ifs}
	spec := func() Spec { return vector(randomLengths[p.rng.IntN(len(randomLengths))]) }
	for range 2 + p.rng.IntN(4) {
		inputs := []Input{}
		for range 1 + p.rng.IntN(3) {
			inputs = append(inputs, spec())
		}
		p.callables = append(p.callables, p.CreateGraph(func(g *Graph, in []*Tensor) []*Tensor {
			made := p.fill(g, slices.Clone(in), 2+p.rng.IntN(6))
			var out []*Tensor
			for i := range p.rng.IntN(3) {
				// Often of the spec of the input, so that the graph can be the body of a loop.
				fits := slices.DeleteFunc(slices.Clone(made), func(t *Tensor) bool {
					return i < len(in) && !t.sp.Equal(in[i].sp)
				})
				out = append(out, fits[p.rng.IntN(len(fits))])
			}
			return out
		}, inputs...))
	}
	main := p.Main()
	var made []*Tensor
	for i := range 2 {
		s := p.HostToDevice(fmt.Sprint("in", i), spec())
		p.in = append(p.in, s)
		made = append(made, main.HostLoad(s))
		made = append(made, p.Variable(p.data(spec()), VariableName(fmt.Sprint("v", i))).Tensor)
	}
	made = p.fill(main, made, 5+p.rng.IntN(15))
	for i, t := range made {
		if t.sp.DType == tensor.I64 && p.rng.IntN(3) > 0 {
			s := p.DeviceToHost(fmt.Sprint("out", i), t.sp)
			p.out = append(p.out, s)
			main.HostStore(s, t)
		}
	}
	return p
}

func vector(n int) Spec { return Spec{Shape: tensor.Shape{n}, DType: tensor.I64} }

func (p *randomProgram) data(s Spec) *tensor.Tensor {
	x := make([]int64, s.Elements())
	for i := range x {
		x[i] = p.rng.Int64N(100) - 50
	}
	t, err := tensor.FromSlice(x, s.Shape...)
	if err != nil {
		panic(err)
	}
	return t
}

// fill adds operations to a graph, and returns its tensors of int64.
func (p *randomProgram) fill(g *Graph, made []*Tensor, ops int) []*Tensor {
	any := func() *Tensor { return made[p.rng.IntN(len(made))] }
	like := func(s Spec) *Tensor {
		fits := slices.DeleteFunc(slices.Clone(made), func(t *Tensor) bool { return !t.sp.Equal(s) })
		if len(fits) == 0 || p.rng.IntN(8) == 0 {
			made = append(made, ToyResize(any(), s.Elements()))
			return made[len(made)-1]
		}
		return fits[p.rng.IntN(len(fits))]
	}
	arguments := func(called *Graph) []*Tensor {
		var in []*Tensor
		for _, t := range called.inputs {
			in = append(in, like(t.sp))
		}
		return in
	}
	outer := len(p.started)        // those of another graph are not here
	busy := func(t *Tensor) bool { // what is started reads it
		return slices.ContainsFunc(p.started, func(s *Started) bool {
			return slices.Contains(unique(s.node.in), t.memory())
		})
	}
	wait := func(i int) {
		made = append(made, p.started[i].Wait()...)
		p.started = slices.Delete(p.started, i, i+1)
	}
	modify := func(info *CallInfo, first int) {
		for i := first; i < len(info.inputs); i++ {
			if busy(info.inputs[i]) {
				continue
			}
			twice := slices.ContainsFunc(info.node.modifies, func(k int) bool {
				return info.inputs[k].memory() == info.inputs[i].memory()
			})
			if p.rng.IntN(2) == 0 && info.inputs[i].changeable() == nil && !twice {
				info.SetParentInputModified(info.graph.inputs[i])
			}
		}
	}
	for range ops {
		switch k := p.rng.IntN(16); k {
		case 0, 1:
			a := any()
			made = append(made, ToyAdd(a, like(a.sp)))
		case 2:
			made = append(made, ToyScale(any(), 3))
		case 3:
			made = append(made, ToyResize(any(), randomLengths[p.rng.IntN(len(randomLengths))]))
		case 4:
			a := any()
			sum, difference := ToySplit(a, like(a.sp))
			made = append(made, sum, difference)
		case 5, 6:
			a := any()
			b := like(a.sp)
			if a.changeable() == nil && a.memory() != b.memory() && !busy(a) {
				made = append(made, ToyAccumulate(a, b))
			}
		case 7:
			made = append(made, g.Constant(p.data(vector(randomLengths[p.rng.IntN(len(randomLengths))]))))
		case 8:
			build := func() { made = p.fill(g, made, 1+p.rng.IntN(4)) }
			if p.rng.IntN(2) == 0 {
				g.InSequence(build)
			} else {
				g.OutOfSequence(build)
			}
		case 13:
			if n := len(p.started); n > outer {
				wait(outer + p.rng.IntN(n-outer))
			}
		case 14, 15:
			startable := slices.DeleteFunc(slices.Clone(p.callables), func(c *Graph) bool {
				return !c.built || c.tied() != nil
			})
			if len(startable) > 0 {
				called := startable[p.rng.IntN(len(startable))]
				p.started = append(p.started, g.Start(called, arguments(called)...))
			}
		case 9, 10, 11:
			var complete []*Graph
			for _, c := range p.callables {
				if c.built {
					complete = append(complete, c)
				}
			}
			if len(complete) == 0 {
				continue
			}
			called := complete[p.rng.IntN(len(complete))]
			if p.rng.IntN(3) == 0 {
				g.RemoteCodeLoad(complete[p.rng.IntN(len(complete))], "executable")
			}
			if k == 9 && repeatable(called, 1) == nil {
				info := g.RepeatWithInfo(called, 1+p.rng.IntN(3), nil, arguments(called)...)
				modify(info, len(called.outputs))
				made = append(made, info.outputs...)
				continue
			}
			if k == 10 && p.ifs {
				other := complete[p.rng.IntN(len(complete))]
				if slices.EqualFunc(specsOf(called.outputs), specsOf(other.outputs), Spec.Equal) {
					condition := ToyOdd(any())
					a, b := arguments(called), arguments(other)
					made = append(made, g.If(condition, Branch{Graph: called, In: a}, Branch{Graph: other, In: b})...)
					continue
				}
			}
			info := g.CallWithInfo(called, nil, arguments(called)...)
			modify(info, 0)
			made = append(made, info.outputs...)
		}
	}
	for len(p.started) > outer {
		wait(outer)
	}
	return made
}

// dumb runs a program's graphs operation by operation in the order in which they were built, each tensor in memory of
// its own, and inputs by value.
type dumb struct {
	streams map[*Stream][]int64
	values  map[*Variable][]int64
	started map[*node][][]int64
}

func (d *dumb) run(g *Graph, memory map[*Tensor][]int64) {
	for _, n := range g.nodes {
		var in, out [][]int64
		for _, t := range n.in {
			in = append(in, memory[t.memory()])
		}
		for _, t := range n.out {
			if t.root == nil {
				memory[t] = make([]int64, t.sp.Elements())
			}
			out = append(out, memory[t.memory()])
		}
		enter := func(called *Graph, in [][]int64) map[*Tensor][]int64 {
			inner := map[*Tensor][]int64{}
			for i, t := range called.inputs {
				inner[t] = slices.Clone(in[i])
			}
			return inner
		}
		outputs := func(called *Graph, inner map[*Tensor][]int64) (x [][]int64) {
			for _, t := range called.outputs {
				x = append(x, slices.Clone(inner[t.memory()]))
			}
			return x
		}
		leave := func(called *Graph, inner map[*Tensor][]int64) {
			for _, i := range n.modifies {
				copy(in[i], inner[called.inputs[i]])
			}
			for i, x := range outputs(called, inner) {
				copy(out[i], x)
			}
		}
		switch op := n.op.(type) {
		case *constantOp:
			x, _ := tensor.Of[int64](op.value)
			copy(out[0], x)
		case *variableOp:
			copy(out[0], d.values[op.variable])
		case *hostLoadOp:
			copy(out[0], d.streams[op.stream])
		case *hostStoreOp:
			d.streams[op.stream] = slices.Clone(in[0])
		case *callOp:
			inner := enter(op.graph, in)
			d.run(op.graph, inner)
			leave(op.graph, inner)
		case *startOp:
			inner := enter(op.graph, in)
			d.run(op.graph, inner)
			d.started[n] = outputs(op.graph, inner)
		case *waitOp:
			for i, x := range d.started[op.start] {
				copy(out[i], x)
			}
		case *repeatOp:
			inner := enter(op.graph, in)
			for turn := range op.count {
				if turn > 0 {
					for i, x := range outputs(op.graph, inner) {
						inner[op.graph.inputs[i]] = x
					}
				}
				d.run(op.graph, inner)
			}
			leave(op.graph, inner)
		case *ifOp:
			called, first := op.els, 1+len(op.then.inputs)
			if in[0][0] != 0 {
				called, first = op.then, 1
			}
			inner := enter(called, in[first:])
			d.run(called, inner)
			for i, x := range outputs(called, inner) {
				copy(out[i], x)
			}
		case toyOdd:
			if odd(in[0]) {
				out[0][0] = 1
			}
		case *toyUpdate:
			op.compute(out, in)
		case *toy:
			op.compute(out, in)
		case *codeLoadOp:
		default:
			panic(fmt.Sprintf("%T", op))
		}
		if g == g.program.main {
			for _, v := range g.program.variables {
				if x := memory[v.Tensor]; x != nil {
					d.values[v] = x
				}
			}
		}
	}
}

// checkTotals compares Totals with sums over the steps of Report.
func checkTotals(t *testing.T, seed uint64, s *Session) {
	t.Helper()
	odd := func(x *Tensor) bool { return x.id%2 == 1 }
	r, most := s.Totals(odd, func(*Tensor) bool { return false })
	want, all, some := s.Report(), 0, 0
	for _, step := range want.Steps {
		sum := 0
		for _, x := range step.Alive {
			if odd(x.Of) {
				sum += x.Bytes
			}
		}
		all, some = max(all, step.Bytes), max(some, sum)
	}
	want.Steps = nil
	if !reflect.DeepEqual(r, want) || r.Alive != all || !slices.Equal(most, []int{some, 0}) {
		t.Fatalf("seed %d: totals %+v and %v, want %+v, %d alive and of some %d", seed, r, most, want, all, some)
	}
}

// TestRandomPrograms runs random programs, twice each, against the dumb way, and looks at where everything lies: what
// is alive at one time lies apart, within the arena, which is as large as the most that is alive at any step.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(300) {
		p := newRandomProgram(seed, true)
		text := p.String()
		s, err := NewSession(p.Program)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if p.String() != text {
			t.Fatalf("seed %d: a session has changed the program as text", seed)
		}
		checkPlan(t, seed, s)
		checkTotals(t, seed, s)
		d := &dumb{streams: map[*Stream][]int64{}, values: map[*Variable][]int64{}, started: map[*node][][]int64{}}
		for _, v := range p.variables {
			d.values[v], _ = tensor.Of[int64](v.value)
		}
		for run := range 2 {
			in := map[*Stream]*tensor.Tensor{}
			for _, stream := range p.in {
				in[stream] = p.data(stream.sp)
				d.streams[stream], _ = tensor.Of[int64](in[stream])
			}
			got, err := s.Run(context.Background(), in)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			d.run(p.main, map[*Tensor][]int64{})
			for _, stream := range p.out {
				if x, _ := tensor.Of[int64](got[stream]); !slices.Equal(x, d.streams[stream]) {
					t.Fatalf("seed %d, run %d: %v is %v, want %v\n%v", seed, run, stream, x, d.streams[stream], p)
				}
			}
			for _, v := range p.variables {
				x, err := s.Read(v)
				if err != nil {
					t.Fatal(err)
				}
				if x, _ := tensor.Of[int64](x); !slices.Equal(x, d.values[v]) {
					t.Fatalf("seed %d, run %d: variable %q is %v, want %v\n%v", seed, run, v.name, x, d.values[v], p)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// checkPlan looks at where everything lies, and at the report.
func checkPlan(t *testing.T, seed uint64, s *Session) {
	t.Helper()
	apart := func(x, y *location) bool {
		return x.offset+x.spec.Bytes() <= y.offset || y.offset+y.spec.Bytes() <= x.offset
	}
	for i, x := range s.plan.locations {
		if size := map[locationKind]int{inArena: s.plan.arena, ofVariable: s.plan.variables,
			ofConstant: 1 << 30}[x.kind]; x.last >= 0 && x.offset+x.spec.Bytes() > size {
			t.Fatalf("seed %d: %v ends at %d of %d", seed, x.of, x.offset+x.spec.Bytes(), size)
		}
		for _, y := range s.plan.locations[:i] {
			together := x.last >= 0 && y.last >= 0 && x.first <= y.last && y.first <= x.last
			if x.kind == inArena && y.kind == inArena && together && !apart(x, y) ||
				x.kind == ofVariable && y.kind == ofVariable && !apart(x, y) {
				t.Fatalf("seed %d: %v and %v overlap", seed, x.of, y.of)
			}
		}
	}
	r := s.Report()
	most := 0
	for at, step := range r.Steps {
		sum, rounded := 0, 0
		for _, x := range step.Alive {
			sum += x.Bytes
			rounded += kernel.Lines(x.Bytes)
		}
		if sum != step.Bytes || rounded > r.Arena {
			t.Fatalf("seed %d, step %d: %d bytes in all, said to be %d, in an arena of %d",
				seed, at, sum, step.Bytes, r.Arena)
		}
		most = max(most, sum)
	}
	if most != r.Alive || r.Alive > r.Arena || r.Peak != r.Arena+r.Variables+r.Scratch {
		t.Fatalf("seed %d: %d bytes alive at most, and the report is %v", seed, most, r)
	}
	if len(r.Steps) != s.plan.numbered {
		t.Fatalf("seed %d: %d steps reported of %d", seed, len(r.Steps), s.plan.numbered)
	}
}
