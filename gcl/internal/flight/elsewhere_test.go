package flight

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/transport"
)

// oneReport are the Reports of a replica 1.
type oneReport struct{ of *Recorders }

func (r oneReport) Reports() [][]byte              { return [][]byte{nil, r.of.Report(4 << 10)} }
func (r oneReport) Inquire(time.Duration) [][]byte { return r.Reports() }

// TestReachedElsewhere: what a replica of another process tells says whether it has come to a call, as long as it tells
// of the call's group. It is not blamed for what it has no room to tell.
func TestReachedElsewhere(t *testing.T) {
	members := []int{0, 1}
	group := wire.GroupID(members, 0)
	for _, c := range []struct {
		others int // calls of other groups since, each of a group of its own
		waits  uint64
		want   string
	}{
		{0, 3, "all members have come to it"},
		{0, 4, "waiting for replica 1, which has made no call"},
		{maxReached - 1, 3, "all members have come to it"},
		{maxReached - 1, 4, "waiting for replica 1, which has made no call"},
		{maxReached, 3, "replica 1 is not in this process, and silent"},
		{2 * flightLength, 3, "replica 1 is not in this process, and silent"},
	} {
		t.Run(fmt.Sprintf("%d others, call %d", c.others, c.waits), func(t *testing.T) {
			make1 := func(f *Recorder, group, seq uint64) {
				f.Begin(&Label{Members: members, Group: group}, &transport.Call{Group: group, Seq: seq}, ticks.Now())
			}
			theirs := New(func(transport.Call) string { return "" })
			f := theirs.Open(1, 7)
			for seq := range uint64(3) {
				make1(f, group, seq+1)
				f.End(false, 0)
			}
			for k := range c.others {
				make1(f, wire.GroupID([]int{1, 2 + k}, 0), 1)
				f.End(false, 0)
			}
			ours := New(func(transport.Call) string { return "" })
			own := ours.Open(0, 7)
			make1(own, group, c.waits)
			ours.Hear(oneReport{theirs})
			text, missed := ours.Look().Heard(ours).WaitingFor(own,
				&Label{Members: members, Group: group}, c.waits, 0)
			if !strings.HasPrefix(text, c.want) || missed != strings.HasPrefix(c.want, "waiting") {
				t.Errorf("%q, %v; want %q", text, missed, c.want)
			}
		})
	}
}
