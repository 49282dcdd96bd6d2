package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// at is a replica whose last call of group 7 on connection 0 has a number, and is going on if that is said.
func at(replica int, seq uint64, inside bool) Replica {
	c := Call{Name: fmt.Sprintf("barrier #%d", seq), Group: "{0, 1, 2, 3}", Began: 3 * time.Second, Inside: inside,
		State: Done}
	if inside {
		c.State = Running
		c.Waits = []Part{{Group: 7, Seq: seq, Members: []int{0, 1, 2, 3}}}
	}
	return Replica{Replica: replica, Connections: []Connection{{Calls: []Call{c}, Reached: map[uint64]uint64{7: seq}}}}
}

// jobOf is a job of 4 whose replicas are in one process each.
func jobOf(replicas ...Replica) *Job {
	j := &Job{Name: "j", Size: 4}
	for i, r := range replicas {
		j.Processes = append(j.Processes, Process{Job: "j", Size: 4, Host: "h", PID: 100 + i, At: time.Unix(1e9, 0),
			Replicas: []Replica{r}})
	}
	j.fill("does not answer")
	return j
}

func TestJudge(t *testing.T) {
	other := at(2, 1, true) // in a call of two, of another group
	other.Connections[0].Calls[0].Waits = []Part{{Group: 8, Seq: 1, Members: []int{1, 2}}}
	other.Connections[0].Reached = map[uint64]uint64{7: 4, 8: 1}
	other.Connections[0].Calls[0].Name, other.Connections[0].Calls[0].Group = "barrier #1", "{1, 2}"
	unknown := at(1, 4, true)
	unknown.Connections[0].Calls[0].Waits[0].Members = nil
	early := at(1, 5, true)
	early.Connections[0].Calls[0].Round = 2
	behind := at(2, 5, true)
	behind.Connections[0].Calls[0].Round = 1
	silent := at(2, 1, false)
	silent.Connections[0].Reached, silent.Connections[0].More = map[uint64]uint64{1: 1}, true
	cut := Replica{Replica: 2, Connections: []Connection{{ID: 5, Cut: true}}}
	apart := at(0, 5, true)
	apart.Connections = append(apart.Connections, Connection{ID: 9, Number: 1})

	for _, c := range []struct {
		name string
		job  *Job
		want string
	}{
		{"one has not come", jobOf(at(0, 5, true), at(1, 5, true), at(2, 4, false), at(3, 5, true)),
			"0>2 1>2 3>2 [2] []: has made no call for 3s, since barrier #4 of group {0, 1, 2, 3}"},
		{"nobody waits", jobOf(at(0, 5, false), at(1, 5, false), at(2, 5, false), at(3, 5, false)), "[] []"},
		{"all are in it", jobOf(at(0, 5, true), at(1, 5, true), at(2, 5, true), at(3, 5, true)), "[] []"},
		{"one is silent", jobOf(at(0, 5, true), at(1, 5, true), at(2, 5, true)),
			"0>3 1>3 2>3 [3] []: does not answer"},
		{"members unknown, and one is silent", jobOf(at(0, 3, false), unknown, at(2, 4, false)),
			"1>0 [0] []: has made no call for 3s, since barrier #3 of group {0, 1, 2, 3}"},
		{"in a cycle", jobOf(at(0, 5, false), at(1, 5, true), other, at(3, 5, false)),
			"1>2 2>1 [] [1 2]: is in barrier #1 of group {1, 2}"},
		{"behind", jobOf(at(0, 5, false), early, behind, at(3, 5, false)), "1>2 [2] []: is in round 0 of it"},
		{"it had no room to tell", jobOf(at(0, 5, true), at(1, 5, false), silent, at(3, 5, false)), "[] []"},
		{"nor for a connection", jobOf(at(0, 5, true), at(1, 5, false), cut, at(3, 5, false)), "[] []"},
		{"nothing opened", jobOf(at(0, 5, true), at(1, 5, false), Replica{Replica: 2, Connections: []Connection{{ID: 1}}},
			at(3, 5, false)), "0>2 [2] []: has not opened"},
		{"two connections", jobOf(apart, at(1, 5, false), at(2, 4, false), at(3, 5, false)),
			"0>2 [2] []: has made no call on connection 0 for 3s, since barrier #4 of group {0, 1, 2, 3}"},
	} {
		v := c.job.Judge()
		var got []string
		for _, e := range v.Edges {
			got = append(got, fmt.Sprintf("%d>%d", e.From, e.To))
		}
		got = append(got, fmt.Sprintf("%v %v", v.Sinks, v.Cycle))
		text := strings.Join(got, " ")
		if v.Edges != nil {
			text += ": " + v.Edges[0].Why
		}
		if text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}

// TestJudgeSkew: who was looked at before a call began may have come to it since.
func TestJudgeSkew(t *testing.T) {
	j := jobOf(at(0, 5, true), at(1, 5, true), at(2, 4, false), at(3, 5, true))
	j.Processes[2].At = j.Processes[2].At.Add(-4 * time.Second)
	if v := j.Judge(); v.Edges != nil {
		t.Error(v)
	}
	j.Processes[2].Host = "another, whose clock is its own"
	if v := j.Judge(); len(v.Edges) != 3 {
		t.Error(v)
	}
}

// TestTable: those for whom the job waits come first, with where they are.
func TestTable(t *testing.T) {
	j := jobOf(at(0, 5, true), at(1, 5, true), at(2, 4, false))
	j.Processes[2].Replicas[0].Stack = "sync.Mutex.Lock, in main.main (main.go:7)"
	j.Processes[0].Replicas[0].BytesPerSec = 1_234_567
	var b strings.Builder
	if err := j.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	const want = `job j, 4 replicas: 2 wait for replicas 2, 3
replica  host  pid  since  waits for  bytes/s  does
2        h     102  3s                         in no call, since barrier #4 of group {0, 1, 2, 3}
                                               sync.Mutex.Lock, in main.main (main.go:7)
3                                              does not answer
0        h     100  3s     2, 3       1.23M    in barrier #5 of group {0, 1, 2, 3}
1        h     101  3s     2, 3                in barrier #5 of group {0, 1, 2, 3}
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		in   []int
		want string
	}{
		{nil, ""}, {[]int{4}, "4"}, {[]int{1, 2}, "1, 2"}, {[]int{0, 1, 2, 5, 7, 8, 9, 10}, "0-2, 5, 7-10"},
	} {
		if got := Ranges(c.in); got != c.want {
			t.Errorf("%v is %s, want %s", c.in, got, c.want)
		}
	}
}

// TestShorten: whatever there is no room for is left out, the calls that others wait for last.
func TestShorten(t *testing.T) {
	p := Process{Program: "p", Replicas: []Replica{at(1, 5, true)}}
	p.Failure = &Failure{Error: strings.Repeat("long", 1000)}
	r := &p.Replicas[0]
	r.Times = []byte("x")
	done := at(1, 4, false).Connections[0]
	done.ID = 1
	r.Connections = append([]Connection{done}, r.Connections...)
	steps := 0
	for p.Shorten(steps) {
		steps++
		if r := p.Replicas; steps >= 6 && len(r) > 0 && r[0].Known() {
			t.Errorf("after step %d all connections are known: %+v", steps, r)
		}
		if steps > 4 && len(p.Replicas) > 0 && p.Replicas[0].Connections[0].ID != 0 {
			t.Errorf("the call in progress has gone: %+v", p.Replicas)
		}
	}
	if steps != 7 || p.Replicas == nil || len(p.Failure.Error) > 2*shortError {
		t.Errorf("%d steps, and %+v is left", steps, p)
	}
}
