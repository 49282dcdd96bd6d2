package tcp

import (
	"net"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gogcl.dev/transport/internal/segment"
	"gogcl.dev/transport/internal/stream"
)

// poller is a stream.Parker: an epoll descriptor of its own, on which the lane's thread blocks. A goroutine that parks
// in the Go runtime is woken by another thread: a message and its answer then take 11 to 19 us, and with a poller 6.4
// (a spike, 2026-11-22, four cores).
type poller struct {
	epoll  int
	events [16]unix.EpollEvent

	mu     sync.Mutex // guards what follows
	bell   int        // in epoll
	closed bool
}

func newParker() (stream.Parker, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	bell, err := segment.MakeBell()
	if err != nil {
		unix.Close(epoll)
		return nil, err
	}
	p := &poller{epoll: epoll, bell: bell}
	// Edge-triggered: a ring is an event once, and nobody reads the bell.
	if err := p.add(bell, unix.EPOLLIN); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *poller) add(fd int, events uint32) error {
	event := &unix.EpollEvent{Events: events | unix.EPOLLET, Fd: int32(fd)}
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, event)
}

// Watch implements stream.Parker.
func (p *poller) Watch(l stream.Link) error {
	switch l := l.(type) {
	case *socket:
		return p.add(l.fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP)
	case *pump:
		l.wakes(p)
	}
	return nil
}

// Park implements stream.Parker.
func (p *poller) Park(limit time.Duration) {
	timeout := -1
	if limit >= 0 {
		timeout = int((limit + time.Millisecond - 1) / time.Millisecond)
	}
	// Not unix.EpollWait: the call by number does not let the events escape.
	unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(timeout), 0, 0)
}

// Wake implements stream.Parker.
func (p *poller) Wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		segment.RingBell(p.bell)
	}
}

// Close implements stream.Parker.
func (p *poller) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	unix.Close(p.bell)
	return unix.Close(p.epoll)
}

// newLink makes a link of a connection that has shaken hands.
func newLink(conn net.Conn, ring int) (stream.Link, error) {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return newSocket(conn)
	}
	return newPump(conn, ring), nil
}
