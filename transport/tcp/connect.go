package tcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/handshake"
)

// Connect connects the replica to all others, whose addresses are by rank, and returns its endpoint, which closes the
// Listener. All replicas must call it. The error names the replicas that cannot be reached, or have not come when ctx
// is done, which alone bounds how long they are waited for; then the Listener is closed.
func (l *Listener) Connect(ctx context.Context, addresses []Address) (transport.Endpoint, error) {
	c := l.config
	c.form = c.segmentForm()
	if len(addresses) != c.Size {
		l.Close()
		return nil, fmt.Errorf("tcp: %d addresses of %d replicas", len(addresses), c.Size)
	}
	m, err := l.newMesh(c, addresses[c.Rank], addresses)
	if err != nil {
		return nil, err
	}
	controls := make([]*control, c.Size)
	for r := range controls {
		if r != c.Rank {
			controls[r] = newControl(m, r)
			controls[r].isAt(addresses[r])
		}
	}
	m.controls.Store(&controls)
	g, err := m.found()
	if err != nil {
		m.cancel()
		l.Close()
		m.shm.close(m.all())
		return nil, err
	}
	if c.meets != nil {
		c.meets(m)
	}
	m.serve()
	m.beat()
	if err := m.meet(ctx); err != nil {
		g.lane.Abort(err)
		g.lane.Close()
		return nil, fmt.Errorf("tcp: replica %d: %w", c.Rank, err)
	}
	return g.newEndpoint(g.lane, g.where), nil
}

// wordTime is how long a replica goes on to meet the others after one of them has failed or is lost. In a job whose
// others all come, it is the first call that tells of the failure.
const wordTime = 2 * time.Second

// meet dials the control connections to replicas with greater numbers and waits for those of the others.
func (m *mesh) meet(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var dials errgroup.Group
	missing := map[int]bool{}
	come := make(chan error, 1)
	done := m.now.Load().node.Done()
	var late <-chan time.Time // when those who are still there have had the time to come
	me, size := m.config.Rank, m.config.Size
	for r := range me {
		missing[r] = true
	}
	go func() {
		for r := me + 1; r < size; r++ {
			dials.Go(func() error {
				err := m.meetOne(ctx, r)
				if err != nil && ctx.Err() == nil {
					m.abort(err) // those who come still hear why, and look no further
				}
				return err
			})
		}
		come <- dials.Wait()
	}()
	look := time.NewTicker(endTime)
	defer look.Stop()
	var failed error
	for dialled := false; !dialled || len(missing) > 0; {
		select {
		case r := <-m.joined:
			delete(missing, r)
		case failed = <-come:
			dialled = true
			if f := m.config.dialled; f != nil && failed == nil {
				f(me)
			}
		case <-look.C:
			ended := m.ended(missing)
			if len(ended) == 0 {
				break
			}
			m.abort(endedError(ended)) // those who come still hear why; it may be a consequence of what is known
			if dialled && len(ended) == len(missing) {
				return m.failure()
			}
		case <-done: // one has come and failed, or is lost
			done = nil
			late = time.After(cmp.Or(m.config.word, wordTime))
		case <-late:
			lost := m.failure()
			cancel()
			if !dialled {
				<-come
			}
			return lost
		case <-ctx.Done():
			if !dialled {
				failed = <-come
			}
			if failed == nil {
				failed = m.missing(missing, context.Cause(ctx))
			}
			return failed
		}
	}
	if known := m.failure(); failed != nil && known != nil { // which came first
		return known
	}
	return failed
}

// meetOne dials the control connection to a replica.
func (m *mesh) meetOne(ctx context.Context, r int) error {
	conn, err := m.dial(ctx, r, handshake.Control, 0)
	if err != nil {
		if short := (*handshake.ShortError)(nil); errors.As(err, &short) && short.Err != nil {
			return m.cannotConnect(r, short)
		}
		return fmt.Errorf("replica %d: %w", r, err)
	}
	var near *neighbour
	if m.shares(r) {
		near, err = m.swap(ctx, conn, r)
	}
	if err != nil {
		conn.Close()
		return err
	}
	m.at(r).start(conn, nil, near)
	return nil
}

// missing says which replicas have not come.
func (m *mesh) missing(replicas map[int]bool, why error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Errorf("replicas %v have not come: %w%s", slices.Sorted(maps.Keys(replicas)), why, m.refusal)
}

// ended are the replicas that have not come and never will, ascending: their processes have ended.
func (m *mesh) ended(missing map[int]bool) (ended []int) {
	for _, r := range slices.Sorted(maps.Keys(missing)) {
		if c := m.at(r); c.process.ended(0) && !c.isReserved() { // in this order: it may come, and end then
			ended = append(ended, r)
		}
	}
	return ended
}

// endedError names all of them: one may have ended for another.
func endedError(replicas []int) error {
	if len(replicas) == 1 {
		return fmt.Errorf("replica %d has not come: its process has ended", replicas[0])
	}
	return fmt.Errorf("replicas %v have not come: their processes have ended", replicas)
}

// connect makes the link of a lane to a replica.
func (g *generation) connect(place int, lane uint64) {
	m := g.mesh
	m.goes(func() {
		if m.shares(place) {
			g.connectRings(place, lane)
			return
		}
		conn, err := m.dial(m.ctx, place, handshake.Data, lane)
		if err == nil {
			g.attach(place, lane, conn)
			return
		}
		var timeout *handshake.TimeoutError
		var closed *handshake.ClosedError
		short, isShort := errors.AsType[*handshake.ShortError](err)
		switch {
		case isShort && short.Err != nil:
			g.node.Abort(m.cannotConnect(place, short))
		case isShort, errors.As(err, &timeout), errors.As(err, &closed):
			g.lost(place, err)
		default:
			// The word of a replica that cannot be reached, which may have left or aborted, is on its way: the lane
			// waits for it.
			g.give(place, lane, brokenLink{err})
		}
	})
}

// cannotConnect is the error of a replica that has no descriptor for a connection.
func (m *mesh) cannotConnect(peer int, short *handshake.ShortError) error {
	return fmt.Errorf("replica %d cannot connect with replica %d: %w", m.me(), m.number(peer), short)
}
