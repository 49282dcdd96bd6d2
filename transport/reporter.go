package transport

import "time"

// What bounds the bytes that a replica tells of itself: see Reporter.
const (
	MaxReport = 2 << 10 // to all, after an abort
	MaxReply  = 7 << 10 // to one that asks
)

// Reporter is what an Endpoint may offer beside Exchange when its replicas are processes: each replica tells the others
// what it was doing once it is aborted, and what it is doing when it is asked.
type Reporter interface {
	Endpoint

	// ReportBy has f called when the endpoint is aborted, by any replica, once, and for each Inquire of another
	// replica, on goroutines of the transport, several at a time. What f returns is sent to all other replicas, or to
	// the one that asks: at most its first limit bytes, which are MaxReport or MaxReply. f must not wait. ReportBy is
	// called at most once, on the first endpoint of a replica, before its first Exchange.
	ReportBy(f func(limit int) []byte)

	// Reports returns what the other replicas have told, by replica; nil for those from whom nothing has come. After an
	// abort it waits a second at most, once, for those that are still there. The bytes are only to be read.
	Reports() [][]byte

	// Inquire asks the other replicas what they are doing, whatever calls are in progress, and returns what they say,
	// by replica; empty for those that are gone, nil for those that have not answered within the limit. After an abort
	// it asks nobody in vain. Any goroutine may call it: who does while another asks has what comes to that one, until
	// its own limit. The bytes are only to be read.
	Inquire(limit time.Duration) [][]byte
}
