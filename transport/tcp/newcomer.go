package tcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/agree"
	"gogcl.dev/transport/internal/rendezvous"
	"gogcl.dev/transport/internal/segment"
)

// A newcomer has a place greater than those of all who are in the job. It dials a control connection to each of them,
// says where it is, and is told who is in the job, again with each generation that begins without it.
//
//	newcomer                                member
//	control connection, introducing me ──▶  may take it in when replicas rejoin
//	                                   ◀──  introducing each member, and what package agree tells newcomers
//	                                   ◀──  it is taken in: nothing that follows is heard until all members say so

// arrival is how far a newcomer is. Guarded by mesh.life, but for over.
type arrival struct {
	newcomer *agree.Newcomer
	over     chan struct{} // closed when it is a member, or can no longer become one
	joined   *transport.Rejoined
	err      error
}

// waits reports whether a replica is a newcomer that is neither in the job nor has given up. The zero arrival is none.
func (a *arrival) waits() bool {
	if a == nil {
		return false
	}
	select {
	case <-a.over:
		return false
	default:
		return true
	}
}

// ends gives up, if there is an error.
func (a *arrival) ends(err error) {
	if err != nil && a.waits() {
		a.err = err
		close(a.over)
	}
}

// most is how many members a generation may have. Nobody comes where newcomers are not taken.
func (m *mesh) most() int { return cmp.Or(m.config.Most, m.config.Size) }

// reach has a newcomer connect with a member, unless it has begun to. The caller holds m.life.
func (m *mesh) reach(i introduction) {
	if i.Place == m.config.Rank || m.at(i.Place) != nil {
		return
	}
	c := m.add(i.Place)
	c.isAt(i.Address)
	c.tell(introduction{Place: m.config.Rank, Address: m.address}.message())
	m.goes(func() {
		if err := m.meetOne(m.ctx, i.Place); err != nil {
			m.lose(i.Place, err)
		}
	})
}

// nobody is why a newcomer waits for nobody any more, or nil. The caller holds m.life.
func (m *mesh) nobody(last error) error {
	parted := true
	for _, c := range m.all() {
		if c != nil && c.left.When.IsZero() {
			return nil
		}
		parted = parted && (c == nil || c.parted.Load())
	}
	if parted {
		return errOver
	}
	return fmt.Errorf("%w: %w", errNobody, last)
}

// arrive takes what a member tells a newcomer. When it has taken this one in nothing more of it is heard until the
// others have, or this one has given up. The caller holds m.life.
func (m *mesh) arrive(from int, message []byte) error {
	a := m.arrival
	d, _, err := a.newcomer.Hear(from, message)
	switch {
	case err == agree.ErrAgain:
		a.ends(err)
		return nil
	case err != nil:
		return err
	case d != nil:
		alone := m.now.Load()
		m.council = a.newcomer.Member(d, m.most(), council{m})
		g, err := m.begin(d.Generation, d.Members)
		if err != nil {
			a.ends(err)
			return nil
		}
		a.joined = &transport.Rejoined{Endpoint: g.newEndpoint(g.lane, g.where), Generation: g.number, Notes: d.Notes,
			Came: []int{len(d.Members) - 1}}
		close(alone.over)
		close(a.over)
		m.goes(func() { alone.lane.Close() })
		return nil
	case a.newcomer.TakenBy(from):
		m.awaitArrival()
	case a.newcomer.Ready():
		ready := introduction{Place: m.config.Rank, Waits: true}.message()
		for _, c := range m.all() {
			if c != nil {
				c.tell(ready)
			}
		}
	}
	return nil
}

// awaitArrival waits until this newcomer is a member or has given up. The caller holds m.life, which others may have
// meanwhile.
func (m *mesh) awaitArrival() {
	m.life.Unlock()
	defer m.life.Lock()
	select {
	case <-m.arrival.over:
	case <-m.ctx.Done():
	}
}

