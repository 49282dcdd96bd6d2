package collective

import (
	"context"
	"errors"
	"slices"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/transport/inproc"
)

// networkKey is where a session has its network.
type networkKey struct{}

// network is the replicas' connections to each other.
type network struct {
	comms []*gcl.Comm   // of all replicas
	used  [][]*gcl.Comm // by replica: of the groups that there are collectives of, each once, in the same order
}

// openNetwork connects the replicas of a session.
func openNetwork(replicas int) (ir.Shared, error) {
	endpoints, err := inproc.New(replicas)
	if err != nil {
		return nil, err
	}
	n := &network{used: make([][]*gcl.Comm, replicas)}
	for _, e := range endpoints {
		c, err := gcl.New(e)
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		n.comms = append(n.comms, c)
	}
	return n, nil
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
		if err := c.Barrier(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close implements ir.Shared. What replicas still owed each other has been the error of a run.
func (n *network) Close() error {
	var errs []error
	for _, c := range n.comms {
		c.Abort(errClosed)
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
