package rounds

import "gogcl.dev/transport"

// MaxRuns bounds the runs of one call, and with them the messages between two ranks in one round.
const MaxRuns = 256

// segmentOf is segment s of a message, if it has one. Every message has a first one, which may be empty.
func (r *Run) segmentOf(message []byte, s int) (part []byte, there bool) {
	lo := s * r.Segment
	if s > 0 && lo >= len(message) {
		return nil, false
	}
	return message[lo:min(lo+r.Segment, len(message))], true
}

// maxWindow bounds how many segments of one message go in one Exchange. One at a time would let replicas wait for each
// other after each: on two replicas 64 MiB took a third longer so (clockwise_ring by messages, two cores).
const maxWindow = 64

// window is how many segments of each message go in one Exchange: all if they are few, and no more than there are tags
// for; 0 if no message has more than one. It depends on nothing but what all members know.
func (p *Plan) window(runs []Run) int {
	most := 1
	for i := range runs {
		r := &runs[i]
		most = max(most, (r.Elements*r.ElemSize+r.Segment-1)/r.Segment)
	}
	if most == 1 {
		return 0
	}
	return max(1, min(most, maxWindow, (transport.MaxTag+1)/(len(runs)*p.chunks)))
}
