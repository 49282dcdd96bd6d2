package ir

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/tensor"
)

// chain is operations each of which reads the one before.
func chain(n int) *Program {
	p, x := oneVariable()
	for range n {
		x = sum(x, x)
	}
	return p
}

// wide is n/2 operations that may all come next, and their sums two by two.
func wide(n int) *Program {
	p, x := oneVariable()
	var all []*Tensor
	for range n / 2 {
		all = append(all, sum(x, x))
	}
	for len(all) > 1 {
		all = append(all[2:], sum(all[0], all[1]))
	}
	return p
}

// nested is a way forward and one back, which reads what the way forward has made, as a training step does.
func nested(n int) *Program {
	p, x := oneVariable()
	all := []*Tensor{x}
	for i := range n / 2 {
		all = append(all, sum(all[i], all[i]))
	}
	x = all[n/2]
	for _, t := range slices.Backward(all[:n/2]) {
		x = sum(x, t)
	}
	return p
}

func sum(x, y *Tensor) *Tensor { return Apply1(sumOp{}, nil, x, y) }

func oneVariable() (*Program, *Tensor) {
	p := New(1)
	t, err := tensor.FromSlice([]float32{1, 2, 3, 4}, 4)
	if err != nil {
		panic(err)
	}
	return p, p.Variable(t).Tensor
}

// TestGrowth counts what it takes to schedule a program and to place its tensors, and the bytes of its report as text.
// With twice the operations all are about twice as much, and n log n is 2.2 times as much.
func TestGrowth(t *testing.T) {
	const few, most = 1000, 2.5
	for name, program := range map[string]func(n int) *Program{"chain": chain, "wide": wide, "nested": nested} {
		t.Run("program="+name, func(t *testing.T) {
			var worked, looked, text [2]int
			for i, n := range []int{few, 2 * few} {
				s, err := NewSession(program(n))
				if err != nil {
					t.Fatal(err)
				}
				worked[i], looked[i] = s.program.main.worked, s.plan.looked
				text[i] = len(s.Report().String())
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			for what, work := range map[string][2]int{"steps of the agenda": worked, "spans looked at": looked,
				"bytes of text": text} {
				if work[0] == 0 || float64(work[1]) > most*float64(work[0]) {
					t.Errorf("%s: %d of %d operations, %d of twice as many; want above 0, and at most %v times as much",
						what, work[0], few, work[1], most)
				}
			}
		})
	}
}

// TestScheduleIsCheapestFirst compares the schedules of random programs with those of a loop that looks at every node
// each time.
func TestScheduleIsCheapestFirst(t *testing.T) {
	programs := []*Program{chain(50), wide(50), nested(50)}
	for seed := range uint64(200) {
		programs = append(programs, newRandomProgram(seed, seed%2 == 0).Program)
	}
	for i, p := range programs {
		if err := p.Err(); err != nil {
			t.Fatalf("program %d: %v", i, err)
		}
		for _, g := range p.graphs {
			g.order = nil
			if got, want := g.scheduled(), cheapestFirst(g); !slices.Equal(got, want) {
				t.Errorf("program %d, graph %s: %v, want %v", i, g.name, builtAs(got), builtAs(want))
			}
		}
	}
}

func builtAs(nodes []*node) []int {
	var out []int
	for _, n := range nodes {
		out = append(out, n.index)
	}
	return out
}

// cheapestFirst takes, of the nodes none of which must come after one that is left, the cheapest.
func cheapestFirst(g *Graph) []*node {
	after, readers := g.pairs(), g.readers()
	var order []*node
	done := make([]bool, len(g.nodes))
	for range g.nodes {
		best, bestCost := -1, 0
		for i, n := range g.nodes {
			free := !done[i]
			for before, list := range after {
				free = free && (done[before] || !slices.Contains(list, i))
			}
			w := n.weight()
			if cost := w.cost(readers); free && (best < 0 || cost < bestCost) {
				best, bestCost = i, cost
			}
		}
		done[best] = true
		order = append(order, g.nodes[best])
		for _, m := range unique(g.nodes[best].in) {
			readers[m]--
		}
	}
	return order
}

// TestFitIsLowest compares places with those that a scan of all others finds.
func TestFitIsLowest(t *testing.T) {
	type taken struct{ first, last, at, size int }
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		steps := 1 + rng.IntN(40)
		f := newFit(steps)
		var all []taken
		for k := range 60 {
			x := taken{first: rng.IntN(steps), size: 64 * rng.IntN(7)}
			x.last = x.first + rng.IntN(steps-x.first)
			for free := false; !free; { // every line is tried, from 0 on
				free = true
				for _, y := range all {
					if y.first <= x.last && x.first <= y.last && x.at < y.at+y.size && y.at < x.at+x.size {
						x.at, free = x.at+64, false
						break
					}
				}
			}
			if got := f.lowest(x.first, x.last, x.size); got != x.at {
				t.Fatalf("seed %d, tensor %d of %d bytes in steps %d to %d: at %d, want %d",
					seed, k, x.size, x.first, x.last, got, x.at)
			}
			f.take(x.first, x.last, x.at, x.size)
			all = append(all, x)
		}
	}
}

// TestReportNamesTheLargest has 20 tensors alive, the first and the last of which are the largest.
func TestReportNamesTheLargest(t *testing.T) {
	step := StepReport{Op: "add"}
	for i := range 20 {
		bytes := 8
		if i == 0 || i == 19 {
			bytes = 100
		}
		step.Alive = append(step.Alive, AliveTensor{Tensor: "%" + string(rune('a'+i)), Bytes: bytes})
		step.Bytes += bytes
	}
	text := (&Report{Steps: []StepReport{step}}).String()
	want := "add  344  %a:100 %b:8 %c:8 %d:8 %e:8 %f:8 %g:8 %h:8 %i:8 %j:8 %k:8 %t:100 and 8 more:64\n"
	if !strings.HasSuffix(text, want) {
		t.Errorf("%s\nwant its end to be\n%s", text, want)
	}
}
