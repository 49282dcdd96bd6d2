package transport

// MaxReport bounds what a replica tells of itself: see Reporter.
const MaxReport = 2 << 10

// Reporter is what an Endpoint may offer beside Exchange when its replicas are processes: once it is aborted, each
// replica tells the others what it was doing.
type Reporter interface {
	Endpoint

	// ReportBy has f called once, when the endpoint is aborted, by any replica, on a goroutine of the transport. What f
	// returns, at most its first MaxReport bytes, is sent to all other replicas. f must not wait. ReportBy is called at
	// most once, on the first endpoint of a replica, before its first Exchange.
	ReportBy(f func() []byte)

	// Reports returns what the other replicas have told, by replica; nil for those from whom nothing has come. After an
	// abort it waits a second at most, once, for those that are still there. The bytes are only to be read.
	Reports() [][]byte
}
