package tcp

import (
	"io"
	"net"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readAhead is how much a socket reads beyond what is asked for: header and small messages in one system call. It stays
// in the first- or second-level cache.
const readAhead = 64 << 10

// directRead is from what length on a payload is read straight to where it belongs.
const directRead = 8 << 10

// loopSend is SO_SNDBUF of TCP on one host, of which the kernel makes twice as much. It bounds the bytes that are sent
// and not acknowledged. So queues stay short enough for a cache while the receiver reads; docs/design/processes.md has
// what that gains. Over a network it would bound what is on its way.
const loopSend = 256 << 10

// roomToSend reports whether the kernel gives a socket nearly as much as loopSend (net.core.wmem_max, 208 KiB unless
// somebody has set it): with half as much messages are slower than with buffers that the kernel sizes itself.
var roomToSend = sync.OnceValue(func() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, loopSend)
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	return err == nil && got >= 2*200<<10
})

// socket is a stream.Link over a socket whose descriptor is its own: it is in no poller of the Go runtime, which would
// wake for every packet.
type socket struct {
	fd    int
	isTCP bool
	names string // of its two ends

	bytes       []byte // readAhead, aligned to 64
	read, wrote int    // bytes[read:wrote] has arrived
	taken       uint64 // bytes of the stream before bytes[read]
	ended       error  // of the stream, after bytes[:wrote]

	iov [3]unix.Iovec
	msg unix.Msghdr
}

