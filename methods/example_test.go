package methods_test

import (
	"fmt"
	"log"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// A schedule is data: it is built, proved and drawn without a byte being sent.
func Example() {
	s, err := methods.Build(methods.Spec{
		Method:     methods.ClockwiseRing,
		Collective: schedule.AllReduce,
		Size:       3,
		Ring:       []int{0, 1, 2},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := schedule.Check(s); err != nil {
		log.Fatal(err)
	}
	fmt.Print(s)
	// Output:
	// all-reduce, 3 ranks, 3 chunks, 4 rounds
	// round | rank 0   | rank 1   | rank 2
	// ------+----------+----------+---------
	//     0 | I2>1     | I0>2     | I1>0
	//       | O1=I1+<2 | O2=I2+<0 | O0=I0+<1
	//     1 | O1>1     | O2>2     | O0>0
	//       | O0=I0+<2 | O1=I1+<0 | O2=I2+<1
	//     2 | O0>1     | O1>2     | O2>0
	//       | O2<2     | O0<0     | O1<1
	//     3 | O2>1     | O0>2     | O1>0
	//       | O1<2     | O2<0     | O0<1
}

// What a method costs, counted from its schedule: a ring of eight takes many short rounds, direct two.
func ExampleBuild_cost() {
	ring := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, m := range []methods.Method{methods.ClockwiseRing, methods.MeetInMiddleRing, methods.Direct} {
		s, err := methods.Build(methods.Spec{Method: m, Collective: schedule.AllReduce, Size: len(ring), Ring: ring})
		if err != nil {
			log.Fatal(err)
		}
		report, err := schedule.Examine(s)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%-19v %2d rounds, rank 0 sends %d chunks of 1/%d of the data\n",
			m, report.Rounds, report.Sent[0], s.Chunks)
	}
	// Output:
	// clockwise_ring      14 rounds, rank 0 sends 14 chunks of 1/8 of the data
	// meet_in_middle_ring  8 rounds, rank 0 sends 14 chunks of 1/8 of the data
	// direct               2 rounds, rank 0 sends 14 chunks of 1/8 of the data
}

// With RankOrder a ring becomes a chain, which adds in the order of the ranks and is cut into pieces so that all ranks
// have something to do.
func ExampleSpec_rankOrder() {
	s, err := methods.Build(methods.Spec{
		Method:     methods.ClockwiseRing,
		Collective: schedule.AllReduce,
		Size:       3,
		Ring:       []int{0, 1, 2},
		RankOrder:  true,
		Pieces:     2,
	})
	if err != nil {
		log.Fatal(err)
	}
	report, err := schedule.Examine(s)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("in rank order:", report.RankOrder)
	fmt.Print(s)
	// Output:
	// in rank order: true
	// all-reduce, 3 ranks, 2 chunks, 5 rounds
	// round | rank 0 | rank 1   | rank 2
	// ------+--------+----------+---------
	//     0 | I0>1   | O0=I0+<0 |
	//     1 | I1>1   | O0>2     | O0=I0+<1
	//       |        | O1=I1+<0 |
	//     2 |        | O0<2     | O0>1
	//       |        | O1>2     | O1=I1+<1
	//     3 | O0<1   | O0>0     | O1>1
	//       |        | O1<2     |
	//     4 | O1<1   | O1>0     | -
}

// Swing on a ring of eight: partners at distance 1, 1 the other way, and 3; then the same back.
func ExampleSwing() {
	s, err := methods.Swing([]int{8}, false)
	if err != nil {
		log.Fatal(err)
	}
	if err := schedule.Check(s); err != nil {
		log.Fatal(err)
	}
	fmt.Print(s.Shape())
	// Output:
	// all-reduce, 8 ranks, 8 chunks, 6 rounds
	// round   0   1     2       3       4     5
	// chunks  4   2     1       1       2     4
	// rank 0 ─⊕─ ───⊕─ ─⊕───── ─▲───── ───▲─ ─▲─
	//         │     │   │       │         │   │
	// rank 1 ─⊕─ ─⊕─│─ ─│───⊕─ ─│───▲─ ─▲─│─ ─▼─
	//             │ │   │   │   │   │   │ │
	// rank 2 ─⊕─ ─⊕─│─ ─│─⊕─│─ ─│─▲─│─ ─▼─│─ ─▲─
	//         │     │   │ │ │   │ │ │     │   │
	// rank 3 ─⊕─ ─⊕─│─ ─⊕─│─│─ ─▼─│─│─ ─▲─│─ ─▼─
	//             │ │     │ │     │ │   │ │
	// rank 4 ─⊕─ ─⊕─│─ ─⊕─│─│─ ─▲─│─│─ ─▼─│─ ─▲─
	//         │     │   │ │ │   │ │ │     │   │
	// rank 5 ─⊕─ ─⊕─│─ ─│─⊕─│─ ─│─▼─│─ ─▲─│─ ─▼─
	//             │ │   │   │   │   │   │ │
	// rank 6 ─⊕─ ─⊕─│─ ─│───⊕─ ─│───▼─ ─▼─│─ ─▲─
	//         │     │   │       │         │   │
	// rank 7 ─⊕─ ───⊕─ ─⊕───── ─▼───── ───▼─ ─▼─
}
