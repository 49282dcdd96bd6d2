package inproc

import (
	"time"
	"unsafe"

	"gogcl.dev/transport"
)

// NewEager is New, but every wait that parks is at once a long one.
func NewEager(n int) ([]transport.Endpoint, error) {
	eps, err := New(n)
	for _, e := range eps {
		e.(*endpoint).lane.nw.every = time.Microsecond
	}
	return eps, err
}

// NewRoomy is New where every replica is led to believe that it has a processor. They do not look for long, since they
// have none.
func NewRoomy(n int) ([]transport.Endpoint, error) {
	eps, err := New(n)
	for _, e := range eps {
		e := e.(*endpoint)
		e.lane.nw.roomy, e.lane.nw.spins, e.spins = true, 256, minSpins
	}
	return eps, err
}

// MeetingSizes returns the sizes of what the members of a meeting have.
func MeetingSizes() (n, s, v uintptr) {
	return unsafe.Sizeof(notice{}), unsafe.Sizeof(seat{}), unsafe.Sizeof(visit{})
}

var lastSeat *seat // so that it is not on the stack

// NewSeat returns the address of a new seat.
func NewSeat() uintptr {
	lastSeat = new(seat)
	return uintptr(unsafe.Pointer(lastSeat))
}
