package schedule_test

import (
	"fmt"

	"gogcl.dev/methods/schedule"
)

// An all-reduce of three ranks as a tree says it: two ranks fold into the root, which sends the result back.
func ExampleBuilder() {
	b := schedule.NewBuilder(schedule.AllReduce, 3, 0, 1)
	b.Fold(0, 1, 0, 0, 1) // round, from, to, first chunk, how many
	b.Fold(0, 2, 0, 0, 1)
	b.Copy(1, 0, 1, 0, 1)
	b.Copy(1, 0, 2, 0, 1)
	s, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("proved:", schedule.Check(s) == nil)
	fmt.Print(s)
	// Output:
	// proved: true
	// all-reduce, 3 ranks, 1 chunk, 2 rounds
	// round | rank 0   | rank 1 | rank 2
	// ------+----------+--------+-------
	//     0 | O0=I0+<1 | I0>0   | I0>0
	//       | O0+<2    |        |
	//     1 | O0>1     | O0<0   | O0<0
	//       | O0>2     |        |
}

// The same without rounds, for ranks that send one message at a time and receive one.
func ExampleBuilder_Ports() {
	b := schedule.NewBuilder(schedule.AllReduce, 3, 0, 1).Ports(1)
	for rank := 1; rank < 3; rank++ {
		b.Fold(0, rank, 0, 0, 1)
	}
	for rank := 1; rank < 3; rank++ {
		b.Copy(0, 0, rank, 0, 1)
	}
	s, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("proved:", schedule.Check(s) == nil)
	fmt.Print(s)
	// Output:
	// proved: true
	// all-reduce, 3 ranks, 1 chunk, 4 rounds
	// round | rank 0   | rank 1 | rank 2
	// ------+----------+--------+-------
	//     0 | O0=I0+<1 | I0>0   |
	//     1 | O0+<2    |        | I0>0
	//     2 | O0>1     | O0<0   |
	//     3 | O0>2     | -      | O0<0
}
