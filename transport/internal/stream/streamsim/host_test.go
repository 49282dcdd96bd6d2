package streamsim

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"time"

	"gogcl.dev/transport/internal/stream"
)

// node is a replica: the stream.Host of a stream.Node.
type node struct {
	w      *world
	rank   int
	n      *stream.Node
	root   *stream.Lane
	dead   bool
	left   bool
	leftAt time.Time
	last   []time.Time // by peer: when the last control message arrives there
	ends   []*end
	liar   *liar // nil: it is honest
	moves  int   // of its actors, but for those that found what they wait for still missing

	parkers int          // of lanes but the first, that cannot be made: there are no descriptors
	dials   map[int]bool // by peer: there are none for a link to it; whether it is the peer that has none
}

// latest is the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lingers is for how long the control connections of a replica that has left take messages.
const lingers = time.Second

func (n *node) Tell(peer int, message []byte) {
	m := bytes.Clone(message)
	if n.liar != nil {
		n.liar.tell(n, peer, m)
		return
	}
	n.send(peer, m, "")
}

// send has a control message arrive after those before. lie says how it lies, if the receiver must find that.
func (n *node) send(peer int, m []byte, lie string) {
	if n.dead {
		return
	}
	w, to := n.w, n.w.nodes[peer]
	n.last[peer] = latest(n.last[peer], time.Now().Add(w.delay(w.tellDelay)))
	w.at(n.last[peer], w.name("replica %d tells %d %s: %x", n.rank, peer, kindOf(m), m), func() {
		if to.dead || to.left && time.Since(to.leftAt) > lingers {
			return
		}
		err := to.n.Handle(n.rank, m)
		if err != nil {
			w.note("replica %d: %v", peer, err)
			to.n.Lost(n.rank, err)
		} else if lie != "" && !to.left {
			w.fail("replica %d takes a control message of replica %d that lies: %s: %x", peer, n.rank, lie, m)
		}
	})
}

// kinds are the names of control messages, by number.
var kinds = [...]string{"", "an abort", "that it leaves", "that it waits", "credit", "ask", "dial", "a report",
	"a probe", "blind", "an inquiry", "an answer", "settle", "settled", "a query", "a reply"}

func kindOf(m []byte) string {
	if len(m) == 0 || int(m[0]) >= len(kinds) {
		return "nonsense"
	}
	return kinds[m[0]]
}

func (n *node) Connect(peer int, lane uint64) {
	w, to := n.w, n.w.nodes[peer]
	w.after(w.delay(w.dialDelay), w.name("replica %d dials %d for lane %x", n.rank, peer, lane), func() {
		theirs, short := n.dials[peer]
		switch {
		case n.dead || n.left:
			return
		case short:
			n.withoutLink(peer, lane, theirs)
			return
		case to.left || to.dead:
			n.n.Attach(peer, lane, brokenLink{syscall.ECONNREFUSED})
			return
		}
		a, b := w.pair(n, to)
		n.attach(peer, lane, a)
		to.attach(n.rank, lane, b)
	})
}

// withoutLink has a dial end without a link, since this replica has no descriptor for it, or the other one, which
// refuses in the handshake or resets the connection. transport/tcp says so in one of these ways.
func (n *node) withoutLink(peer int, lane uint64, theirs bool) {
	err := syscall.EMFILE
	if theirs {
		err = syscall.ECONNRESET
	}
	switch {
	case n.w.rng.IntN(2) == 0:
		n.n.Attach(peer, lane, brokenLink{err})
	case theirs:
		n.n.Lost(peer, syscall.EMFILE)
	default:
		n.n.Abort(fmt.Errorf("replica %d cannot connect with replica %d: %w", n.rank, peer, err))
	}
}

// attach gives a node its end of a link, which it closes where it has left.
func (n *node) attach(peer int, lane uint64, e *end) {
	what := n.w.name("replica %d has a link to %d for lane %x", n.rank, peer, lane)
	n.w.after(n.w.delay(n.w.dialDelay), what, func() {
		if !n.dead {
			n.n.Attach(peer, lane, e)
		}
	})
}

func (n *node) Parker(number uint64) (stream.Parker, error) {
	if number != 1 && n.parkers > 0 {
		n.parkers--
		return nil, syscall.EMFILE
	}
	return &parker{w: n.w}, nil
}

// Await implements stream.Scheduler.
func (n *node) Await(ready func() bool) { n.w.await(ready) }

func (n *node) Leave() {
	n.left, n.leftAt = true, time.Now()
	n.ended(errors.New("EOF"))
}

// ended has all others hear that the control connection has ended, after all that was said before.
func (n *node) ended(err error) {
	for peer, to := range n.w.nodes {
		if peer == n.rank {
			continue
		}
		at := latest(n.last[peer], time.Now())
		n.w.at(at, n.w.name("replica %d: the control connection to %d has ended", peer, n.rank), func() {
			if !to.dead && !to.left {
				to.n.Lost(n.rank, err)
			}
		})
	}
}

// die ends a replica without a word.
func (n *node) die() {
	if n.left {
		return
	}
	n.dead = true
	n.ended(errors.New("its process has ended"))
	for _, e := range n.ends {
		e.out.reset(syscall.ECONNRESET)
		e.in.reset(syscall.ECONNRESET)
	}
}

var _ stream.Scheduler = (*node)(nil)
