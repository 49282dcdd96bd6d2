//go:build !race

package tcp

import (
	"context"
	"net"
	"testing"
	"time"
)

// undated is an end of a pipe, of which a deadline would allocate.
type undated struct{ net.Conn }

func (undated) SetReadDeadline(time.Time) error { return nil }

// TestHeartbeatsAllocateNothing: a call that waits for long, on a machine that is busy, hears many.
func TestHeartbeatsAllocateNothing(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	m := quietMesh(0, 2)
	m.all()[0] = nil
	m.ctx, m.cancel = context.WithCancel(context.Background())
	g, err := m.found()
	if err != nil {
		t.Fatal(err)
	}
	defer g.lane.Close()
	m.at(1).start(undated{there}, nil, nil)

	const times, beats = 500, 4
	wire, sum, i := make([][]byte, (1+times)*beats), uint32(0), 0
	for k := range wire {
		wire[k], sum = appendMessage(nil, sum, appendHeartbeat(nil, uint64(k)))
	}
	if got := testing.AllocsPerRun(times, func() { // which runs it once more
		for range beats {
			if _, err := here.Write(wire[i]); err != nil {
				t.Error(err)
			}
			i++
		}
	}); got > 0 {
		t.Errorf("%v allocations for each %d heartbeats, want none", got, beats)
	}
	here.Close()
	m.abort(context.Canceled)
}
