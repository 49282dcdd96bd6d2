package carry

import (
	"gogcl.dev/internal/kernel"
	"gogcl.dev/transport"
)

// segment is the length of a segment in whole elements of elemSize bytes.
func (w *Caller) segment(elemSize int) int {
	return max(w.Segment/elemSize, 1) * elemSize
}

// packedUnit divides every place at which packed tensors may be cut: it is the size of the widest elements.
var packedUnit = kernel.Float64.Size()

// segmentOf is segment s of a message, if it has one. Every message has a first one, which may be empty.
func (r *run) segmentOf(message []byte, s int) (part []byte, there bool) {
	lo := s * r.segment
	if s > 0 && lo >= len(message) {
		return nil, false
	}
	return message[lo:min(lo+r.segment, len(message))], true
}

// maxWindow bounds how many segments of one message go in one Exchange. One at a time would let replicas wait for each
// other after each: on two replicas 64 MiB took a third longer so (clockwise_ring by messages, two cores).
const maxWindow = 64

// window is how many segments of each message go in one Exchange: all if they are few, and no more than there are tags
// for; 0 if no message has more than one. It depends on nothing but what all members know.
func (p *plan) window(runs []run) int {
	most := 1
	for i := range runs {
		r := &runs[i]
		most = max(most, (r.elements*r.elemSize+r.segment-1)/r.segment)
	}
	if most == 1 {
		return 0
	}
	return max(1, min(most, maxWindow, (transport.MaxTag+1)/(len(runs)*p.chunks)))
}
