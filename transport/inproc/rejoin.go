package inproc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gogcl.dev/transport"
)

// rejoin is how the replicas of a network go on in the next one.
type rejoin struct {
	members []member // by rank
	agreed  bool     // the next network is made
}

// member is a replica of a network in the calls of Rejoin.
type member struct {
	gone   transport.Gone           // Why is nil while the replica is there
	answer chan *transport.Rejoined // nil until Rejoin is called
	note   uint64                   // of Rejoin
}

var (
	errRejoinsTwice = errors.New("inproc: this endpoint has been rejoined before")
	errRejoinsByDup = errors.New("inproc: an endpoint made by Dup cannot rejoin, the first endpoint of the replica can")
)

// Rejoin implements transport.Rejoiner for the endpoints that New and Rejoin return. One made by Dup refuses, and so
// does one that has been rejoined; neither changes anything.
func (e *endpoint) Rejoin(ctx context.Context, note uint64) (*transport.Rejoined, error) {
	answer, err := e.enter(ctx, note)
	if err != nil {
		return nil, err
	}
	nw := e.lane.nw
	nw.abort(e.rank, fmt.Errorf("replica %d rejoins", e.rank))
	var r *transport.Rejoined
	select {
	case r = <-answer:
	case <-ctx.Done():
		nw.mu.Lock()
		nw.depart(e.rank, context.Cause(ctx))
		nw.mu.Unlock()
		r = <-answer // which came before, or is closed now
	}
	if r == nil {
		return nil, nw.rejoin.members[e.rank].gone.Why
	}
	return r, nil
}

// Awaited implements transport.Rejoiner. Nobody comes to a network of one process.
func (e *endpoint) Awaited() bool { return false }

// enter says that a replica rejoins. What it returns has one answer, or is closed when the replica is gone.
func (e *endpoint) enter(ctx context.Context, note uint64) (answer <-chan *transport.Rejoined, err error) {
	nw := e.lane.nw
	nw.mu.Lock()
	defer nw.mu.Unlock()
	m := &nw.rejoin.members[e.rank]
	switch {
	case e.lane != nw.root:
		return nil, errRejoinsByDup
	case e.closed.Load():
		return nil, &transport.ClosedError{Replica: e.rank}
	case m.gone.Why != nil:
		return nil, transport.ErrLeftBehind
	case m.answer != nil:
		return nil, errRejoinsTwice
	}
	m.answer, m.note = make(chan *transport.Rejoined, 1), note
	if ctx.Err() != nil {
		nw.depart(e.rank, context.Cause(ctx))
	} else {
		nw.agree()
	}
	return m.answer, nil
}

// depart says that a replica is gone, unless it has gone on or is gone already. The caller holds nw.mu.
func (nw *network) depart(rank int, why error) {
	m := &nw.rejoin.members[rank]
	if nw.rejoin.agreed || m.gone.Why != nil {
		return
	}
	m.gone = transport.Gone{Replica: rank, When: time.Now(), Why: why}
	if m.answer != nil {
		close(m.answer)
	}
	nw.agree()
}

// agree makes the next network once all who are not gone wait for it. The caller holds nw.mu.
func (nw *network) agree() {
	if slices.ContainsFunc(nw.rejoin.members, func(m member) bool { return m.gone.Why == nil && m.answer == nil }) {
		return
	}
	var r transport.Rejoined
	for rank, m := range nw.rejoin.members {
		if m.gone.Why != nil {
			r.Gone = append(r.Gone, m.gone)
		} else {
			r.Replicas, r.Notes = append(r.Replicas, rank), append(r.Notes, m.note)
		}
	}
	if len(r.Replicas) == 0 {
		return
	}
	nw.rejoin.agreed = true
	next := connected(len(r.Replicas))
	next.generation, next.tune = nw.generation+1, nw.tune
	if next.tune != nil {
		next.tune(next)
	}
	for i, rank := range r.Replicas {
		nw.rejoin.members[rank].answer <- &transport.Rejoined{
			Endpoint: next.root.eps[i], Generation: next.generation,
			Replicas: slices.Clone(r.Replicas), Notes: slices.Clone(r.Notes), Gone: slices.Clone(r.Gone),
		}
	}
}