// Come is Join for a job that runs, whose replicas have joined it with Config.Most. It finds them at m.Where, a socket,
// and is taken in when they rejoin and there are fewer than Most: see transport.Rejoiner. The others need not be all
// that joined, nor is Config.Rank of any account; the rest of c and m is as they have it. m.Within bounds how long it
// looks for the job, and ctx how long it waits in all.
func Come(ctx context.Context, c Config, m Meeting) (*transport.Rejoined, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Most == 0 {
		return nil, errors.New("tcp: a newcomer to a job that takes none: want Config.Most as the others have it")
	}
	p, err := m.prepare(ctx, &c)
	if err != nil {
		return nil, err
	}
	desk := m.at(c, p)
	var last error
	since := time.Now()
	for wait := minWait; ; wait = min(2*wait, maxWait) {
		asking, stop := c.looking(ctx, m.Within, since)
		var r running
		var local netip.Addr
		number, err := rendezvous.Ask(asking, desk, func(answer []byte, by netip.Addr) error {
			r, local = running{}, by // of an earlier answer nothing stays
			if err := json.Unmarshal(answer, &r); err != nil {
				return fmt.Errorf("it is told something else than where a job is: %w", err)
			}
			return r.fits(&c, &m)
		})
		stop()
		if err != nil && last != nil {
			err = fmt.Errorf("%w; before that: %w", err, last)
		}
		if err != nil {
			return nil, fmt.Errorf("tcp: a newcomer: %w", err)
		}
		if number > agree.MaxID {
			return nil, fmt.Errorf("tcp: a newcomer: the job has no more numbers: %d", number)
		}
		l, err := m.listenAsNewcomer(c, p, &r, int(number), local)
		if err != nil {
			return nil, fmt.Errorf("tcp: a newcomer: %w", err)
		}
		l.desk = &deskOf{config: desk, key: r.Key, blob: r.Blob}
		looking, stop := c.looking(ctx, m.Within, since)
		joined, waited, err := l.come(ctx, looking, r.Members)
		stop()
		if last = err; !waited.IsZero() {
			since = waited
		}
		if err == nil || ctx.Err() != nil || !errors.Is(err, agree.ErrAgain) && !errors.Is(err, errNobody) {
			return joined, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// looking is a context with the time for a newcomer to find the job, from since on. 0: it has none.
func (c *Config) looking(ctx context.Context, within time.Duration, since time.Time) (context.Context,
	context.CancelFunc) {
	if within == 0 {
		return context.WithCancel(ctx)
	}
	over := fmt.Errorf("the time to find the job is over (%v)", within)
	return context.WithDeadlineCause(ctx, since.Add(within), over)
}

// How long a newcomer waits before it comes again.
const (
	minWait = 10 * time.Millisecond
	maxWait = time.Second
)

// listenAsNewcomer listens as one more replica of a job.
func (m *Meeting) listenAsNewcomer(c Config, p prepared, r *running, place int, local netip.Addr) (*Listener, error) {
	c.Rank, c.Network = 0, r.Network
	if c.Address == "" && p.secure && !p.local {
		var err error
		if c.Address, err = m.address(local); err != nil {
			return nil, err
		}
	}
	if err := checkDescriptors(c.Most, r.Network); err != nil {
		return nil, err
	}
	if r.Network.memory() {
		if err := segment.CheckRoom(c.segmentForm(), c.Most); err != nil {
			return nil, err
		}
	}
	l, err := Listen(c)
	if err != nil {
		return nil, err
	}
	first := r.Members[0].Address.Host
	if strings.HasPrefix(m.Where, "unix:") { // as in Join
		l.address.Host = first
	}
	switch here := l.address.Host == first; {
	case !here && r.Network.memory():
		l.Close()
		return nil, fmt.Errorf("on host %s, and the replicas share memory on host %s: start it there, or the job over %q",
			l.address.Host, first, Unix)
	case here:
		l.config.Crowded = c.Crowded || r.Crowded
	}
	l.config.Rank = place
	l.tryMemory()
	l.config.Secret = slices.Concat(c.Secret, r.Key)
	return l, nil
}

// awaitMembers returns when this newcomer is a member or has given up, and when it has waited with all members last, or
// the zero time. looking bounds how long it is not with all members, from the first, and ctx how long it waits. One
// that has not been with all members for twice Silence comes again: it holds one for lost, or is held for lost, and
// that one is still there.
func (m *mesh) awaitMembers(ctx, looking context.Context) (waited time.Time) {
	limit := 2 * cmp.Or(m.config.silence(), DefaultSilence)
	look := time.NewTicker(limit / 8)
	defer look.Stop()
	word := time.NewTimer(rendezvous.FirstWord)
	defer word.Stop()
	since := time.Now()
	ends := func(ctx context.Context) {
		m.life.Lock()
		defer m.life.Unlock()
		m.arrival.ends(fmt.Errorf("the job has not taken this newcomer in: %w", context.Cause(ctx)))
	}
	lost := looking.Done()
	for {
		select {
		case <-m.arrival.over:
			return waited
		case <-ctx.Done():
			ends(ctx)
		case <-lost:
			lost = nil
			m.life.Lock()
			found := m.arrival.waits() && m.arrival.newcomer.Ready()
			m.life.Unlock()
			if !found {
				ends(looking)
			}
		case <-word.C:
			word.Reset(rendezvous.EveryWord)
			if tell := m.listener.desk.config.Tell; tell != nil {
				tell("this newcomer waits for the replicas of the job to take it in, which they do when they rejoin " +
					"and there is room")
			}
		case now := <-look.C:
			m.life.Lock()
			if m.arrival.waits() && m.arrival.newcomer.Ready() {
				since, waited = now, now
			}
			if now.Sub(since) >= limit {
				m.arrival.ends(agree.ErrAgain)
			}
			m.life.Unlock()
		}
	}
}

// errOver says that a job has ended before it has taken a newcomer in.
var errOver = errors.New("tcp: a newcomer: the job has ended before it has taken this one in: all replicas have left it")

// errNobody says that no member of a job could be reached.
var errNobody = errors.New("no replica of the job can be reached")

// come makes this replica a newcomer with a number, and a member when the others rejoin. It dials who is in the job, as
// far as it has been told.
func (l *Listener) come(ctx, looking context.Context, members []introduction) (joined *transport.Rejoined,
	waited time.Time, err error) {
	c := l.config
	c.form = c.segmentForm()
	m, err := l.newMesh(c, l.address, nil)
	if err != nil {
		return nil, waited, err
	}
	m.controls.Store(new([]*control))
	m.arrival = &arrival{newcomer: agree.NewNewcomer(c.Rank), over: make(chan struct{})}
	alone, err := m.begin(0, []int{c.Rank})
	if err != nil {
		m.cancel()
		l.Close()
		m.shm.close(nil)
		return nil, waited, err
	}
	m.serve()
	m.beat()
	m.life.Lock()
	for _, i := range members {
		m.reach(i)
	}
	m.life.Unlock()
	waited = m.awaitMembers(ctx, looking)
	if m.arrival.joined == nil {
		alone.lane.Close()
	}
	return m.arrival.joined, waited, m.arrival.err
}
