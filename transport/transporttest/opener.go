package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"gogcl.dev/transport"
)

// openerTests are for endpoints that offer transport.Opener beside transport.PeerMemory.
var openerTests = []test{
	{"NotShared", (*suite).notShared},
	{"NoBytes", (*suite).noBytes},
	{"OpenedAnew", (*suite).openedAnew},
	{"OpenOnLanes", (*suite).openOnLanes},
	{"OpenAfterClose", (*suite).openAfterClose},
}

// hideout is memory that cannot be laid open: size bytes, until shut is called.
type hideout struct {
	name string
	of   func(e near, size int) (b []byte, shut func(), err error)
}

func (h hideout) String() string { return h.name }

var hideouts = []hideout{
	{"ordinary", func(_ near, size int) ([]byte, func(), error) { return make([]byte, size), func() {}, nil }},
	{"begins outside", func(e near, size int) ([]byte, func(), error) {
		around, shut, err := e.openMiddle()
		return around[os.Getpagesize()-1:][:size], shut, err
	}},
	{"ends outside", func(e near, size int) ([]byte, func(), error) {
		around, shut, err := e.openMiddle()
		return around[2*os.Getpagesize()-size+1:][:size], shut, err
	}},
	{"shut", func(e near, size int) ([]byte, func(), error) {
		around, shut, err := e.openMiddle()
		shut()
		return around[os.Getpagesize():][:size], func() {}, err
	}},
}

// openMiddle returns three pages, of which the one in the middle is open until shut is called.
func (e near) openMiddle() (around []byte, shut func(), err error) {
	page := os.Getpagesize()
	around = pagesOf(3 * page)
	middle := around[page : 2*page : 2*page]
	if err := e.room.opener.OpenPages(middle); err != nil {
		return around, func() {}, err
	}
	return around, func() { e.room.opener.ShutPages(middle) }, nil
}

// place is one of the buffers of a Memory.
type place struct {
	name string
	of   func(m *transport.Memory) *[]byte
}

var places = []place{
	{"In", func(m *transport.Memory) *[]byte { return &m.In }},
	{"Out", func(m *transport.Memory) *[]byte { return &m.Out }},
	{"Scratch", func(m *transport.Memory) *[]byte { return &m.Scratch }},
	{"Ins[0]", func(m *transport.Memory) *[]byte { return &m.Ins[0] }},
	{"Ins[2]", func(m *transport.Memory) *[]byte { return &m.Ins[2] }},
	{"Outs[0]", func(m *transport.Memory) *[]byte { return &m.Outs[0] }},
	{"Outs[1]", func(m *transport.Memory) *[]byte { return &m.Outs[1] }},
}

// notShared has one member lay open what cannot be, in each place. All get ErrNotShared, nothing is touched, another
// call of the same number goes by messages, and the next Share works.
func (s *suite) notShared(t *testing.T) {
	cases(t, "memory", hideouts, func(t *testing.T, h hideout) {
		s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
			s.peers(t, s.connect(t, n), func(e near) error { return everybody(n).hideEach(e, h) })
		})
	})
}

// hideEach has each member hide a buffer in each place.
func (g group) hideEach(e near, h hideout) error {
	seq := 0
	for _, who := range g.members {
		for _, p := range places {
			for _, rounds := range [][]int{{7}, {len(g.members), 0, 1}} {
				if err := g.hide(e, h, p, who, seq, rounds); err != nil {
					return fmt.Errorf("%s of replica %d is hidden from %d rounds: %w", p.name, who, len(rounds), err)
				}
				if err := g.anyShare(e, seq+1); err != nil {
					return fmt.Errorf("the Share after %s of replica %d was hidden: %w", p.name, who, err)
				}
				seq += 2
			}
		}
	}
	return nil
}

