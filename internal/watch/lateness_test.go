package watch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A schedule of calls that a test makes: when each replica came to each, and when all were over.
type arrivals struct {
	came  [][]time.Duration // by call and replica, since the beginning
	ended []time.Duration
}

// processes are those of the replicas, one each, on hosts whose clocks differ.
func (a arrivals) processes(hosts []string, apart []time.Duration, room int) (out []Process) {
	beginning := time.Unix(1e9, 0)
	now := a.ended[len(a.ended)-1] + time.Second
	for replica, host := range hosts {
		t := NewTimes(room)
		for call := len(a.came) - 1; call >= 0; call-- {
			if came := a.came[call][replica]; !t.Add(0, 77, uint64(call+1), now-came, a.ended[call]-came) {
				break
			}
		}
		out = append(out, Process{Host: host, At: beginning.Add(now + apart[replica]),
			Replicas: []Replica{{Replica: replica, Times: t.Bytes()}}})
	}
	return out
}

// calls makes arrivals of so many replicas and calls. late says how long after the others a replica comes to a call.
func calls(replicas, n int, late func(call, replica int) time.Duration) (a arrivals) {
	now := time.Duration(0)
	for call := range n {
		came := make([]time.Duration, replicas)
		for r := range came {
			came[r] = now + 10*time.Microsecond + late(call, r)
		}
		now = slices.Max(came) + 3*time.Microsecond
		a.came, a.ended = append(a.came, came), append(a.ended, now)
	}
	return a
}

// TestLateness: who comes late is named, with how often and by how much, also where clocks of hosts are hours apart.
// Where all come late in turn, and where nobody does, nobody is named.
func TestLateness(t *testing.T) {
	sometimes := func(call, replica int) time.Duration {
		if replica == 2 && call%2 == 0 {
			return 2 * time.Millisecond
		}
		return 0
	}
	same, none := []string{"a", "a", "a", "a"}, make([]time.Duration, 4)
	for _, c := range []struct {
		name  string
		late  func(call, replica int) time.Duration
		hosts []string
		apart []time.Duration
		want  string
	}{
		{"one host", sometimes, same, none, "[replica 2 was last in 500 of 1000 calls, by 2ms in the median]"},
		{"clocks apart", sometimes, []string{"a", "a", "b", "c"}, []time.Duration{0, 0, time.Hour, -time.Minute},
			"[replica 2 was last in 500 of 1000 calls, by 2ms in the median]"},
		{"nobody", func(int, int) time.Duration { return 0 }, same, none, "[]"},
		{"in turn", func(call, replica int) time.Duration {
			if call%4 == replica {
				return time.Millisecond
			}
			return 0
		}, same, none, "[]"},
		{"two, one worse", func(call, replica int) time.Duration {
			switch {
			case replica == 1 && call%3 == 0:
				return time.Millisecond
			case replica == 3 && call%3 == 1:
				return 3 * time.Millisecond
			}
			return 0
		}, same, none, "[replica 3 was last in 333 of 1000 calls, by 3ms in the median " +
			"replica 1 was last in 334 of 1000 calls, by 1ms in the median]"},
	} {
		all := calls(4, 1000, c.late).processes(c.hosts, c.apart, 1<<20)
		if got := fmt.Sprint(Stragglers(Lateness(all))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestLatenessOfFew: calls that are not known of all members do not count.
func TestLatenessOfFew(t *testing.T) {
	all := calls(3, 100, func(_, replica int) time.Duration { return time.Duration(replica) * time.Millisecond }).
		processes([]string{"a", "a", "a"}, make([]time.Duration, 3), 1<<20)
	short := calls(3, 100, func(_, replica int) time.Duration { return time.Duration(replica) * time.Millisecond }).
		processes([]string{"a", "a", "a"}, make([]time.Duration, 3), 20*timesRoom/10)
	all[2].Replicas = short[2].Replicas
	known := Lateness(all)[2]
	if known.Of == 0 || known.Of == 100 || known.Last != known.Of || known.Median != time.Millisecond ||
		known.Total != time.Duration(known.Of)*time.Millisecond {
		t.Errorf("%v", known)
	}
	if got := Lateness(nil); len(got) != 0 {
		t.Error(got)
	}
}

// TestTimes: what is written is read again, to the microsecond. Bytes that make no sense end it.
func TestTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		w, want := NewTimes(1<<20), []timed(nil)
		began := time.Duration(0)
		for range rng.IntN(50) {
			began += time.Duration(rng.IntN(1e9)) * time.Microsecond
			took := time.Duration(rng.IntN(3)) * time.Microsecond * 1000
			c := timed{series{uint64(rng.IntN(3)), rng.Uint64() >> 62 << 62}, rng.Uint64() >> 1, began, began, took > 0}
			if c.ended = began - took; !c.over {
				c.ended = began + time.Microsecond
			}
			if !w.Add(c.connection, c.group, c.seq, began, took) {
				t.Fatal("no room")
			}
			want = append(want, c)
		}
		var got []timed
		readTimes(w.Bytes(), func(c timed) { got = append(got, c) })
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	n := 0
	for range 1000 {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		readTimes(b, func(timed) { n++ })
	}
}
