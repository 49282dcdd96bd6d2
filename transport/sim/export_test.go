package sim

import (
	"runtime"
	"testing"
	"time"
)

// Hurry has replicas count as away soon, for the rest of a test.
func Hurry(t testing.TB) {
	before := awayAfter
	awayAfter = 2 * time.Millisecond
	t.Cleanup(func() { awayAfter = before })
}

// AwaitAway returns when a replica counts as away, and those that wait for it do not go on.
func AwaitAway(n *Net, replica int) {
	for {
		n.mu.Lock()
		away := n.replicas[replica].away && n.busy == 0
		n.mu.Unlock()
		if away {
			return
		}
		runtime.Gosched()
	}
}
