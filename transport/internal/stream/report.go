package stream

import (
	"sync"
	"time"

	"gogcl.dev/transport"
)

// reportTime is how long Reports waits for the reports of others, which are on the way when an abort is: as long as
// Close waits for a replica that is stopped. Among those that live they come within milliseconds.
const reportTime = time.Second

// reports is what replicas tell of themselves after an abort.
type reports struct {
	sending sync.WaitGroup // the report of this replica is being made and sent

	mu    sync.Mutex // guards what follows
	by    func() []byte
	come  [][]byte  // by replica
	limit time.Time // when nobody waits for reports any more
}

// until is when nobody waits for reports any more: reportTime after the first who does begins.
func (r *reports) until() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit.IsZero() {
		r.limit = time.Now().Add(reportTime)
	}
	return r.limit
}

// ReportBy implements transport.Reporter.
func (l *Lane) ReportBy(f func() []byte) {
	r := &l.node.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by = f
}

// sendReport tells the others what this replica was doing.
func (n *Node) sendReport() {
	r := &n.reports
	r.mu.Lock()
	by := r.by
	r.mu.Unlock()
	if by == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.leaving {
		return
	}
	r.sending.Go(func() {
		text := by()
		message := append([]byte{report}, text[:min(len(text), transport.MaxReport)]...)
		for peer := range n.Size {
			if peer != n.Rank {
				n.Host.Tell(peer, message)
			}
		}
	})
}

// reported keeps the report of a replica, the first one.
func (n *Node) reported(peer int, text []byte) {
	r := &n.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.come == nil {
		r.come = make([][]byte, n.Size)
	}
	if r.come[peer] == nil {
		r.come[peer] = append([]byte{}, text...)
	}
}

// Reports implements transport.Reporter.
func (l *Lane) Reports() [][]byte {
	n := l.node
	r := &n.reports
	for n.aborted.Load() != nil && n.owed() && time.Now().Before(r.until()) {
		time.Sleep(time.Millisecond)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([][]byte, n.Size)
	copy(out, r.come)
	return out
}

// owed reports whether a report may still come.
func (n *Node) owed() bool {
	n.mu.Lock()
	gone := append([]bool{}, n.gone...)
	n.mu.Unlock()
	r := &n.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	for peer, left := range gone {
		if peer != n.Rank && !left && (r.come == nil || r.come[peer] == nil) {
			return true
		}
	}
	return false
}
