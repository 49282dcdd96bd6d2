package rts_test

import (
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/rts"
)

// steps is what a session does: the collectives, starts and waits, and "compute" for products of matrices, each run of
// equal ones once.
func steps(s *ir.Session) []string {
	var out []string
	for _, step := range s.Report().Steps {
		what, _, _ := strings.Cut(step.Op, " of several")
		switch {
		case strings.HasPrefix(what, "matmul"):
			what = "compute"
		case strings.HasPrefix(what, "all-gather"), strings.HasPrefix(what, "reduce-scatter"):
		case strings.HasPrefix(what, "start "), strings.HasPrefix(what, "wait for "):
			what, _, _ = strings.Cut(what, "_") // the number of the graph
		default:
			continue
		}
		if len(out) == 0 || what != out[len(out)-1] || what != "compute" {
			out = append(out, what)
		}
	}
	return out
}

func count(list []string, prefix string) (n int) {
	for _, s := range list {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// TestBuckets counts sets of messages. The layers of newModel have parameters of 168, 224 and 96 bytes, a weight and a
// bias each. The backward pass needs only the second weight again: biases are added, the first layer's input has no
// gradient, and the last layer's weight is still there.
func TestBuckets(t *testing.T) {
	for _, c := range []struct{ bucket, gathers, reductions int }{
		{1, 6 + 1, 6},
		{224, 3 + 1, 3},
		{319, 3 + 1, 3},
		{320, 2, 2}, // the second and the third together
		{392, 2 + 1, 2},
		{488, 1, 1},
		{0, 1, 1},
	} {
		m := newModel(t, 2, rts.Sharding{}, rts.Trainer{Optimizer: rts.SGD{}, BucketBytes: c.bucket})
		got := steps(m.session)
		if g, r := count(got, "all-gather"), count(got, "reduce-scatter"); g != c.gathers || r != c.reductions {
			t.Errorf("bucket of %d bytes: %d gathers and %d reductions, want %d and %d\n%s",
				c.bucket, g, r, c.gathers, c.reductions, strings.Join(got, "\n"))
		}
	}
}

// TestOverlap has what runs beside what: while a bucket computes, the next one is gathered; while it goes backward,
// the one after it is reduced. A layer without parameters goes with the one before.
func TestOverlap(t *testing.T) {
	m := newModel(t, 2, rts.Sharding{}, rts.Trainer{Optimizer: rts.SGD{}, Overlap: true, BucketBytes: 1})
	got := steps(m.session)
	beside := map[string]int{} // starts of a graph between which and their waits something is computed
	// starts that have not been waited for, oldest first: whether something was computed since
	pending := map[string][]bool{}
	for _, s := range got {
		of, started := strings.CutPrefix(s, "start ")
		ended := false
		if !started {
			of, ended = strings.CutPrefix(s, "wait for ")
		}
		switch {
		case started:
			pending[of] = append(pending[of], false)
		case ended:
			if pending[of][0] {
				beside[of]++
			}
			pending[of] = pending[of][1:]
		case s == "compute":
			for _, p := range pending {
				for i := range p {
					p[i] = true
				}
			}
		}
	}
	// Forward the second and the third layer, and backward the second; of three reductions the last has nothing to run
	// beside.
	if g, r := beside["bucketed.gather"], beside["bucketed.reduce"]; g != 3 || r != 2 {
		t.Errorf("%d gathers and %d reductions have computation beside them, want 3 and 2\n%s",
			g, r, strings.Join(got, "\n"))
	}
}

// TestOverlapByDefault has more than one bucket, however small the model.
func TestOverlapByDefault(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		m := newModel(t, 2, rts.Sharding{}, rts.Trainer{Optimizer: rts.SGD{}, Overlap: overlap})
		if got := count(steps(m.session), "start "); (got > 2) != overlap {
			t.Errorf("overlap=%t: %d starts\n%s", overlap, got, strings.Join(steps(m.session), "\n"))
		}
	}
}

// TestReplicasStay has SetReplicas after something sharded, of which the groups are those of the number before.
func TestReplicasStay(t *testing.T) {
	for name, build := range map[string]func(t *testing.T, p *ir.Program){
		"variable": func(t *testing.T, p *ir.Program) {
			rts.NewVariable(p, floats(t, []float32{1, 2, 3, 4}, 2, 2), rts.Sharding{})
		},
		"operation": func(t *testing.T, p *ir.Program) {
			rts.Sharding{Over: 1}.Gather(p.Main().Constant(floats(t, []float32{1, 2})), 2)
		},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " late=", late), func(t *testing.T) {
				p := ir.New(2)
				build(t, p)
				if err := p.SetReplicas(4); err != nil {
					t.Fatal(err)
				}
				if late {
					build(t, p)
				}
				s, err := ir.NewSession(p)
				if err == nil {
					s.Close()
				}
				if err == nil || !strings.Contains(err.Error(), "2 replicas") {
					t.Errorf("error %v, want one that names the 2 replicas of before", err)
				}
			})
		}
	}
}
