package remote

import (
	"errors"
	"fmt"
	"sync"
)

// A keeper keeps the entries of one Spec. guarded has checked all arguments and keeps apart what must not run at the
// same time: two stores of an entry, a load and a store of one, and grow or close and anything.
type keeper interface {
	load(entry int, dst []byte) error
	store(entry int, src []byte) error
	stored(entry int) bool
	grow(entries int) error // to more than there are
	lost() []int
	sync() error
	close() error
}

// stripes is how many locks share the entries, entry i having lock i % stripes. Two that meet in one lock only wait
// for each other, so it need not be large: more than the loads and stores that one replica has in flight.
const stripes = 16

// guarded is Entries over a keeper.
type guarded struct {
	spec  Spec // as opened; the number of entries is in count
	bytes int  // of an entry

	// A Store holds the lock of its entry, and a Load shares it, while bytes are copied, though that may read a file:
	// the entry would else be half old, and the mapping it is read from might go. A Store or Load of another entry runs
	// beside it. Grow and Close hold all, in order.
	locks  [stripes]sync.RWMutex
	count  int    // of entries; guarded by locks, all to write, any to read
	keeper keeper // nil when closed; guarded like count
}

var errClosed = errors.New("the entries are closed")

func newGuarded(spec Spec, bytes int, k keeper) *guarded {
	spec.Shape, spec.Whole, spec.Names = spec.Shape.Clone(), spec.Whole.Clone(), nil
	return &guarded{spec: spec, bytes: bytes, count: spec.Entries, keeper: k}
}

func (g *guarded) lock(entry int) *sync.RWMutex { return &g.locks[uint(entry)%stripes] }

func (g *guarded) lockAll() {
	for i := range g.locks {
		g.locks[i].Lock()
	}
}

func (g *guarded) unlockAll() {
	for i := range g.locks {
		g.locks[i].Unlock()
	}
}

// check is called with the entry's lock held.
func (g *guarded) check(entry, length int) error {
	switch {
	case g.keeper == nil:
		return errClosed
	case entry < 0 || entry >= g.count:
		return fmt.Errorf("there is no such entry: there are %d, from 0 on", g.count)
	case length != g.bytes:
		return fmt.Errorf("%d bytes, but an entry has %d: dtype %v, shape %v",
			length, g.bytes, g.spec.DType, g.spec.Shape)
	}
	return nil
}

func (g *guarded) Load(entry int, dst []byte) error {
	l := g.lock(entry)
	l.RLock()
	defer l.RUnlock()
	err := g.check(entry, len(dst))
	if err == nil {
		err = g.keeper.load(entry, dst)
	}
	if err != nil {
		return fmt.Errorf("remote: load entry %d of %v: %w", entry, g.spec, err)
	}
	return nil
}

func (g *guarded) Store(entry int, src []byte) error {
	l := g.lock(entry)
	l.Lock()
	defer l.Unlock()
	err := g.check(entry, len(src))
	if err == nil {
		err = g.keeper.store(entry, src)
	}
	if err != nil {
		return fmt.Errorf("remote: store entry %d of %v: %w", entry, g.spec, err)
	}
	return nil
}

func (g *guarded) Grow(entries int) error {
	g.lockAll()
	defer g.unlockAll()
	var err error
	switch {
	case g.keeper == nil:
		err = errClosed
	case entries < g.count:
		err = fmt.Errorf("there are %d entries already", g.count)
	case entries > g.count:
		err = g.keeper.grow(entries)
	}
	if err != nil {
		return fmt.Errorf("remote: grow %v to %d entries: %w", g.spec, entries, err)
	}
	g.count = entries
	return nil
}

func (g *guarded) Stored(entry int) bool {
	l := g.lock(entry)
	l.RLock()
	defer l.RUnlock()
	return g.keeper != nil && entry >= 0 && entry < g.count && g.keeper.stored(entry)
}

func (g *guarded) Lost() []int {
	g.locks[0].RLock()
	defer g.locks[0].RUnlock()
	if g.keeper == nil {
		return nil
	}
	return g.keeper.lost()
}

func (g *guarded) Sync() error {
	g.locks[0].RLock()
	defer g.locks[0].RUnlock()
	err := errClosed
	if g.keeper != nil {
		err = g.keeper.sync()
	}
	if err != nil {
		return fmt.Errorf("remote: sync %v: %w", g.spec, err)
	}
	return nil
}

func (g *guarded) Close() error {
	g.lockAll()
	defer g.unlockAll()
	err := errClosed
	if g.keeper != nil {
		err = g.keeper.close()
		g.keeper = nil
	}
	if err != nil {
		return fmt.Errorf("remote: close %v: %w", g.spec, err)
	}
	return nil
}
