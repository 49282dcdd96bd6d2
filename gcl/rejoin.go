package gcl

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

// Change says how the Comm that Rejoin returns differs from the one before. It is the same on all replicas, but for
// Left.
type Change struct {
	Generation int         // 1 is that of the first Rejoin
	Replicas   []int       // by replica, ascending: its number in the Comm before; not of those that have come
	Left       []Departure // by number in the Comm before, ascending
	Committed  uint64      // the steps that are done: see Comm.Commit

	// Came are the replicas that have come, now or before, and have voted for no step since, ascending: they are the
	// last, and have no state until somebody gives it to them.
	Came []int

	// Givers are the replicas, ascending, that know by their own Commit that those steps are done. There is one at
	// least.
	Givers []int
}

// Change is how the members of c differ from those of the Comm before: what Rejoin has returned with it. A newcomer
// gets the same with its first Comm, without Replicas and Left, of which it knows nothing. false: c is the first Comm
// of its job.
func (c *Comm) Change() (Change, bool) {
	if c.check() != nil || c.conn.root().change == nil {
		return Change{}, false
	}
	return *c.conn.root().change, true
}

// Departure is a replica that is not in the Comm of Rejoin.
type Departure struct {
	Replica int       // its number in the Comm before
	When    time.Time // this replica has learnt of it
	Why     error     // a *PeerError, as this replica has learnt it
}

// Rejoin goes on without the replicas that are gone, and with a newcomer that waits. It aborts c on all replicas, if it
// is not aborted yet, agrees with those that are still there on who these are, and returns a new Comm of them, in their
// order. One newcomer at a time is the last of them. So the bits of a reduction are those of a new job of as many
// replicas. A replica is gone when it has closed its Comm, has ended, or has been silent for too long.
//
// Each replica that is left has to call it, on a Comm of all replicas on their first connection: a Group of fewer, a
// Dup, and a Comm within Start or Commit are errors at once. It waits for those that have not called it, until they do
// or are gone, or ctx is done. The context of a body of Run is done after the first failure, but with WithElastic.
//
// The new Comm has the name and the options of c, and what c was made with: the methods of WithMethod, WithStallAfter
// and so on. opts go before that, and are the same on all replicas. A topology or network of another number of replicas
// no longer counts: without one replicas sit as if none had been given. To give one a program must know how many
// replicas are left; another number is an error, as for New. Options that do not fit those that are left, as
// Implementation Hybrid where link domains hold different numbers, are an *OptionError.
//
// Where newcomers may come, by Elastic.Max, opts and a Comm with other options than those of Run or Join are an error:
// newcomers have those that the job began with.
//
// c is closed, with all Comms, Dups and Batches made of it, and functions given to Start are waited for: make them
// anew. Memory of Alloc may still be used. The caller closes the new Comm, but in a body of Run, which closes it.
//
// These errors leave c as it was: one about the arguments, one of a Commit in progress, and an errors.ErrUnsupported of
// a transport that cannot do it, as MPI. After any other c is closed, and this replica is gone for the others:
// transport.ErrLeftBehind, a *transport.MinorityError, one that fewer than Elastic.Min are left, or only some that have
// come and have not got the state of the steps, an ErrClosed, and the cause of ctx.
func Rejoin(ctx context.Context, c *Comm, opts ...CommOption) (*Comm, Change, error) {
	if err := c.checkWhole(ctx, "Rejoin"); err != nil {
		return nil, Change{}, err
	}
	endpoint, ok := c.conn.Endpoint.(transport.Rejoiner)
	if !ok {
		return nil, Change{}, errorf("Rejoin: the transport %q cannot go on without replicas that are gone: %w",
			c.group.link.Transport, errors.ErrUnsupported)
	}
	began, err := c.conn.override.on(c.conn.made.options)
	if err != nil {
		return nil, Change{}, err
	}
	if e := c.conn.made.elastic; e != nil && e.Max > 0 && (len(opts) > 0 || c.options != began) {
		return nil, Change{}, newError("Rejoin with other options than those that the job began with: newcomers would not " +
			"know them: want a Comm with those of Run or Join, and none given to Rejoin, or an Elastic without Max")
	}
	cfg, err := c.conn.made.again(c.options, opts)
	if err != nil {
		return nil, Change{}, err
	}
	if err := c.conn.steps.begin(rejoined, "Rejoin"); err != nil {
		return nil, Change{}, err
	}
	next, change, err := c.rejoin(ctx, endpoint, cfg)
	_ = c.conn.close(false) // what came of its calls they have said
	if err != nil {
		return nil, Change{}, c.otherFailure(ctx, "rejoin", err)
	}
	return next, change, nil
}

// checkWhole returns an error for a Comm that is not one of all replicas on their first connection.
func (c *Comm) checkWhole(ctx context.Context, what string) error {
	switch {
	case c.check() != nil || ctx == nil:
		return errorf("%s needs a Comm and a context", what)
	case c.started != nil || c.inTurnOf(ctx) != c:
		return errorf("%s inside a function given to Start", what)
	case c.conn.first != nil:
		return errorf("%s of a Dup: want a Comm of the first connection", what)
	case c.Size() != c.Replicas():
		return errorf("%s of a group of %d of %d replicas: want a Comm of all", what, c.Size(), c.Replicas())
	}
	return nil
}

