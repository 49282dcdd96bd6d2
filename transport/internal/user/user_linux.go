package user

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// TellsTCP is whether Check works for TCP over loopback.
const TellsTCP = true

// Check refuses the process at the other end of a connection within this host when another user runs it. The error is
// an *[Error]. A TCP connection that was dialed is checked when the other side has answered: until it accepts the
// connection, its socket may be shown as root's.
func Check(conn net.Conn) error {
	var err error
	switch conn := conn.(type) {
	case *net.UnixConn:
		err = checkUnix(conn)
	case *net.TCPConn:
		err = checkTCP(conn)
	default:
		err = fmt.Errorf("nobody knows the user at the other end of a %T", conn)
	}
	if err != nil {
		return &Error{err}
	}
	return nil
}

func checkUnix(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	switch {
	case err != nil:
		return err
	case failed != nil:
		return os.NewSyscallError("getsockopt", failed)
	}
	return compare(cred.Uid, cred.Pid)
}

// checkTCP looks for the other end's socket, whose addresses are those of this end the other way round.
func checkTCP(conn *net.TCPConn) error {
	theirs, ours := address(conn.RemoteAddr()), address(conn.LocalAddr())
	if !theirs.Addr().IsLoopback() || !ours.Addr().IsLoopback() {
		return fmt.Errorf("%v is not on this host, and the job has no secret", theirs)
	}
	for _, table := range []string{"tcp", "tcp6"} {
		file, err := os.Open("/proc/self/net/" + table)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		uid, found, err := search(file, theirs, ours)
		file.Close()
		switch {
		case err != nil:
			return err
		case found:
			return compare(uid, 0)
		}
	}
	return fmt.Errorf("/proc/self/net/tcp does not say whose process is at %v: give all replicas a secret", theirs)
}

func address(a net.Addr) netip.AddrPort {
	tcp := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(tcp.Addr().Unmap().WithZone(""), tcp.Port())
}

// search looks for the socket with these two addresses in a table of the kernel's:
//
//	sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
//	 0: 0100007F:1770 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 12345 ...
func search(table io.Reader, local, remote netip.AddrPort) (uid uint32, found bool, err error) {
	const established = "01"
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 8 || f[3] != established || !is(f[1], local) || !is(f[2], remote) {
			continue
		}
		n, err := strconv.ParseUint(f[7], 10, 32)
		return uint32(n), err == nil, err
	}
	return 0, false, lines.Err()
}

// is reports whether text, as the kernel writes addresses, is a.
func is(text string, a netip.AddrPort) bool {
	port := fmt.Sprintf(":%04X", a.Port())
	six := a.Addr().As16()
	if text == words(six[:])+port {
		return true
	}
	four := six[12:]
	return a.Addr().Is4() && text == words(four)+port
}

// words writes bytes as the kernel does: words of 4 bytes in its own order.
func words(b []byte) string {
	var out strings.Builder
	for ; len(b) >= 4; b = b[4:] {
		fmt.Fprintf(&out, "%08X", binary.NativeEndian.Uint32(b))
	}
	return out.String()
}
