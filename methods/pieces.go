package methods

import "math"

// maxPieces bounds the rounds of a pipeline, and with them the size of its schedule.
const maxPieces = 64

// pipelinePieces says into how many pieces to cut bytes that go down a chain of reach hops. The pipeline takes
// reach-1+m rounds, each of one latency plus the time for bytes/m; that is least for m = sqrt((reach-1) * bytes /
// latencyBytes), where latencyBytes is how many bytes the link would carry in the latency of one round. The result is a
// power of two, so that few different schedules are needed, of at least 1 and at most 64.
func pipelinePieces(reach int, bytes, latencyBytes int64) int {
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
