package streamsim

import (
	"flag"
	"fmt"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "run this seed alone, and with -v say what happens step by step")
	firstSeed = flag.Uint64("from", 1, "first seed")
	seeds     = flag.Int("seeds", 0, "how many seeds; 0: as CI does")
	onlyFault = flag.String("fault", "", "only this fault: "+fmt.Sprint(faultNames))
	most      = flag.Int("most", 1, "end after so many seeds in which something is wrong")
)

// try runs a seed.
func try(t *testing.T, seed uint64, log func(string, ...any)) (wrong string, j *job) {
	synctest.Test(t, func(t *testing.T) {
		j = newJob(seed, log)
		wrong = j.carry()
	})
	return wrong, j
}

// TestSeeds runs seeds until one finds something wrong.
func TestSeeds(t *testing.T) {
	from, times := *firstSeed, *seeds
	switch {
	case *oneSeed != 0:
		from, times = *oneSeed, 1
	case times == 0 && testing.Short():
		times = 200
	case times == 0:
		times = 5000
	}
	also := ""
	if *onlyFault != "" {
		also = " -fault " + *onlyFault
	}
	var log func(string, ...any)
	if *oneSeed != 0 && testing.Verbose() {
		log = func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var tally [faults]struct{ seeds, errors int }
	steps, bad := 0, 0
	for seed := from; seed < from+uint64(times) && bad < *most; seed++ {
		wrong, j := try(t, seed, log)
		steps += j.steps
		for _, of := range j.faults {
			tally[of.fault].seeds++
			if j.failed() {
				tally[of.fault].errors++
			}
		}
		if wrong != "" {
			bad++
			t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
				t.Errorf("seed %d: %s\nto replay it: go test ./transport/internal/stream/streamsim -run Seeds -seed %d%s -v",
					seed, wrong, seed, also)
			})
		} else if *oneSeed != 0 {
			t.Logf("%v: %d steps, trace %x", j, j.steps, j.trace)
		}
	}
	for f, of := range tally {
		t.Logf("%-8s %7d seeds, %7d with an error", faultNames[f], of.seeds, of.errors)
		if f > int(slow) && of.seeds > 100 && of.errors == 0 {
			t.Errorf("%s: no error in %d seeds: the fault never comes", faultNames[f], of.seeds)
		}
	}
	t.Logf("%d seeds, %d steps each", times, steps/times)
}

// TestReplay runs seeds three times each: all that happens is the same.
func TestReplay(t *testing.T) {
	times := 100
	if testing.Short() {
		times = 20
	}
	if *seeds > 0 {
		times = *seeds
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(times); seed++ {
		var traces [3]uint64
		for k := range traces {
			_, j := try(t, seed, nil)
			traces[k] = j.trace
		}
		if traces[0] != traces[1] || traces[0] != traces[2] {
			t.Errorf("seed %d: three runs of it have the hashes %x", seed, traces)
		}
	}
}
