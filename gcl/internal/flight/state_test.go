package flight

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/internal/watch"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// busy is a replica 1 of 4 with so many connections, each with so many calls, the last of which goes on.
func busy(connections, calls int) *Recorders {
	s := New(func(transport.Call) string { return "data" })
	s.Identify(watch.Process{Job: "j", Run: "r", Size: 4, Program: strings.Repeat("p", 100)})
	members := []int{0, 1, 2, 3}
	l := &Label{Name: strings.Repeat("n", 60), Members: members, Rank: 1, Group: wire.GroupID(members, 0)}
	for k := range connections {
		f := s.Open(1, uint64(k))
		f.FailsBy(func() *watch.Failure { return &watch.Failure{Error: strings.Repeat("long ", 1000), Replica: 2} })
		for seq := range calls {
			f.Begin(l, &transport.Call{Group: l.Group, Seq: uint64(seq + 1), Count: 1000,
				Collective: uint8(schedule.AllReduce), DType: uint8(tensor.F32)}, ticks.Now())
			f.Choose(1, route.Messages)
			if seq < calls-1 {
				f.End(false, 0)
			}
		}
	}
	return s
}

// TestReport: what others are told fits the room that there is, whatever there is to tell, and of what goes on most is
// kept. Where there is room it has the times of the calls.
func TestReport(t *testing.T) {
	for _, c := range []struct{ connections, calls, limit, known int }{
		{1, 3, transport.MaxReport, 1}, {1, 2000, transport.MaxReply, 1}, {40, 3, transport.MaxReport, 2},
		{40, 3, transport.MaxReply, 10}, {1, 0, transport.MaxReport, 1},
	} {
		text := busy(c.connections, c.calls).Report(c.limit)
		if len(text) > c.limit {
			t.Errorf("%+v: %d bytes", c, len(text))
		}
		line, rest, found := bytes.Cut(text, []byte("\n"))
		var p watch.Process
		if err := json.Unmarshal(line, &p); err != nil || !found {
			t.Errorf("%+v: %v: %.100s", c, err, text)
			continue
		}
		known := 0
		for _, r := range p.Replicas {
			known += len(r.Connections)
		}
		if known < c.known || known < c.connections && known > 0 && p.Replicas[0].Known() {
			t.Errorf("%+v: %d connections are known", c, known)
		}
		if len(rest) > 0 && rest[len(rest)-1] != '\n' {
			t.Errorf("%+v: the text is cut in a line: %q", c, rest)
		}
		if times := p.Replicas; c.limit == transport.MaxReply && c.connections == 1 {
			all := watch.Lateness([]watch.Process{p, {Size: 4, At: p.At, Replicas: []watch.Replica{
				{Replica: 2, Times: times[0].Times}}}})
			if len(all) != 2 || all[0].Of < 500 {
				t.Errorf("%+v: %v calls are timed", c, all)
			}
		}
	}
}

// TestState: the bytes of calls that are over count, by the second.
func TestState(t *testing.T) {
	s := busy(2, 51)
	p := s.State(8)
	if len(p.Replicas) != 1 || len(p.Replicas[0].Connections) != 2 || p.Job != "j" || p.Failure.Replica != 2 ||
		time.Since(p.At) > time.Minute {
		t.Fatalf("%+v", p)
	}
	r := p.Replicas[0]
	if want := int64(100 * 4000 / watch.Window.Seconds()); r.BytesPerSec != want {
		t.Errorf("%d bytes a second, want %d", r.BytesPerSec, want)
	}
	calls := r.Connections[1].Calls
	if len(calls) != 8 || calls[6].State != watch.Done || calls[6].Inside || !calls[7].Inside ||
		calls[7].State != watch.Running || len(calls[7].Waits) != 1 || calls[7].Waits[0].Seq != 51 ||
		calls[6].Data != "data" || calls[6].Path != "messages" {
		t.Errorf("%+v", calls)
	}
}
