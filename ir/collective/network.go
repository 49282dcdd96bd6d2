package collective

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// transports is how the replicas of a program's sessions are connected.
type transports struct {
	connect func(replicas int) ([]transport.Endpoint, error)
	said    bool         // by UseTransport
	open    atomic.Int32 // sessions that are connected
}

type transportsKey struct{}

func transportsOf(p *ir.Program) *transports {
	return p.Attached(transportsKey{}, func() any { return &transports{connect: inproc.New} }).(*transports)
}

// UseTransport says how the replicas of a program are connected; without it, in process. connect is called once for
// each session that has collectives, when it is made, and returns an endpoint for each replica, in the order of their
// ranks, which the session closes. Errors, which stick to the program: no function, a session that is connected
// already. What connect returns in place of such endpoints is an error of the session.
func UseTransport(p *ir.Program, connect func(replicas int) ([]transport.Endpoint, error)) {
	switch {
	case connect == nil:
		p.Fail("use transport", errors.New("no function that connects the replicas"))
	case transportsOf(p).open.Load() > 0:
		p.Fail("use transport", errors.New("a session of the program is connected"))
	default:
		transportsOf(p).connect, transportsOf(p).said = connect, true
	}
}

// networkKey is where a session has its network, and the one for what runs beside the replicas.
type networkKey struct{ beside bool }

// network is the replicas' connections to each other.
type network struct {
	of    *transports   // nil for a second one
	job   bool          // the other replicas are in other processes
	comms []*gcl.Comm   // by replica; nil: it is in another process
	used  [][]*gcl.Comm // by replica: of the groups that there are collectives of, each once, in the same order
}

// networkOf finds the network that an operation uses, or opens it.
func (o *op) networkOf(m *ir.Memory) (*network, error) {
	shared, err := m.Share(networkKey{}, func(replicas int) (ir.Shared, error) {
		ctx, job := m.Job()
		return transportsOf(o.program).openNetwork(ctx, job, replicas)
	})
	if err == nil && m.Beside {
		first := shared.(*network)
		shared, err = m.Share(networkKey{beside: true}, func(int) (ir.Shared, error) { return first.second() })
	}
	if err != nil {
		return nil, err
	}
	return shared.(*network), nil
}

// openNetwork connects the replicas of a session.
func (t *transports) openNetwork(ctx context.Context, of ir.Job, replicas int) (ir.Shared, error) {
	if of != nil {
		j, is := of.(job)
		switch {
		case !is:
			return nil, errOtherJob
		case t.said:
			return nil, errors.New("UseTransport and a session in a job: the job connects its processes")
		}
		n, err := j.network(ctx)
		if err != nil {
			return nil, err
		}
		n.of = t
		t.open.Add(1)
		return n, nil
	}
	endpoints, err := t.connect(replicas)
	if err == nil {
		err = check(endpoints, replicas)
	}
	n := &network{of: t, used: make([][]*gcl.Comm, replicas)}
	t.open.Add(1)
	for _, e := range endpoints {
		var c *gcl.Comm
		if err == nil {
			c, err = gcl.New(e)
		}
		switch {
		case err == nil:
			n.comms = append(n.comms, c)
		case e != nil:
			err = errors.Join(err, e.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// check returns an error unless there is an endpoint for each replica.
func check(endpoints []transport.Endpoint, replicas int) error {
	if len(endpoints) != replicas {
		return fmt.Errorf("the transport has %d endpoints for %d replicas", len(endpoints), replicas)
	}
	for i, e := range endpoints {
		switch {
		case e == nil:
			return fmt.Errorf("the transport has no endpoint for replica %d", i)
		case e.Rank() != i || e.Size() != replicas:
			return fmt.Errorf("endpoint %d of the transport is that of replica %d of %d, want %d of %d",
				i, e.Rank(), e.Size(), i, replicas)
		}
	}
	return nil
}

// second opens another connection between the same replicas, which does not wait for the first. The first error ends
// the others' wait, and is the one returned.
func (n *network) second() (ir.Shared, error) {
	comms := make([]*gcl.Comm, len(n.comms))
	opening, ctx := errgroup.WithContext(context.Background())
	for r, c := range n.comms { // they may wait for each other
		if c == nil {
			continue
		}
		opening.Go(func() (err error) {
			comms[r], err = c.Dup(ctx)
			return err
		})
	}
	err := opening.Wait()
	out := &network{job: n.job, comms: comms, used: make([][]*gcl.Comm, len(n.comms))}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// use notes that a replica's group has collectives.
func (n *network) use(replica int, c *gcl.Comm) {
	members := c.Members()
	if !slices.ContainsFunc(n.used[replica], func(o *gcl.Comm) bool { return slices.Equal(o.Members(), members) }) {
		n.used[replica] = append(n.used[replica], c)
	}
}

var errClosed = errors.New("the session is closed")

// Finish implements ir.Finisher: the replica meets the others of each of its groups, which fails if one of them has
// made a call there that this one has not.
func (n *network) Finish(ctx context.Context, replica int) error {
	for _, c := range n.used[replica] {
		if err := c.Named("end of the run").Barrier(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close implements ir.Shared. What replicas still owed each other has been the error of a run.
func (n *network) Close() error {
	if n.of != nil {
		n.of.open.Add(-1)
	}
	var errs []error
	for _, c := range n.comms {
		switch {
		case c == nil:
			continue
		case !n.job: // which would end all of the job
			c.Abort(errClosed)
		}
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
