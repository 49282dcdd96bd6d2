package schedule_test

import (
	"fmt"
	"log"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// Report sets what a schedule does beside the least that any schedule can do with. This one sends two ranks their own
// chunks back.
func ExampleSchedule_Report() {
	s, err := methods.Build(methods.Spec{
		Method: methods.RecursiveDoubling, Collective: schedule.AllGather, Size: 6,
	})
	if err != nil {
		log.Fatal(err)
	}
	r, err := s.Report()
	if err != nil {
		log.Fatal(err)
	}
	r.Waste.First = "" // a long line
	fmt.Print(r)
	// Output:
	// all-gather, 6 ranks, 6 chunks
	//                            schedule      least
	// rounds                            4          3
	// messages                         12
	// most in flight at a rank          2
	// peers at once                     1
	// chunks of scratch                 0
	// most chunks sent                 12          5
	// most chunks received              6          5
	// chunks sent, by rank     12 1 12 1 3 3
	// chunks received, by rank 5 6 5 6 5 5
	// waste                    2 chunks sent again, 0 chunks never used
}