// hide has a replica hide one buffer of all.
func (g group) hide(e near, h hideout, p place, who, seq int, rounds []int) error {
	defer e.borrowing()()
	mine := transport.Memory{In: e.buf(64), Out: e.buf(64), Scratch: e.buf(64),
		Ins: [][]byte{e.buf(64), e.buf(64), e.buf(64)}, Outs: [][]byte{e.buf(64), e.buf(64)}}
	if e.Rank() == who {
		b, shut, err := h.of(e, 64)
		if err != nil {
			return err
		}
		defer shut()
		*p.of(&mine) = b
	}
	return g.unshared(e, mine, seq, rounds)
}

// anyShare carries out one Share, of one round or of several, and checks it.
func (g group) anyShare(e near, seq int) error {
	if seq%4 == 1 {
		return g.sharing(e, 5000, seq)
	}
	return g.stepping(e, 5000, seq, 1)
}

// unshared has Share return ErrNotShared, and another call of the same number go by messages.
func (g group) unshared(e near, mine transport.Memory, seq int, rounds []int) error {
	bufs := slices.Concat([][]byte{mine.In, mine.Out, mine.Scratch}, mine.Ins, mine.Outs)
	for k, b := range bufs {
		fill(b, origin{e.Rank(), k, int(g.id), seq})
	}
	var touched atomic.Bool
	work := workFunc(func([]transport.Memory, int, int) { touched.Store(true) })
	switch err := e.Share(background, g.call(seq), g.members, mine, rounds, work); {
	case err != transport.ErrNotShared:
		return fmt.Errorf("got from Share %v, want ErrNotShared as it is", err)
	case touched.Load():
		return errors.New("a piece is done of a Share that returns ErrNotShared")
	case e.Err() != nil:
		return fmt.Errorf("after ErrNotShared: %w", e.Err())
	}
	for k, b := range bufs {
		if err := same(fmt.Sprintf("buffer %d after ErrNotShared", k), b,
			made(len(b), origin{e.Rank(), k, int(g.id), seq})); err != nil {
			return err
		}
	}
	c := g.call(seq)
	c.Digest++
	c.Method++
	if err := shiftIn(e, c, int(g.id), seq); err != nil {
		return fmt.Errorf("another call of the number by messages: %w", err)
	}
	return nil
}

// noBytes has all lay open buffers of no bytes, which may lie anywhere, and no others.
func (s *suite) noBytes(t *testing.T) {
	s.replicas(t, []int{1, 2, 3, 5}, func(t *testing.T, n int) {
		s.peers(t, s.connect(t, n), func(e near) error {
			around, shut, err := e.openMiddle()
			if err != nil {
				return err
			}
			shut()
			mine := transport.Memory{Out: []byte{}, Scratch: around[:0], Ins: [][]byte{nil, around[100:100], {}},
				Outs: [][]byte{around[len(around)/2:][:0]}}
			return everybody(n).shareNothing(e, mine)
		})
	})
}

// shareNothing carries out Shares of buffers of no bytes.
func (g group) shareNothing(e near, mine transport.Memory) error {
	for seq, rounds := range [][]int{{len(g.members)}, {len(g.members), len(g.members)}} {
		var wrong, pieces atomic.Int64
		work := workFunc(func(all []transport.Memory, _, _ int) {
			pieces.Add(1)
			for _, m := range all {
				if len(m.In)+len(m.Out)+len(m.Scratch)+len(slices.Concat(m.Ins...))+len(slices.Concat(m.Outs...)) > 0 ||
					len(m.Ins) != len(mine.Ins) || len(m.Outs) != len(mine.Outs) {
					wrong.Add(1)
				}
			}
		})
		if err := e.Share(background, g.call(seq), g.members, mine, rounds, work); err != nil {
			return fmt.Errorf("buffers of no bytes, %d rounds: %w", len(rounds), err)
		}
		if wrong.Load() > 0 || len(rounds) == 2 && pieces.Load() != 2 {
			return fmt.Errorf("%d pieces, %d buffers that are others than laid open", pieces.Load(), wrong.Load())
		}
	}
	return nil
}

