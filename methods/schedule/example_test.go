package schedule_test

import (
	"fmt"
	"log"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// The shape of a method shows what its table hides: recursive doubling exchanges with partners at distance 1, 2 and 4.
func ExampleSchedule_Shape() {
	s, err := methods.Build(methods.Spec{Method: methods.RecursiveDoubling, Collective: schedule.AllReduce, Size: 8})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(s.Shape())
	// Output:
	// all-reduce, 8 ranks, 1 chunk, 3 rounds
	// round   0   1     2
	// rank 0 ─⊕─ ─⊕─── ─⊕───────
	//         │   │     │
	// rank 1 ─⊕─ ─│─⊕─ ─│─⊕─────
	//             │ │   │ │
	// rank 2 ─⊕─ ─⊕─│─ ─│─│─⊕───
	//         │     │   │ │ │
	// rank 3 ─⊕─ ───⊕─ ─│─│─│─⊕─
	//                   │ │ │ │
	// rank 4 ─⊕─ ─⊕─── ─⊕─│─│─│─
	//         │   │       │ │ │
	// rank 5 ─⊕─ ─│─⊕─ ───⊕─│─│─
	//             │ │       │ │
	// rank 6 ─⊕─ ─⊕─│─ ─────⊕─│─
	//         │     │         │
	// rank 7 ─⊕─ ───⊕─ ───────⊕─
}
