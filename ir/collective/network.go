package collective

import (
	"context"
	"errors"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/transport/inproc"
)

// networkKey is where a session has its network.
type networkKey struct{}

// network is the replicas' connections to each other.
type network struct{ comms []*gcl.Comm }

// openNetwork connects the replicas of a session.
func openNetwork(replicas int) (ir.Shared, error) {
	endpoints, err := inproc.New(replicas)
	if err != nil {
		return nil, err
	}
	n := &network{}
	for _, e := range endpoints {
		c, err := gcl.New(e)
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		n.comms = append(n.comms, c)
	}
	return n, nil
}

var errClosed = errors.New("the session is closed")

// Finish implements ir.Finisher: it meets the other replicas, which fails if one of them is in a collective that this
// one has not come to.
func (n *network) Finish(ctx context.Context, replica int) error {
	return n.comms[replica].Barrier(ctx)
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
