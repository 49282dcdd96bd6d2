package methods

import (
	"math"

	"gogcl.dev/methods/schedule"
)

// maxPieces bounds the rounds of a pipeline, and with them the size of its schedule.
const maxPieces = 64

// PipelinePieces says into how many pieces to cut bytes that go down a chain of reach hops. The pipeline takes
// reach-1+m rounds, each of one latency plus the time for bytes/m; that is least for m = sqrt((reach-1) * bytes /
// latencyBytes), where latencyBytes is how many bytes the link would carry in the latency of one round. The result is a
// power of two, so that few different schedules are needed, of at least 1 and at most 64.
func PipelinePieces(reach int, bytes, latencyBytes int64) int {
	if reach < 2 || bytes <= 0 || latencyBytes <= 0 {
		return 1
	}
	best := math.Sqrt(float64(reach-1) * float64(bytes) / float64(latencyBytes))
	m := 1
	for m < maxPieces && float64(m)*math.Sqrt2 < best { // the nearest power of two, by ratio
		m *= 2
	}
	return m
}

// ChainReach is how many hops the chain of a pipeline over size ranks has, the reach that PipelinePieces asks for. It
// is 0 where the schedule is no pipeline, and Spec.Pieces is ignored.
func (m Method) ChainReach(c schedule.Collective, size int, rankOrder bool) int {
	rings := Spec{Method: m}.rings()
	switch {
	case c == schedule.AllReduce && rankOrder && m != SendToAll && m != Direct:
		return size - 1
	case c != schedule.Broadcast || !rings:
		return 0
	case m == MeetInMiddleRing:
		return size / 2
	}
	return size - 1
}