// again is with what a communicator is made anew that has these options. Where its replicas sit, and what connects
// them, is only what opts say.
func (c *config) again(o Options, opts []CommOption) (*config, error) {
	next := *c
	next.options, next.own, next.flights = o, nil, nil
	next.topology, next.machine, next.network, next.prices = topology.Topology{}, false, nil, nil
	next.endpoints = nil
	if err := next.take(opts); err != nil {
		return nil, err
	}
	if err := next.noEndpoints("Rejoin makes its own endpoint"); err != nil {
		return nil, err
	}
	for _, own := range c.own {
		if own.isNew(next.own) {
			next.own = append(next.own, own)
		}
	}
	return &next, nil
}

// rejoin agrees with the others and makes the new Comm.
func (c *Comm) rejoin(ctx context.Context, endpoint transport.Rejoiner, cfg *config) (*Comm, Change, error) {
	agreed, err := endpoint.Rejoin(ctx, c.conn.steps.note())
	if err != nil {
		return nil, Change{}, err
	}
	change := changeOf(agreed, endpoint.Err())
	var next *Comm
	if err = change.lost(); err == nil {
		next, err = c.successor(agreed.Endpoint, cfg, &change)
	}
	if err != nil {
		agreed.Endpoint.Abort(err)
		return nil, Change{}, errors.Join(err, agreed.Endpoint.Close())
	}
	return next, change, nil
}

// blankNote is in the note of a replica that has come, and has voted for no step since.
const blankNote = 1 << 63

// note is what the others are told of the steps.
func (s *steps) note() uint64 {
	if s.blank {
		return s.made | blankNote
	}
	return s.made
}

// lost says that nobody is left who has the state.
func (c *Change) lost() error {
	if len(c.Givers) > 0 {
		return nil
	}
	return errorf("only replicas are left that have come and have not got the state of the %d steps that are done: "+
		"start the job again, from its last checkpoint", c.Committed)
}

// changeOf is a Change by what a transport says of it, and by why the endpoint before has failed.
func changeOf(agreed *transport.Rejoined, failure error) Change {
	change := Change{Generation: agreed.Generation, Replicas: agreed.Replicas}
	for _, note := range agreed.Notes {
		change.Committed = max(change.Committed, note&^blankNote)
	}
	for r, note := range agreed.Notes {
		switch {
		case slices.Contains(agreed.Came, r), note&blankNote != 0:
			change.Came = append(change.Came, r)
		case note == change.Committed:
			change.Givers = append(change.Givers, r)
		}
	}
	if change.Committed == 0 && len(change.Givers) == 0 {
		change.Givers = change.Came // all begin with the state of no steps
	}
	abort := (*transport.AbortError)(nil)
	errors.As(failure, &abort)
	for _, g := range agreed.Gone {
		why := g.Why
		if _, closed := why.(*transport.ClosedError); closed && abort != nil && abort.Replica == g.Replica {
			why = abort // it has said why before it left
		}
		change.Left = append(change.Left, Departure{g.Replica, g.When, &PeerError{Replica: g.Replica, Err: why}})
	}
	return change
}

// successor makes the Comm of the next generation.
func (c *Comm) successor(endpoint transport.Endpoint, cfg *config, change *Change) (*Comm, error) {
	n, before := endpoint.Size(), c.conn.made
	if cfg.elastic != nil && n < cfg.elastic.Min {
		return nil, errorf("%d of %d replicas are left, want %d or more by WithElastic", n, c.Replicas(),
			cfg.elastic.Min)
	}
	if n == c.Replicas() && len(change.Came) == 0 && !cfg.machine && cfg.network == nil {
		cfg.topology, cfg.machine, cfg.network = before.topology, before.machine, before.network
	}
	if err := cfg.fit(n); err != nil {
		return nil, err
	}
	if err := cfg.place(endpoint); err != nil {
		return nil, err
	}
	cfg.nextRun(change)
	next, err := newComm(endpoint, cfg)
	if err != nil {
		return nil, err
	}
	next = next.Named(c.Name())
	next.begins(change)
	if next.conn.body = c.conn.body; next.conn.body != nil {
		if next.Replica() != c.Replica() {
			next.conn.body = pprof.WithLabels(c.conn.body, pprof.Labels(labelReplica, strconv.Itoa(next.Replica())))
		}
		next.conn.flights.Body(next.Replica())
	}
	next.conn.newest = c.conn.newest
	next.conn.newest.Store(next)
	next.beSeen()
	return next, nil
}

// nextRun names what is a job of its own for who asks: those that are left.
func (c *config) nextRun(change *Change) {
	if c.run != "" {
		first, _, _ := strings.Cut(c.run, "+")
		c.run = fmt.Sprintf("%s+%d", first, change.Generation)
	}
}

// begins notes the Change that a Comm of all replicas begins with.
func (c *Comm) begins(change *Change) {
	c.conn.change = change
	c.conn.steps.made, c.conn.steps.blank = change.Committed, slices.Contains(change.Came, c.Replica())
}

// newcomer makes the Comm of a replica that has come to a job that runs.
func (c *config) newcomer(joined *transport.Rejoined) (*Comm, error) {
	next, err := c.again(c.options, nil)
	if err != nil {
		return nil, err
	}
	if err := next.fit(joined.Endpoint.Size()); err != nil {
		return nil, err
	}
	if err := next.place(joined.Endpoint); err != nil {
		return nil, err
	}
	change := changeOf(joined, nil)
	if err := change.lost(); err != nil {
		return nil, err
	}
	next.nextRun(&change)
	comm, err := newComm(joined.Endpoint, next)
	if err != nil {
		return nil, err
	}
	comm.begins(&change)
	return comm, nil
}

// latest is the last Comm that Rejoin has made of c, or else c.
func (c *Comm) latest() *Comm {
	if next := c.conn.root().newest.Load(); next != nil {
		return next
	}
	return c
}
