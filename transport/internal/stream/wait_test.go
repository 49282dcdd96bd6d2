package stream

import (
	"testing"
	"time"
)

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

// TestSpins: a lane looks for as long as it may, a while where the processors are crowded, and not at all where one
// that it gave away has come back late. A Poller sees to that itself.
func TestSpins(t *testing.T) {
	const usual = 100 * time.Microsecond
	now := time.Now()
	for _, test := range []struct {
		name    string
		gone    time.Duration // the processor, just now
		since   time.Duration
		crowded bool
		poller  Poller
		want    time.Duration
	}{
		{"at ease", time.Millisecond, 0, false, nil, usual},
		{"crowded", time.Millisecond, 0, true, nil, crowdedSpin},
		{"back late", 2 * time.Millisecond, 0, false, nil, 0},
		{"back late, and crowded", 2 * time.Millisecond, 29 * time.Millisecond, true, nil, 0},
		{"back late a while ago", 2 * time.Millisecond, 31 * time.Millisecond, false, nil, usual},
		{"a Poller", 2 * time.Millisecond, 0, false, struct{ Poller }{}, usual},
	} {
		l := &Lane{node: &Node{Config: Config{Spin: usual}}, poller: test.poller}
		l.cameBack(now.Add(-test.gone), now)
		if test.crowded {
			l.crowded = now.Add(time.Hour)
		}
		if got, crowded := l.spins(now.Add(test.since)); got != test.want || crowded != test.crowded {
			t.Errorf("%s: it looks for %v, crowded %v; want %v, %v", test.name, got, crowded, test.want, test.crowded)
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
