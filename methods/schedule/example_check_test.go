package schedule_test

import (
	"fmt"
	"log"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// Check proves a schedule, and says what is wrong with one that was changed by hand.
func Example() {
	s, err := methods.Build(methods.Spec{
		Method: methods.ClockwiseRing, Collective: schedule.AllGather, Size: 3, Ring: []int{0, 1, 2},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(s)
	fmt.Println("error:", schedule.Check(s))

	s.Programs[0] = s.Programs[0][:1] // rank 0 leaves early
	fmt.Println("error:", schedule.Check(s))
	// Output:
	// all-gather, 3 ranks, 3 chunks, 2 rounds
	// round | rank 0 | rank 1 | rank 2
	// ------+--------+--------+-------
	//     0 | I0>1   | I1>2   | I2>0
	//       | O2<2   | O0<0   | O1<1
	//       | then   | then   | then
	//       | O0=I0  | O1=I1  | O2=I2
	//     1 | O2>1   | O0>2   | O1>0
	//       | O1<2   | O2<0   | O0<1
	// error: <nil>
	// error: schedule: rank 1 round 1 move 1 (O2<0): deadlock: rank 0 never sends it
}
