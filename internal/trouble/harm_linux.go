package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gogcl.dev/gcl"
)

const (
	stopSignal = syscall.SIGSTOP
	killSignal = syscall.SIGKILL
)

// cutOff has the connections of a replica carry nothing any more, in both directions, as if its cable had been pulled:
// both ends drop whatever comes. The call that tells the ports of the replica is the last one that goes well.
func cutOff(ctx context.Context, c *gcl.Comm, victim int) error {
	own, err := connections()
	if err != nil {
		return err
	}
	ports := make([]uint16, maxConnections)
	if len(own) > maxConnections {
		return fmt.Errorf("%d connections, want %d at most: start fewer replicas", len(own), maxConnections)
	}
	i := 0
	for port := range own {
		ports[i] = port
		i++
	}
	theirs, err := gcl.AllGather(ctx, c, ports)
	if err != nil {
		return err
	}
	theirs = theirs[victim*maxConnections:][:maxConnections]
	for _, at := range own {
		if c.Replica() != victim && !slices.Contains(theirs, at.peer) {
			continue
		}
		drop := unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}}
		err := unix.SetsockoptSockFprog(at.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &drop)
		if err != nil && err != unix.EBADF { // what the joining has closed meanwhile
			return fmt.Errorf("filter of a socket: %w", err)
		}
	}
	return nil
}

// writeNothing has this process write no more to files, as where a disk is full.
func writeNothing() error {
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{})
}

// maxConnections is how many connections a replica has at most.
const maxConnections = 64

// connection is a descriptor of a TCP socket, and the port of the other end.
type connection struct {
	fd   int
	peer uint16
}

// connections are those of this process, by its own port.
func connections() (map[uint16]connection, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	out := map[uint16]connection{}
	for _, e := range entries {
		fd, err := strconv.Atoi(filepath.Base(e.Name()))
		if err != nil {
			return nil, err
		}
		own, err1 := unix.Getsockname(fd)
		peer, err2 := unix.Getpeername(fd)
		if err1 != nil || err2 != nil {
			continue // no connection
		}
		a, ok1 := own.(*unix.SockaddrInet4)
		b, ok2 := peer.(*unix.SockaddrInet4)
		if ok1 && ok2 {
			out[uint16(a.Port)] = connection{fd, uint16(b.Port)}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there are no connections over TCP: start the job with -transport tcp")
	}
	return out, nil
}
