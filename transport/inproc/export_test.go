package inproc

import (
	"time"
	"unsafe"
)

// NewEager is New, but every wait that parks is at once a long one.
func NewEager(n int) ([]*endpoint, error) {
	eps, err := New(n)
	if err != nil {
		return nil, err
	}
	out := make([]*endpoint, n)
	for i, e := range eps {
		out[i] = e.(*endpoint)
		out[i].lane.nw.every = time.Microsecond
	}
	return out, nil
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
