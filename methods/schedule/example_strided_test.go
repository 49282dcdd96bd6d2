package schedule_test

import (
	"fmt"

	"gogcl.dev/methods/schedule"
)

// Every second of 8 chunks, and 4 chunks from chunk 6 on, round the last one.
func ExampleSpan_Strided() {
	for _, sp := range []schedule.Span{schedule.Out(1, 4).Strided(1, 2), schedule.Out(6, 4).Strided(1, 1)} {
		fmt.Println(sp, "is", sp.AppendRuns(nil, 8))
	}
	// Output:
	// O1:2x4 is [O1 O3 O5 O7]
	// O6:1x4 is [O6-7 O0-1]
}
