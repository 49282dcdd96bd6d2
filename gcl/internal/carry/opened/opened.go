// Package opened compares the lengths of the buffers that members lay open in a Share with what the call wants, before
// a Worker reads or writes them. A peer in another process may give any lengths, by mistake or on purpose.
//
// It knows no schedule, no route and no rounds.
package opened

import (
	"fmt"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Lengths compares the lengths of what the members have laid open, in one Share at a time. The first that is wrong
// aborts the endpoint, which fails the Share at all members. The methods are for the goroutine of the call.
type Lengths struct {
	endpoint transport.Endpoint
	wrong    *transport.RoundError // in the Share in progress; nil: all that was compared is right
}

// On makes what compares the lengths in the Shares of an endpoint.
func On(endpoint transport.Endpoint) Lengths { return Lengths{endpoint: endpoint} }

// Unused stands for the length of a buffer that nobody reads or writes: it may be any.
const Unused = -1

// Want is the length that a rank's buffer has by a contract: whole for all chunks, own for the rank's own, or Unused.
func Want(h schedule.Holding, atRoot bool, whole, own int) int {
	switch {
	case h == schedule.Own:
		return own
	case h == schedule.AtRoot && !atRoot:
		return Unused
	}
	return whole
}

// FitsInput reports whether a replica's input is as long as the call wants, in bytes. Else the Share fails. kind is for
// the error: Recv of a buffer that is read, Send of one that is written.
func (l *Lengths) FitsInput(kind transport.Kind, replica int, in []byte, want int) bool {
	return len(in) == want || want == Unused || l.refuse(kind, replica,
		"an input of %d bytes lies open, want %d", len(in), want)
}

// FitsOutput is FitsInput of an output.
func (l *Lengths) FitsOutput(kind transport.Kind, replica int, out []byte, want int) bool {
	return len(out) == want || want == Unused || l.refuse(kind, replica,
		"an output of %d bytes lies open, want %d", len(out), want)
}

// FitsLists reports whether a replica's two lists have a buffer for each of n operands. Else the Share fails.
func (l *Lengths) FitsLists(replica int, m *transport.Memory, n int) bool {
	return (len(m.Ins) == n || l.refuse(transport.Recv, replica, "%d inputs lie open, want %d", len(m.Ins), n)) &&
		(len(m.Outs) == n || l.refuse(transport.Recv, replica, "%d outputs lie open, want %d", len(m.Outs), n))
}

// FitsScratch reports whether a replica has laid open as much scratch memory as the call wants. It may be more, since
// it is kept from call to call. Else the Share fails.
func (l *Lengths) FitsScratch(replica, have, want int) bool {
	return have >= want || l.refuse(transport.Recv, replica, "scratch memory of %d bytes lies open, want %d or more",
		have, want)
}

// refuse fails the Share, and returns false.
func (l *Lengths) refuse(kind transport.Kind, replica int, format string, have, want int) bool {
	if l.wrong == nil {
		l.wrong = &transport.RoundError{Replica: l.endpoint.Rank(), Kind: kind, Peer: replica,
			Err: fmt.Errorf(format, have, want)}
		l.endpoint.Abort(l.wrong)
	}
	return false
}

// Wrong reports whether a length in the Share in progress was wrong. Nothing more is to be read or written.
func (l *Lengths) Wrong() bool { return l.wrong != nil }

// Ended is the error of a Share that has returned err: err itself, or if a length was wrong that. The next Share begins
// anew.
func (l *Lengths) Ended(err error) error {
	wrong := l.wrong
	if wrong == nil {
		return err
	}
	l.wrong = nil
	first, ok := l.endpoint.Err().(*transport.AbortError)
	if ok && first.Cause != error(wrong) { // another member, or another reason, was first
		return &transport.RoundError{Replica: wrong.Replica, Kind: wrong.Kind, Peer: wrong.Peer,
			Err: &transport.LateError{Err: wrong.Err, Aborted: first}}
	}
	return wrong
}