// shareTwo has everybody's Out written by others, a byte for each piece. It lies across the bound of two pages that
// were opened together.
func (g group) shareTwo(e transport.PeerMemory, pages []byte, seq int) error {
	n := len(g.members)
	out := pages[os.Getpagesize()-1:][:n+1]
	work := workFunc(func(all []transport.Memory, _, i int) {
		for _, m := range all {
			m.Out[i] = byte(seq + i)
		}
	})
	mine := transport.Memory{Out: out}
	if err := e.Share(background, g.call(seq), g.members, mine, []int{n + 1}, work); err != nil {
		return err
	}
	for i, b := range out {
		if b != byte(seq+i) {
			return fmt.Errorf("byte %d is %d after Share, want %d", i, b, byte(seq+i))
		}
	}
	return nil
}

// openedAnew opens the same pages again and again: they are zeros, are shared, are shut, are not shared.
func (s *suite) openedAnew(t *testing.T) {
	s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
		s.peers(t, s.connect(t, n), func(e near) error {
			pages := pagesOf(2 * os.Getpagesize())
			for k := range s.few(50) {
				if err := everybody(n).openAndShut(e, pages, 2*k); err != nil {
					return fmt.Errorf("pages opened for time %d: %w", k, err)
				}
			}
			return nil
		})
	})
}

func (g group) openAndShut(e near, pages []byte, seq int) error {
	scribble(pages)
	if err := e.room.opener.OpenPages(pages); err != nil {
		return err
	}
	zeros := same("pages after OpenPages", pages, make([]byte, len(pages)))
	err := errors.Join(zeros, g.shareTwo(e, pages, seq))
	e.room.opener.ShutPages(pages)
	if err != nil {
		return err
	}
	return g.unshared(e, transport.Memory{In: pages[:100], Out: pages[100:]}, seq+1, []int{len(g.members)})
}

// openOnLanes has an endpoint open pages for a Dup, which shuts them, and the Dup for the endpoint.
func (s *suite) openOnLanes(t *testing.T) {
	s.replicas(t, []int{2, 3}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		other := s.lanes(t, eps)
		s.peers(t, eps, func(e near) error {
			dup := s.near(at(other, e.Rank()))
			for k, lane := range [][2]near{{e, dup}, {dup, e}, {e, e}, {dup, dup}} {
				pages := pagesOf(2 * os.Getpagesize())
				if err := lane[0].room.opener.OpenPages(pages); err != nil {
					return err
				}
				err := everybody(n).shareTwo(lane[1], pages, k)
				lane[1].room.opener.ShutPages(pages)
				if err != nil {
					return fmt.Errorf("case %d: %w", k, err)
				}
			}
			return nil
		})
	})
}

// openAfterClose has pages open when the endpoint closes: they stay the caller's, and can be shut. No more are opened.
func (s *suite) openAfterClose(t *testing.T) {
	s.replicas(t, []int{1, 2, 3}, func(t *testing.T, n int) {
		s.peers(t, s.connect(t, n), func(e near) error {
			pages := pagesOf(2 * os.Getpagesize())
			if err := e.room.opener.OpenPages(pages); err != nil {
				return err
			}
			if err := everybody(n).shareTwo(e, pages, 0); err != nil {
				return err
			}
			fill(pages, origin{1, 2, 3, 4})
			before := bytes.Clone(pages)
			if err := e.Close(); err != nil {
				return err
			}
			if err := same("open pages after Close", pages, before); err != nil {
				return err
			}
			e.room.opener.ShutPages(pages)
			fill(pages, origin{1, 2, 3, 4})
			if err := same("pages that are shut after Close", pages, before); err != nil {
				return err
			}
			if err := e.room.opener.OpenPages(pages); err == nil {
				e.room.opener.ShutPages(pages)
				return errors.New("an endpoint that is closed opens pages")
			}
			return nil
		})
	})
}
