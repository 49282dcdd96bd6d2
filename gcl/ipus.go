package gcl

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// MaxIPUs bounds the IPUs of one replica, and so the rows of a collective within it. The memory of their network grows
// with the square of their number: 111 MB are kept for 256 by messages, where 1,024 would keep 1.8 GB
// (docs/design/within-replica.md).
const MaxIPUs = 256

// ipus is the IPUs of one replica: workers with memory of their own, on a network of their own that is a ladder. Each
// carries out collectives with the others by a Comm, as replicas do. Whoever has the connection's turn uses them.
type ipus struct {
	replica int
	all     []*ipu // by id

	// Of the collective in progress.
	ctx  context.Context
	body func(*ipu) error
	busy sync.WaitGroup
}

// ipu is one of them.
type ipu struct {
	id     int
	of     *ipus
	comm   Comm              // on the network of the IPUs
	groups map[int]ipuGroups // by IPUs per rank
	start  func()            // work, so that to start it allocates nothing
	err    error

	// Of the collective in progress.
	ipuGroups
	parts []int // for a call
}

// ipuGroups are the groups that an IPU is in.
type ipuGroups struct {
	equal *membership // the IPUs of its offset: rank f has fragment f after a reduce-scatter
	every *membership // all IPUs, in the order in which Concat joins their chunks
}

// ipusInOrder lists k IPUs, m to a rank, in the order in which Concat joins their chunks: the one at offset*k/m + index
// has a chunk of that offset and index. Where ranks have one IPU, index is the place on the ladder's ring; where they
// have several, the number of the rank.
func ipusInOrder(ladder topology.Topology, k, m int) ([]int, error) {
	ids := make([]int, 0, k)
	for offset := range m {
		for p := offset; p < k; p += m {
			ids = append(ids, p)
		}
	}
	if m > 1 {
		return ids, nil
	}
	rings, err := ladder.Rings(topology.Auto, ids)
	return rings.First, err
}

// ipusOf returns the replica's k IPUs, and makes them when it is first asked. They last until the connection is closed.
func (l *connection) ipusOf(k int) (*ipus, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.ipus[k]; s != nil {
		return s, nil
	}
	ladder, err := topology.New(topology.Config{Shape: topology.OpenLadder, Replicas: []int{k},
		IOTiles: l.topology.IOTiles()})
	if err != nil {
		return nil, err
	}
	endpoints, err := inproc.New(k)
	if err != nil {
		return nil, err
	}
	s := &ipus{replica: l.Endpoint.Rank(), all: make([]*ipu, k)}
	for id, e := range endpoints {
		w := &ipu{id: id, of: s, comm: Comm{conn: newConnection(e, ladder, nil, nil)}, groups: map[int]ipuGroups{}}
		w.comm.conn.warned = nil
		w.comm.conn.own = l.own
		w.start = w.work
		s.all[id] = w
	}
	if l.ipus == nil {
		l.ipus = map[int]*ipus{}
	}
	l.ipus[k] = s
	return s, nil
}

// closeIPUs makes a collective that the IPUs are in fail, and returns when they have left the buffers. The connection's
// own endpoint, closed next, sees to it that there will be no other.
func (l *connection) closeIPUs() {
	l.mu.Lock()
	l.closed = true
	var all []*ipu
	for _, s := range l.ipus {
		all = append(all, s.all...)
	}
	l.ipus = nil
	l.mu.Unlock()
	for _, w := range all {
		w.comm.conn.Endpoint.Close() // fails only over broadcasts, which IPUs make none of
	}
}

func (l *connection) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// join makes ready for a collective of IPUs, m to a rank.
func (w *ipu) join(m int, options Options) error {
	groups, known := w.groups[m]
	if !known {
		every, err := ipusInOrder(w.comm.conn.topology, len(w.of.all), m)
		if err != nil {
			return err
		}
		size := len(every) / m
		first := w.id % m * size
		equal := every[first : first+size]
		var err1, err2 error
		groups.every, err1 = w.comm.conn.groupOfAll(every, slices.Index(every, w.id))
		groups.equal = groups.every
		if m > 1 {
			groups.equal, err2 = w.comm.conn.groupOfAll(equal, slices.Index(equal, w.id))
		}
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		w.groups[m] = groups
	}
	w.ipuGroups, w.comm.options, w.comm.group = groups, options, groups.every
	w.comm.resolve()
	return nil
}

// do carries out this IPU's part of a collective of a group.
func (w *ipu) do(g *membership, k call) error {
	c := &w.comm
	c.group = g
	c.resolveCaller()
	c.digest = c.fingerprint()
	var f transport.Call
	c.describe(&k, &f)
	f.Seq, f.Count = g.made.calls.Add(1), uint64(c.larger(&k))
	j := &c.conn.alone
	j.One(&k.Ask, k.dtype, k.dst, k.src, &k.parts, nil, c.larger(&k))
	defer j.Forget()
	err := c.performFinite(w.of.ctx, j, &f)
	if own, ok := err.(*NotFiniteError); ok { // and not that of another IPU
		own.Replica = w.of.replica
		c.conn.Endpoint.Abort(err)
	}
	if unproved := (*carry.UnprovedError)(nil); errors.As(err, &unproved) {
		c.conn.Endpoint.Abort(err) // IPUs of another group, whose schedule is right, may wait for this one later
	}
	return err
}

// run calls body for each IPU, on a goroutine of its own but that IPU 0 has the caller's, and returns when all have
// returned.
func (s *ipus) run(ctx context.Context, body func(*ipu) error) error {
	s.ctx, s.body = ctx, body
	s.busy.Add(len(s.all))
	for _, w := range s.all[1:] {
		go w.start()
	}
	func() {
		defer s.busy.Wait() // also after runtime.Goexit, in a function of a Trace: the rows are the caller's
		s.all[0].work()
	}()
	s.ctx, s.body = nil, nil
	var heard error // of one that only heard that another has failed, and knows less than the other
	for _, w := range s.all {
		switch {
		case w.err == nil:
		case ownAbort(w.err) == nil:
			return &ipuError{w.id, w.err}
		case heard == nil:
			heard = &ipuError{w.id, w.err}
		}
	}
	return heard
}

// work is one IPU's part. A panic becomes its error, and the others hear of it.
func (w *ipu) work() {
	defer w.of.busy.Done()
	done := false
	defer func() {
		if v := recover(); v != nil {
			w.err = &PanicError{Replica: w.of.replica, Value: v, Stack: debug.Stack()}
			w.comm.conn.Endpoint.Abort(w.err)
		} else if !done { // runtime.Goexit, in a function of a Trace
			w.comm.conn.Endpoint.Abort(flight.ErrCrash)
		}
	}()
	w.err = w.of.body(w)
	done = true
}
