package user

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
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
	uid, found, err := sockets.owner(theirs, ours)
	switch {
	case err != nil:
		return err
	case found:
		return compare(uid, 0)
	}
	return fmt.Errorf("/proc/self/net/tcp does not say whose process is at %v: give all replicas a secret", theirs)
}

func address(a net.Addr) netip.AddrPort {
	tcp := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(tcp.Addr().Unmap().WithZone(""), tcp.Port())
}

// sockets is the kernel's table of this network namespace.
var sockets = newTable(readTable)

// table answers whose sockets are. Its whole text is read for an answer, so one reading answers all who ask while
// another is in progress: connections that come at once take one reading together.
type table struct {
	read func(lines func(line []byte)) error

	reading chan struct{} // has room for the one who reads

	mu   sync.Mutex // guards next
	next *lookup    // takes questions until its reading begins; nil: none are there
}

func newTable(read func(lines func(line []byte)) error) *table {
	return &table{read: read, reading: make(chan struct{}, 1)}
}

// lookup is the questions that one reading answers. The first who asks reads; after done it does not change.
type lookup struct {
	owner map[string]int64 // by the line's text of both addresses and the state; -1: not found
	err   error
	done  chan struct{}
}

// owner is the user of the socket with these two addresses.
func (t *table) owner(local, remote netip.AddrPort) (uid uint32, found bool, err error) {
	lines := spellings(local, remote)
	t.mu.Lock()
	l, first := t.next, t.next == nil
	if first {
		l = &lookup{owner: map[string]int64{}, done: make(chan struct{})}
		t.next = l
	}
	for _, line := range lines {
		l.owner[line] = -1
	}
	t.mu.Unlock()
	if first {
		t.reading <- struct{}{}
		t.mu.Lock()
		t.next = nil
		t.mu.Unlock()
		l.err = t.read(l.line)
		<-t.reading
		close(l.done)
	}
	<-l.done
	for _, line := range lines {
		if uid := l.owner[line]; uid >= 0 {
			return uint32(uid), true, nil
		}
	}
	return 0, false, l.err
}

// line looks at a line of the kernel's table:
//
//	sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
//	 0: 0100007F:1770 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 12345 ...
func (l *lookup) line(line []byte) {
	_, rest, _ := bytes.Cut(line, []byte(": "))
	end := 0
	for range 3 { // two addresses and the state
		space := bytes.IndexByte(rest[end:], ' ')
		if space < 0 {
			return
		}
		end += space + 1
	}
	key := rest[:end-1]
	if _, asked := l.owner[string(key)]; !asked {
		return
	}
	if f := bytes.Fields(rest[end:]); len(f) > 3 {
		if uid, err := strconv.ParseUint(string(f[3]), 10, 32); err == nil {
			l.owner[string(key)] = int64(uid)
		}
	}
}

// readTable calls lines for each line of the kernel's table.
func readTable(lines func(line []byte)) error {
	for _, name := range []string{"tcp", "tcp6"} {
		file, err := os.Open("/proc/self/net/" + name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		scanner := bufio.NewScanner(file)
		for scanner.Scan() {
			lines(scanner.Bytes())
		}
		file.Close()
		if err := scanner.Err(); err != nil {
			return err
		}
	}
	return nil
}

// spellings are how lines of the kernel's table may name a connection that is established.
func spellings(local, remote netip.AddrPort) []string {
	const established = " 01"
	from, to := local.Addr().As16(), remote.Addr().As16()
	spell := func(skip int) string {
		return fmt.Sprintf("%s:%04X %s:%04X%s", words(from[skip:]), local.Port(), words(to[skip:]), remote.Port(),
			established)
	}
	if local.Addr().Is4() && remote.Addr().Is4() {
		return []string{spell(12), spell(0)}
	}
	return []string{spell(0)}
}

// words writes bytes as the kernel does: words of 4 bytes in its own order.
func words(b []byte) string {
	var out strings.Builder
	for ; len(b) >= 4; b = b[4:] {
		fmt.Fprintf(&out, "%08X", binary.NativeEndian.Uint32(b))
	}
	return out.String()
}
