package carry

import (
	"fmt"
	"sync"

	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/internal/recent"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// maxGiven bounds how many schedules a rank keeps ready for a group, by their addresses, so that a call need not read
// its schedule. Programs have a few; those whose schedules change from call to call shall not keep them all.
const maxGiven = 64

// maxProofs bounds the proofs that the replicas of a process keep, and the plans that groups have by them.
const maxProofs = 2 * maxGiven

// proofs are those of schedules that calls have come with, and the plans of groups for them.
type proofs struct {
	mu  sync.Mutex // guards all
	all recent.Map[proofKey, *proof]
}

// proofKey is the digest of a schedule, and the group of its plans; 0: none yet.
type proofKey struct {
	group  uint64
	digest [32]byte
}

// proof is made once, by whoever needs it first.
type proof struct {
	once   sync.Once // guards what follows
	proved *methods.Proved
	err    error
	set    *rounds.Set // of a group
}

// of is the entry for a key.
func (p *proofs) of(key proofKey) *proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry, known := p.all.Get(key)
	if !known {
		entry = &proof{}
		p.all.Most = maxProofs
		*p.all.Place(key) = entry
	}
	return entry
}

// proofsKey is where the proofs are in what the endpoints of a process share.
type proofsKey struct{}

// proofs are those of the replicas of this process.
func (w *Caller) proofs() *proofs {
	e, ok := w.Endpoint.(transport.Shared)
	if !ok {
		return w.Carrier.proofs
	}
	p, ok := e.Shared().Load(proofsKey{})
	if !ok {
		p, _ = e.Shared().LoadOrStore(proofsKey{}, &proofs{})
	}
	return p.(*proofs)
}

// Give proves a schedule of as many ranks as the group has, which nobody changes from then on. One that it has proved
// before it finds by its address, or if that is new by its digest. An error says why it does not prove, or that its
// messages have too few tags.
func (w *Caller) Give(s *schedule.Schedule) (*rounds.Given, error) {
	if g, known := w.Group.given.Get(s); known {
		return g, nil
	}
	all, digest := w.proofs(), s.Digest()
	entry := all.of(proofKey{0, digest})
	entry.once.Do(func() { entry.proved, entry.err = methods.ProveSchedule(s) })
	if entry.err != nil {
		return nil, entry.err
	}
	if most := min(entry.proved.Chunks, transport.MaxTag+1); entry.proved.Between > most {
		return nil, fmt.Errorf("by the schedule a rank sends another %d messages in one round of %d chunks, want at most %d",
			entry.proved.Between, entry.proved.Chunks, most)
	}
	plans := all.of(proofKey{w.Group.ID, digest})
	plans.once.Do(func() {
		spec := methods.Spec{Collective: s.Collective, Size: s.Size, Root: s.Root}
		plans.set = rounds.NewSet(rounds.Programs{Spec: spec, Proved: entry.proved}, w.Group.Members)
	})
	g := rounds.NewGiven(entry.proved, plans.set, s.NeedsApart())
	*w.Group.given.Place(s) = g
	return g, nil
}
