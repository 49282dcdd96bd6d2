// Package user tells whether the process at the other end of a connection within a host is of this process's user. It
// is what a job without a secret rests on.
//
//	connection            how it is known
//	unix socket           SO_PEERCRED
//	TCP over loopback     the table of sockets in /proc/self/net has the user of the other end's
//	TCP between hosts     not at all: an error
//
// All of it is Linux's; elsewhere Check is an error. Users are compared as this process's user namespace shows them.
package user

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// Only is a listener that takes connections of this process's user alone. refused is told of the others; it may be nil.
func Only(l net.Listener, refused func(net.Conn, error)) net.Listener { return only{l, refused} }

type only struct {
	net.Listener
	refused func(net.Conn, error)
}

// Accept implements net.Listener.
func (l only) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err = Check(conn); err == nil {
			return conn, nil
		}
		if l.refused != nil {
			l.refused(conn, err)
		}
		conn.Close()
	}
}

// Error says that another user is at the other end, or that nobody can tell.
type Error struct {
	Err error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// compare is the error for a process of another user. pid is 0 if it is not known.
func compare(uid uint32, pid int32) error {
	switch own := os.Geteuid(); {
	case uid == uint32(own):
		return nil
	case pid != 0:
		return fmt.Errorf("process %d is of user %d, this one of user %d: %s", pid, uid, own, remedy)
	default:
		return fmt.Errorf("the other side is a process of user %d, this one is of user %d: %s", uid, own, remedy)
	}
}

// Name is that of this process's user for other processes of the host: the number, and the user namespace that it is
// of, as far as the system tells.
func Name() string {
	space, _ := os.Readlink("/proc/self/ns/user")
	return strings.TrimSpace(fmt.Sprintf("%d %s", os.Geteuid(), space))
}

const remedy = "run all replicas as one user, or give them a secret and an address with a port"
