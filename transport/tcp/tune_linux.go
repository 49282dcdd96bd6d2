package tcp

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// limitSilence ends a connection whose other host does not take what was sent for so long.
func limitSilence(c *net.TCPConn, silence time.Duration) {
	if raw, err := c.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
		})
	}
}

// flush waits, for so long at most, until the other host has what was sent over TCP.
func flush(conn net.Conn, until time.Time) {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := c.SyscallConn()
	for done := false; err == nil && !done && time.Now().Before(until); time.Sleep(100 * time.Microsecond) {
		err = raw.Control(func(fd uintptr) { done = isFlushed(int(fd)) })
	}
}

// isFlushed reports whether the other host has all that was sent over a TCP connection, or has reset it: what it has
// not got then stays counted.
func isFlushed(fd int) bool {
	left, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil || left == 0 {
		return true
	}
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err != nil || info.State == unix.BPF_TCP_CLOSE
}
