package collective

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
)

// WithComm has a session make only the replica that c is of, where gcl.Join, gcl.RunProcess or gcl.RunOrJoin has made
// c: the other processes of the job make the others. See ir.WithJob for what differs.
//
//	err := gcl.RunProcess(ctx, gcl.JoinConfig{}, func(ctx context.Context, c *gcl.Comm) error {
//		p := program(c.Replicas())
//		s, err := ir.NewSession(p, collective.WithComm(ctx, c))
//		...
//
// The program's collectives run on connections of their own, by Dup. c itself is for what a session's other methods
// send, and those of packages remote and rts: they count as collectives on c, in the order in which they are called.
// ctx bounds these. Its error names the replicas that have not come.
//
// The session does not close c. Close the session first. An error of the session aborts c.
func WithComm(ctx context.Context, c *gcl.Comm) ir.SessionOption { return ir.WithJob(ctx, Job(c)) }

// Job is the processes that c is of, as a session has them, and package checkpoint for OpenTogether. c is a Comm of all
// replicas: one of a group is an error of what uses the job. What the job gathers counts as collectives on c.
func Job(c *gcl.Comm) ir.Job { return job{c} }

type job struct{ comm *gcl.Comm }

func (j job) Replica() int          { return j.comm.Replica() }
func (j job) Replicas() int         { return j.comm.Replicas() }
func (j job) Done() <-chan struct{} { return j.comm.Done() }
func (j job) Err() error            { return j.comm.Err() }
func (j job) Abort(cause error)     { j.comm.Abort(cause) }

// Gather implements ir.Job.
func (j job) Gather(ctx context.Context, group commgroup.Group, dst, src []byte) error {
	if err := j.whole(); err != nil {
		return err
	}
	c, err := j.comm.Group(group)
	switch {
	case err != nil:
		return err
	case len(src) == 0:
		return c.Barrier(ctx)
	}
	return gcl.AllGatherTo(ctx, c, dst, src)
}

// Alloc implements ir.Job.
func (j job) Alloc(bytes int) ([]byte, error) {
	b, err := gcl.Alloc[byte](j.comm, bytes)
	if err != nil {
		return nil, err
	}
	return b, gcl.Free(j.comm, b) // it is collected when the session is, which the connection may outlast
}

// whole is an error unless the Comm is of all replicas.
func (j job) whole() error {
	if size, all := j.comm.Size(), j.comm.Replicas(); size != all {
		return fmt.Errorf("a job by a Comm of %d of %d replicas, want one of all", size, all)
	}
	return nil
}

var errOtherJob = errors.New("the session's Job is not of collective.Job or WithComm, which connect the replicas")

// network opens a connection of the session's own.
func (j job) network(ctx context.Context) (*network, error) {
	c, err := j.comm.Dup(ctx)
	if err != nil {
		return nil, err
	}
	n := &network{job: true, comms: make([]*gcl.Comm, c.Replicas()), used: make([][]*gcl.Comm, c.Replicas())}
	n.comms[c.Replica()] = c
	return n, nil
}