// newSocket takes over a connection. It closes it in any case.
func newSocket(conn net.Conn) (*socket, error) {
	defer conn.Close()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &socket{fd: -1, names: ends(conn)}
	_, s.isTCP = conn.(*net.TCPConn)
	if err := raw.Control(func(fd uintptr) { s.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(s.fd, true); err != nil {
		unix.Close(s.fd)
		return nil, err
	}
	if loops(conn.LocalAddr(), conn.RemoteAddr()) && roomToSend() {
		unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, loopSend) // without, it is only slower
	}
	s.bytes = aligned(readAhead)
	return s, nil
}

// loops reports whether what is sent over TCP stays on this host.
func loops(here, there net.Addr) bool {
	a, isTCP := here.(*net.TCPAddr)
	b, too := there.(*net.TCPAddr)
	return isTCP && too && (a.IP.Equal(b.IP) || a.IP.IsLoopback() && b.IP.IsLoopback())
}

// Send implements stream.Link.
func (s *socket) Send(head, body, tail []byte) (int, error) {
	if len(body)+len(tail) == 0 && len(head) > 0 {
		n, err := s.call(unix.SYS_SENDTO, head, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return max(n, 0), err
	}
	k := 0
	for _, b := range [3][]byte{head, body, tail} {
		if len(b) > 0 {
			s.iov[k].Base = &b[0]
			s.iov[k].SetLen(len(b))
			k++
		}
	}
	if k == 0 {
		return 0, nil
	}
	s.msg = unix.Msghdr{Iov: &s.iov[0]}
	s.msg.SetIovlen(k)
	n, err := s.call(unix.SYS_SENDMSG, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	s.iov = [3]unix.Iovec{}
	return max(n, 0), err
}

// call is sendmsg or recvmsg with s.msg, or sendto or recvfrom with b, which take less. It returns -1 and no error
// where it would wait. Calls with b are short, and the Go scheduler is not told of them.
func (s *socket) call(number uintptr, b []byte, flags uintptr) (int, error) {
	for {
		var n uintptr
		var errno syscall.Errno
		if b == nil {
			n, _, errno = unix.Syscall(number, uintptr(s.fd), uintptr(unsafe.Pointer(&s.msg)), flags)
		} else {
			p := unsafe.Pointer(&b[0])
			n, _, errno = unix.RawSyscall6(number, uintptr(s.fd), uintptr(p), uintptr(len(b)), flags, 0, 0)
		}
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS:
			return -1, nil
		default:
			return -1, errno
		}
	}
}

// receive reads into dst first and then behind what has been read ahead, and returns how much went into dst.
func (s *socket) receive(dst []byte) int {
	if s.ended != nil {
		return 0
	}
	if s.read == s.wrote { // keep addresses as Peek promises
		s.read = int((s.taken + uint64(len(dst))) & 63)
		s.wrote = s.read
	}
	free := s.bytes[s.wrote:]
	if len(dst) == 0 && len(free) > 0 {
		n, err := s.call(unix.SYS_RECVFROM, free, unix.MSG_DONTWAIT)
		s.note(n, err)
		s.wrote += max(n, 0)
		return 0
	}
	k := 0
	if len(dst) > 0 {
		s.iov[0].Base = &dst[0]
		s.iov[0].SetLen(len(dst))
		k++
	}
	if len(free) > 0 {
		s.iov[k].Base = &free[0]
		s.iov[k].SetLen(len(free))
		k++
	}
	s.msg = unix.Msghdr{Iov: &s.iov[0]}
	s.msg.SetIovlen(k)
	n, err := s.call(unix.SYS_RECVMSG, nil, unix.MSG_DONTWAIT)
	s.iov = [3]unix.Iovec{}
	s.note(n, err)
	into := min(max(n, 0), len(dst))
	s.wrote += max(n, 0) - into
	s.taken += uint64(into)
	return into
}

// note notes that there will be no more, if what a read has returned says so.
func (s *socket) note(n int, err error) {
	switch {
	case err != nil:
		s.ended = err
	case n == 0:
		s.ended = io.EOF
	}
}

// Peek implements stream.Link.
func (s *socket) Peek(n int) ([]byte, error) {
	if s.wrote-s.read < n {
		if len(s.bytes)-s.read < directRead { // move what there is to the front, by a multiple of 64
			to := s.read & 63
			copy(s.bytes[to:], s.bytes[s.read:s.wrote])
			s.read, s.wrote = to, to+s.wrote-s.read
		}
		s.receive(nil)
		if s.wrote-s.read < n {
			return nil, s.ended
		}
	}
	return s.bytes[s.read:s.wrote], nil
}

// Skip implements stream.Link.
func (s *socket) Skip(n int) {
	s.read += n
	s.taken += uint64(n)
}

// ReadInto implements stream.Link.
func (s *socket) ReadInto(dst []byte) (int, error) {
	n := copy(dst, s.bytes[s.read:s.wrote])
	s.Skip(n)
	switch {
	case n == len(dst):
		return n, nil
	case len(dst)-n >= directRead:
		n += s.receive(dst[n:])
	default:
		s.receive(nil)
		k := copy(dst[n:], s.bytes[s.read:s.wrote])
		s.Skip(k)
		n += k
	}
	if n > 0 {
		return n, nil
	}
	return 0, s.ended
}

// Come implements stream.Gauge.
func (s *socket) Come() (bytes, moved uint64) {
	bytes = s.taken + uint64(s.wrote-s.read)
	return bytes, bytes
}

// Ends implements stream.Gauge.
func (s *socket) Ends() string { return s.names }

// Close implements stream.Link. A socket that is closed with bytes that nobody has read resets the connection, which
// may cost the peer what has been sent and has not arrived: so Close waits, for a bounded time, until it has. Meanwhile
// it throws away what comes: the peer may be in Close as well, and wait for that.
func (s *socket) Close() error {
	unix.Shutdown(s.fd, unix.SHUT_WR)
	for until := time.Now().Add(flushTime); s.unsent() && time.Now().Before(until); time.Sleep(100 * time.Microsecond) {
		s.discard()
	}
	s.discard()
	return unix.Close(s.fd)
}

// unsent reports whether there are bytes that the peer's host does not have and may still get.
func (s *socket) unsent() bool { return s.isTCP && !isFlushed(s.fd) }

// discard throws away what has arrived, in a bounded time: the peer may go on sending.
func (s *socket) discard() {
	for until := time.Now().Add(flushTime); time.Now().Before(until); {
		s.read, s.wrote = 0, 0
		if s.receive(nil); s.wrote == s.read {
			return
		}
	}
}

// Drop implements stream.Dropper.
func (s *socket) Drop() error { return unix.Close(s.fd) }
