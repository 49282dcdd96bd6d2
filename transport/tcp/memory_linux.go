package tcp

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gogcl.dev/transport/internal/crowd"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/meeting"
	"gogcl.dev/transport/internal/segment"
	"gogcl.dev/transport/internal/stream"
)

// boundedText is the text of an error for a verdict.
func boundedText(err error) string { return handshake.Bounded(err.Error(), verdictLimit) }

// closeDescriptors closes descriptors.
func closeDescriptors(fds ...int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// give sends the descriptors of the segment and of the bell of this process.
func (s *shared) give(u *net.UnixConn) error {
	_, _, err := u.WriteMsgUnix([]byte{swapped}, unix.UnixRights(s.own.FD(), s.bell), nil)
	return err
}

// maxTaken is how many descriptors take has room for. It wants two.
const maxTaken = 8

// take takes what give of another replica sends, and checks it.
func take(u *net.UnixConn, peer int, form segment.Form) (*neighbour, error) {
	var b [1]byte
	room := make([]byte, unix.CmsgSpace(maxTaken*4))
	n, oob, flags, _, err := u.ReadMsgUnix(b[:], room)
	if err != nil {
		return nil, fmt.Errorf("its descriptors have not come: %w", err)
	}
	fds, err := rightsIn(room[:oob])
	taken := false
	defer func() {
		if !taken {
			closeDescriptors(fds...)
		}
	}()
	switch {
	case err != nil:
		return nil, err
	case flags&unix.MSG_CTRUNC != 0:
		return nil, errors.New("not all of its descriptors have come: it has sent too many, or this process has no " +
			"number left for them (ulimit -n)")
	case len(fds) != 2:
		return nil, fmt.Errorf("it has sent %d descriptors, want 2, of its memory and of what wakes it: "+
			"give all replicas transport %q", len(fds), Shm)
	case n != 1 || b[0] != swapped:
		return nil, fmt.Errorf("its descriptors have come with byte %d, want %d", b[0], swapped)
	}
	if err := segment.CheckBell(fds[1]); err != nil {
		return nil, err
	}
	m, err := segment.Open(fds[0], peer, form)
	if err != nil {
		return nil, err
	}
	taken = true
	closeDescriptors(fds[0]) // which is mapped
	return &neighbour{segment: m, bell: fds[1]}, nil
}

// rightsIn are the descriptors in the control data of a message.
func rightsIn(data []byte) (fds []int, err error) {
	if len(data) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(data)
	for i := 0; i < len(messages) && err == nil; i++ {
		var more []int
		more, err = unix.ParseUnixRights(&messages[i])
		fds = append(fds, more...)
	}
	return fds, err
}

// sleeper is the stream.Parker of a lane over shared memory. It says in this process's segment that it sleeps, looks at
// its rings once more, and waits for the bell of the process.
type sleeper struct {
	*poller
	shared *shared
	lane   uint64
	asleep *atomic.Uint64
	links  []*rings
	goal   stream.Awaited // nil: the lane waits for links only

	spins  int  // how long to look, for a goal
	watch  bool // the last look is evidence for the watch of crowds, and what follows it
	window crowd.Window
}

func (s *shared) newSleeper(lane uint64) (stream.Parker, error) {
	parker, err := newParker()
	if err != nil {
		return nil, err
	}
	p := parker.(*poller)
	if err := p.add(s.bell, unix.EPOLLIN); err != nil {
		p.Close()
		return nil, err
	}
	asleep, err := s.own.Lane(lane)
	if err != nil {
		p.Close()
		return nil, err
	}
	return &sleeper{poller: p, shared: s, lane: lane, asleep: asleep, spins: meeting.MaxSpins,
		window: s.crowd.Window()}, nil
}

// Watch implements stream.Parker.
func (s *sleeper) Watch(l stream.Link) error {
	if r, ok := l.(*rings); ok {
		s.links = append(s.links, r)
		return nil
	}
	return s.poller.Watch(l)
}

// Sees implements stream.Looker.
func (s *sleeper) Sees(l stream.Link) bool { _, ok := l.(*rings); return ok }

// Attend implements stream.Looker.
func (s *sleeper) Attend(goal stream.Awaited) { s.goal = goal }

const (
	// looksPerWindow is how often a lane looks before its wait counts as a long one, for the watch of crowds.
	looksPerWindow = 4 << 10

	// linkLooks is how many looks at a goal take as long as one at a link.
	linkLooks = 4

	// yields is how often a lane gives its processor away before it parks, where not every replica can have one. An
	// all-reduce of 8 B among four processes on two took 13 us with 2, 6.2 with 8, 4.7 with 16 and 4.3 with 32
	// (gclperf -transport shm -n 4 -sizes 8, EPYC, 2026-11-28): to be woken takes 20.
	yields = 32
)

// Look implements stream.Looker. A replica that parks is put on an idle processor when it is woken. One that gives its
// processor away instead may share one with whom it waits for, for as long as both do so.
func (s *sleeper) Look(crowded, goroutines bool, stop func() bool) bool {
	s.watch = false
	if goroutines || crowded || s.shared.crowd.Crowded() {
		for range yields {
			if s.come() {
				return true
			}
			if stop() {
				return false
			}
			if goroutines {
				runtime.Gosched()
			} else {
				stream.YieldProcessor()
			}
		}
		return false
	}
	limit, window, long, came, stopped := s.spins, looksPerWindow, time.Duration(0), false, false
	if s.goal == nil {
		each := linkLooks * max(len(s.links), 1)
		limit, window = limit/each, window/each
	}
	for looks := 0; looks < limit; looks++ {
		if came = s.come(); came {
			break
		}
		if looks%meeting.LooksPerCheck == meeting.LooksPerCheck-1 {
			if stopped = stop(); stopped {
				break
			}
			if looks >= window && !s.watch {
				s.watch, long = true, s.shared.crowd.Elapsed()
			}
		}
	}
	if s.watch {
		s.shared.crowd.Waited(&s.window, long)
	}
	switch {
	case came:
		s.spins = min(2*s.spins, meeting.MaxSpins)
	case !stopped:
		s.spins = max(s.spins/2, meeting.MinSpins)
	}
	return came
}

// come reports whether there is something to do.
func (s *sleeper) come() bool {
	if s.goal != nil {
		return s.goal.Met()
	}
	for _, r := range s.links {
		if r.changed() {
			return true
		}
	}
	return false
}

// Park implements stream.Parker.
func (s *sleeper) Park(limit time.Duration) {
	s.asleep.Store(1)
	changed := false
	for _, r := range s.links {
		changed = r.changed() || changed
	}
	if !changed && (s.goal == nil || !s.goal.Met()) {
		began := s.shared.crowd.Elapsed()
		s.poller.Park(limit)
		if s.watch {
			s.shared.crowd.Waited(&s.window, began)
		}
	}
	s.asleep.Store(0)
}

// Close implements stream.Parker.
func (s *sleeper) Close() error {
	s.shared.own.FreeLane(s.lane)
	return s.poller.Close()
}
