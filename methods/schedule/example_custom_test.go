package schedule_test

import (
	"fmt"
	"log"

	"gogcl.dev/methods/schedule"
)

// A scan: rank r ends with the sum of the data of ranks 0 to r. In round t a rank folds what it has into that of the
// rank 2^t up.
func ExampleNewBuilderFor() {
	const ranks = 4
	b := schedule.NewBuilderFor(schedule.Scan(ranks, 1))
	for t, d := 0, 1; d < ranks; t, d = t+1, 2*d {
		for rank := range ranks - d {
			b.Fold(t, rank, rank+d, 0, 1)
		}
	}
	s, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	if err := schedule.Check(s); err != nil {
		log.Fatal(err)
	}
	fmt.Print(s.Shape())
	// Output:
	// custom scan, 4 ranks, 1 chunk, 2 rounds
	// round   0     1
	// rank 0 ─●─── ─●───
	//         │     │
	// rank 1 ─⊕─●─ ─│─●─
	//           │   │ │
	// rank 2 ─●─⊕─ ─⊕─│─
	//         │       │
	// rank 3 ─⊕─── ───⊕─
}

// Neighbours on a line of three exchange a block each. A rank's buffers have those of its neighbours one after the
// other.
func ExampleExchange() {
	next := [][]int{{1}, {0, 2}, {1}}
	own, err := schedule.Exchange(next, next)
	if err != nil {
		log.Fatal(err)
	}
	b := schedule.NewBuilderFor(own)
	for rank, chunks := range own.Inputs {
		for i, chunk := range chunks {
			b.Copy(0, rank, next[rank][i], chunk, 1)
		}
	}
	s, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	if err := schedule.Check(s); err != nil {
		log.Fatal(err)
	}
	fmt.Print(s)
	// Output:
	// custom exchange, 3 ranks, 4 chunks, 1 round
	// round | rank 0 | rank 1 | rank 2
	// ------+--------+--------+-------
	//    in | 0      | 1-2    | 3
	//   out | 1      | 0, 3   | 2
	//     0 | I0>1   | I1>0   | I3>1
	//       | O1<1   | I2>2   | O2<1
	//       |        | O0<0   |
	//       |        | O3<2   |
}

// Three ranks of a mixture of experts: rank 0 has two rows for itself and one for rank 2, rank 1 three for rank 0, and
// rank 2 one for rank 1.
func ExampleExperts() {
	own := schedule.Experts([][]int{{2, 0, 1}, {3, 0, 0}, {0, 1, 0}})
	b := schedule.NewBuilderFor(own)
	b.Copy(0, 0, 2, 1, 1)
	b.Copy(0, 1, 0, 2, 1)
	b.Copy(0, 2, 1, 3, 1)
	s, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	if err := schedule.Check(s); err != nil {
		log.Fatal(err)
	}
	rows, err := own.Elements(0, 3*8, 5*8) // of eight elements each
	fmt.Println(rows, err)
	fmt.Print(s)
	// Output:
	// 8 <nil>
	// custom experts, 3 ranks, 4 chunks, 1 round
	// sizes 2 1 3 1
	// round | rank 0 | rank 1 | rank 2
	// ------+--------+--------+-------
	//    in | 0-1    | 2      | 3
	//   out | 0, 2   | 3      | 1
	//     0 | I1>2   | I2>0   | I3>1
	//       | O2<1   | O3<2   | O1<0
	//       | then   |        |
	//       | O0=I0  |        |
}
