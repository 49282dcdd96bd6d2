package methodtest

import (
	"errors"
	"fmt"
	"testing"

	"gogcl.dev/methods"
	"gogcl.dev/methods/internal/spoil"
	"gogcl.dev/methods/schedule"
)

// Prove tests a generator for groups of some sizes, each at least 2. For every collective that the generator does, of
// which there must be one, and every root, of groups of more than 8 four roots:
//   - the schedule proves: every result holds every contribution once, nothing waits for ever, and nothing races. All
//     ranks combine an element in one order; where the request asks for it, in that of the ranks;
//   - nothing that a step writes is overwritten, or left in a slot, before it is read;
//   - the generator makes the same schedule again, as a pure function does;
//   - each step counts: a schedule that differs in one step is refused, or does more for nothing. Groups of up to 5 are
//     tried so and the smallest one, thinned out where there are very many;
//   - the results have the bits of a second implementation, which knows no schedules: for several lengths, in place and
//     not, by messages (gcl.Syncless) and on peer memory (gcl.Syncful), where calls must go by the generator.
//
// The traffic of a methods.TrafficGenerator is not compared with its schedules. Each finding is an error of t. The time
// that the test takes grows with the square of the size or more; a few small sizes, an odd one and a power of two among
// them, find most mistakes.
func Prove(t testing.TB, g methods.Generator, sizes ...int) {
	t.Helper()
	r, err := prove(g, sizes)
	if err != nil {
		t.Error(err)
	}
	for _, f := range r.findings {
		t.Error(f)
	}
	t.Logf("%d schedules proved, %d spoilt ones refused, %d calls carried out; requests not done: %d", r.proved, r.spoilt,
		r.calls, r.unsupported)
}

// report is what a test of a generator found.
type report struct {
	generator   methods.Generator
	prover      *methods.Prover
	check       func(mutant *schedule.Schedule, whole schedule.Waste) error // spoil.Finds
	findings    []error
	proved      int // requests
	unsupported int // requests
	spoilt      int // schedules
	calls       int // of gcl
}

// name is that of the method in texts.
const name = "under_test"

// prove is Prove without a test. The error is about its arguments, or that nothing was there to be tested.
func prove(g methods.Generator, sizes []int) (*report, error) {
	r := &report{generator: g, check: spoil.Finds}
	var err error
	if r.prover, err = methods.NewProver(name, g); err != nil {
		return r, err
	}
	if len(sizes) == 0 {
		return r, errors.New("methodtest: no sizes of group, want one at least")
	}
	smallest := sizes[0]
	for _, n := range sizes {
		if n < 2 {
			return r, fmt.Errorf("methodtest: a group of %d, want 2 or more: one alone sends nothing", n)
		}
		smallest = min(smallest, n)
	}
	for _, n := range sizes {
		does := r.size(n, n <= mutated || n == smallest)
		if len(does) > 0 {
			r.execute(n, does)
		}
	}
	if r.proved == 0 && len(r.findings) == 0 {
		err = fmt.Errorf("methodtest: the generator does no collective in groups of %v", sizes)
	}
	return r, err
}

// mutated is the largest group whose schedules are spoilt in any case. A fault in a larger one goes wrong in the ways
// of a small one.
const mutated = 5

// size proves all schedules for groups of n, and returns the requests whose schedules are right.
func (r *report) size(n int, mutants bool) (does []methods.Request) {
	tried := map[[32]byte]bool{}
	for _, q := range requests(n) {
		proved, err := r.prover.Prove(q)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			r.unsupported++
			continue
		case err != nil:
			if q.RankOrder {
				err = fmt.Errorf("%w (with RankOrder)", err)
			}
			if _, own := r.generator.Schedule(q); own != nil {
				err = fmt.Errorf("%w; of a request that it cannot do a generator returns an error that wraps "+
					"errors.ErrUnsupported", err)
			}
			r.findings = append(r.findings, err)
			continue
		}
		r.proved++
		does = append(does, q)
		if tried[proved.Digest] {
			continue
		}
		tried[proved.Digest] = true
		one, err1 := r.generator.Schedule(q)
		other, err2 := r.generator.Schedule(q)
		if err1 != nil || err2 != nil || one.Digest() != other.Digest() {
			r.found(q, "asked twice, the generator makes two schedules (%v, %v): it must be a pure function", err1, err2)
		}
		if waste := proved.Report.Waste; waste.Unused > 0 {
			r.found(q, "it writes for nothing: %v", waste)
		}
		if mutants {
			r.mutants(q, proved)
		}
	}
	return does
}

// found adds a finding.
func (r *report) found(q methods.Request, format string, arguments ...any) {
	r.findings = append(r.findings, fmt.Errorf("methodtest: %v over %d, root %d, rank order %v: %s",
		q.Collective, q.Size, q.Root, q.RankOrder, fmt.Sprintf(format, arguments...)))
}

// requests are those for groups of n: all collectives and, in groups of up to 8, all roots.
func requests(n int) (out []methods.Request) {
	ring, second := make([]int, n), make([]int, n)
	for i := range n {
		ring[i], second[i] = i, n-1-i
	}
	for _, c := range schedule.Collectives() {
		contract := c.Contract()
		roots := []int{0}
		if contract.Rooted() {
			roots = rootsOf(n)
		}
		for _, root := range roots {
			for _, rankOrder := range []bool{false, true} {
				if rankOrder && !contract.Combines {
					continue
				}
				out = append(out, methods.Request{Members: ring, Spec: methods.Spec{
					Collective: c, Size: n, Root: root, Ring: ring, Second: second, RankOrder: rankOrder,
				}})
			}
		}
	}
	return out
}

// rootsOf are the roots to try.
func rootsOf(n int) []int {
	if n > 8 {
		return []int{0, 1, n / 2, n - 1}
	}
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// maxMutants bounds the mutants of one schedule that are tried. Each takes as long as the proof.
const maxMutants = 4000

// mutants spoils a schedule, and expects that the checker sees it.
func (r *report) mutants(q methods.Request, proved *methods.Proved) {
	s, count := proved.Schedule, 0
	spoil.Each(s, func(string, int, int, *schedule.Schedule) { count++ })
	every, i := (count+maxMutants-1)/maxMutants, 0
	spoil.Each(s, func(what string, rank, round int, mutant *schedule.Schedule) {
		if i++; i%every != 0 {
			return
		}
		r.spoilt++
		if r.check(mutant, proved.Report.Waste) == nil {
			r.found(q, "with a %s at rank %d round %d the schedule is right as well: the step is not needed, or not where it "+
				"is", what, rank, round)
		}
	})
}
