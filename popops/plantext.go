package popops

import (
	"fmt"
	"strings"
	"time"
)

// String explains the plan: what it is for, how it splits each call, what it thinks that takes, and what temporaries
// there are.
//
//	plan for 1000000 entries of 64 float32, up to 2 workers
//	65536 look-ups
//	  slice: 2 workers, by look-ups; about 1.52ms (1 worker: 2.74ms)
//	  add: 2 workers, by rows, in the order of the offsets; about 2.19ms (1 worker: 2.79ms)
//	temporaries of a worker: 8192 bytes
func (p *Plan) String() string {
	if p == nil {
		return "no plan"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "plan for ")
	if p.groups > 1 {
		fmt.Fprintf(&b, "%d groups of ", p.groups)
	}
	fmt.Fprintf(&b, "%d entries of %d %v, up to %d workers\n", p.entries, p.width, p.dtype, p.crews.workers)
	for i, n := range p.lookUps {
		fmt.Fprintf(&b, "%d look-ups\n", n)
		if !p.options.NotForSlice {
			p.explain(&b, "slice", p.choices[i].slice, n, true)
		}
		if !p.options.NotForUpdate {
			name := p.options.Operation.String()
			if p.options.Operation == UpdateNone {
				name = "update"
			}
			p.explain(&b, name, p.choices[i].update, n, false)
		}
	}
	fmt.Fprintf(&b, "temporaries of a worker: %d bytes", p.temporaries())
	if p.sorts() {
		fmt.Fprintf(&b, ", and %d to sort, of %d allowed", p.sortBytes(), int(p.options.proportion()*WorkerBytes))
	}
	b.WriteString("\n")
	return b.String()
}

// explain writes how calls of an operation are carried out.
func (p *Plan) explain(b *strings.Builder, name string, h how, n int, slice bool) {
	fmt.Fprintf(b, "  %s: ", name)
	if h.workers == 1 {
		b.WriteString("1 worker")
	} else {
		fmt.Fprintf(b, "%d workers, by %v", h.workers, h.by)
	}
	if !slice {
		order := "in the order of the offsets"
		switch {
		case p.options.IndicesAreSorted:
			order = "each finds its own by bisection"
		case h.sorted:
			order = "sorted by rows"
		}
		fmt.Fprintf(b, ", %s", order)
		if p.options.Operation == UpdateAdd && is16(p.dtype) {
			fmt.Fprintf(b, ", sums in %v", sumType(p.options.PartialType, p.dtype))
		}
	}
	fmt.Fprintf(b, "; about %v", seconds(p.seconds(&h, n, slice)))
	if h.workers > 1 {
		one := how{workers: 1, by: h.by, sorted: h.sorted}
		fmt.Fprintf(b, " (1 worker: %v)", seconds(p.seconds(&one, n, slice)))
	}
	b.WriteString("\n")
}

// maxSeconds is more than any call takes, and still a time.Duration.
const maxSeconds = 9e9

// seconds is a time to three digits or so, maxSeconds at most.
func seconds(s float64) time.Duration {
	d := time.Duration(min(s, maxSeconds) * float64(time.Second))
	for unit := time.Duration(1); ; unit *= 10 {
		if d/unit < 1000 {
			return d.Round(unit)
		}
	}
}

// sortBytes is the bytes that a worker takes at most to sort.
func (p *Plan) sortBytes() int {
	return sortedAtOnce(p.crews.most, p.lookUps[len(p.lookUps)-1]) * pairBytes
}

// temporaries is the bytes that a worker takes at most, beside the room to sort.
func (p *Plan) temporaries() int {
	bytes := rowsAtOnce * 8
	if p.sorts() {
		bytes += digits * 4
	}
	if !p.options.NotForUpdate && p.options.Operation == UpdateAdd && sumsWide(p.options.PartialType, p.dtype) {
		bytes += 4 * p.width
	}
	return bytes
}
