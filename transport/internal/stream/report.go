package stream

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"gogcl.dev/transport"
)

// reportTime is how long Reports waits for the reports of others, which are on the way when an abort is: as long as
// Close waits for a replica that is stopped. Among those that live they come within milliseconds.
const reportTime = time.Second

// reports is what replicas tell of themselves after an abort, and when they are asked.
type reports struct {
	sending sync.WaitGroup // a report of this replica is being made and sent

	mu      sync.Mutex // guards what follows
	by      func(limit int) []byte
	come    [][]byte  // by replica
	limit   time.Time // when nobody waits for reports any more
	number  uint32    // of this replica's last query
	replies [][]byte  // to it, by replica
	asking  bool      // Inquire waits for them
	over    uint32    // the last query of which it does not any more
	last    [][]byte  // the replies to that
	queries []uint32  // by replica: the last query that is being answered; 0: none
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
func (l *Lane) ReportBy(f func(limit int) []byte) {
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
		message := appendReport([]byte{report}, by, transport.MaxReport)
		for peer := range n.Size {
			if peer != n.Rank {
				n.Host.Tell(peer, message)
			}
		}
	})
}

// appendReport appends what this replica says of itself.
func appendReport(b []byte, by func(limit int) []byte, limit int) []byte {
	text := by(limit)
	return append(b, text[:min(len(text), limit)]...)
}

// queryBytes is how long the number of a query is.
const queryBytes = 4

// Inquire implements transport.Reporter.
func (l *Lane) Inquire(limit time.Duration) [][]byte {
	n, r := l.node, &l.node.reports
	until := time.Now().Add(limit)
	r.mu.Lock()
	if r.asking {
		defer r.mu.Unlock()
		for number := r.number; r.over < number; {
			if time.Now().After(until) {
				return slices.Clone(r.replies)
			}
			r.mu.Unlock()
			time.Sleep(time.Millisecond)
			r.mu.Lock()
		}
		return slices.Clone(r.last)
	}
	r.asking = true
	r.number++
	message := binary.LittleEndian.AppendUint32([]byte{query}, r.number)
	r.replies = make([][]byte, n.Size)
	r.mu.Unlock()
	for peer := range n.Size {
		if peer != n.Rank {
			n.Host.Tell(peer, message)
		}
	}
	for n.stopped() == nil && n.silent() && time.Now().Before(until) {
		time.Sleep(time.Millisecond)
	}
	n.mu.Lock()
	gone := slices.Clone(n.gone)
	n.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for peer, left := range gone {
		if left && peer != n.Rank && r.replies[peer] == nil {
			r.replies[peer] = []byte{}
		}
	}
	r.asking, r.over, r.last = false, r.number, slices.Clone(r.replies)
	return slices.Clone(r.last) // a reply may still come
}

// silent reports whether a replica that is there has not replied to the last query.
func (n *Node) silent() bool {
	n.mu.Lock()
	gone := slices.Clone(n.gone)
	closed := n.closed
	n.mu.Unlock()
	r := &n.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	for peer, left := range gone {
		if peer != n.Rank && !left && r.replies[peer] == nil {
			return !closed
		}
	}
	return false
}

// queried answers a query, and the last of those that come meanwhile, on a goroutine of its own: other messages wait to
// be read.
func (n *Node) queried(peer int, number uint32) {
	r := &n.reports
	n.mu.Lock()
	defer n.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.leaving || number == 0 {
		return
	}
	if r.queries == nil {
		r.queries = make([]uint32, n.Size)
	}
	answers := r.queries[peer] != 0
	if r.queries[peer] = number; answers {
		return
	}
	r.sending.Go(func() {
		for answered := uint32(0); ; {
			r.mu.Lock()
			by, last := r.by, r.queries[peer]
			if last == answered || by == nil {
				r.queries[peer] = 0
				r.mu.Unlock()
				return
			}
			r.mu.Unlock()
			n.Host.Tell(peer, appendReport(binary.LittleEndian.AppendUint32([]byte{reply}, last), by,
				transport.MaxReply))
			answered = last
		}
	})
}

// replied keeps the reply of a replica to the last query.
func (n *Node) replied(peer int, number uint32, text []byte) {
	r := &n.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	if number == r.number && number != 0 {
		r.replies[peer] = append([]byte{}, text...)
	}
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
