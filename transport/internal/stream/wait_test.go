package stream

import "testing"

// TestGives: a lane that waits gives the processor to the goroutines of its process where the replicas there outnumber
// the processors, and else to threads, more often if they want it.
func TestGives(t *testing.T) {
	poller := struct{ Poller }{}
	type given struct{ goroutines, threads int } // in 256 looks
	for _, test := range []struct {
		name            string
		procs, replicas int64
		node, crowded   bool
		poller          Poller
		want            given
	}{
		{"alone", 2, 1, false, false, nil, given{1, 8}},
		{"one processor", 1, 1, false, false, nil, given{256, 8}},
		{"as many as processors", 2, 2, false, false, nil, given{1, 8}},
		{"as many as processors, a crowded host", 2, 2, true, false, nil, given{1, 256}},
		{"as many as processors, a slow look", 2, 2, false, true, nil, given{1, 256}},
		{"a Poller", 2, 1, true, true, poller, given{1, 128}},
		{"more than processors", 2, 3, false, false, nil, given{256, 0}},
		{"more than processors, a crowded host and a slow look", 2, 3, true, true, nil, given{256, 0}},
		{"more than processors, a Poller", 1, 2, false, false, poller, given{256, 0}},
	} {
		l := &Lane{node: &Node{Config: Config{Crowded: test.node}}, procs: test.procs, poller: test.poller}
		var got given
		for range goschedLooks {
			l.pause.looks++
			goroutines, threads := l.gives(test.replicas, test.crowded)
			if goroutines {
				got.goroutines++
			}
			if threads {
				got.threads++
			}
		}
		if got != test.want {
			t.Errorf("%s: turns of 256 given to goroutines and threads: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestReplicasOfAProcess: those that are open count, however many lanes each has.
func TestReplicasOfAProcess(t *testing.T) {
	before := replicas.Load()
	eps := openRings(t, 3, 1<<10, false)
	dup, err := eps[0].Dup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := replicas.Load() - before; got != 3 {
		t.Errorf("%d replicas, want 3", got)
	}
	dup.Close()
	for _, e := range eps {
		e.Close()
	}
	if got := replicas.Load() - before; got != 0 {
		t.Errorf("%d replicas are left", got)
	}
}
