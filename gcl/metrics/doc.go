// Package metrics shows what collectives do to Prometheus: a Trace that counts calls, and an http.Handler that serves
// the counts in Prometheus' text format.
//
//	m := metrics.New(nil)
//	go http.ListenAndServe("localhost:9400", m)
//	err := gcl.RunOrJoin(ctx, 4, body, gcl.WithOptions(gcl.Options{Trace: m.Trace()}))
//
// # Metrics
//
//	gcl_collective_exec_time_seconds    histogram  time of a call, from its turn to its end
//	gcl_collective_bytes_total          counter    bytes of the larger of a replica's two buffers
//	gcl_collective_bus_bytes_total      counter    the same times the bus factor
//	gcl_bus_bandwidth_bytes_per_second  gauge      of the last call
//	gcl_collective_price_seconds        gauge      what the cost model says of the first call
//	gcl_collective_errors_total         counter    calls that failed, which are in no other metric
//	gcl_p2p_...                                    the same of messages, which have no price
//	gcl_stalled_calls                   gauge      calls in progress that are stalled
//	gcl_aborted_communicators           gauge      communicators aborted and not closed
//	gcl_recent_calls                    gauge      calls that all members wait for, of the last 1,024
//	gcl_recent_calls_last               gauge      those to which the replica came last
//	gcl_recent_calls_waited_seconds     gauge      how long all others waited for it there
//	gcl_recent_calls_straggler          gauge      1: it is a straggler, as gclrun status names them
//
// Messages are those of Send, Recv and SendRecv. A call is stalled when it has waited for as long as
// gcl.WithStallAfter says.
//
// The recent calls have the label replica alone. The process of replica 0 has them of all replicas, which it asks. A
// replica counts as last only where all others have waited for it for 0.1 ms.
//
// The names are those of NCCL Inspector's exporter with gcl_ for nccl_, and in seconds and bytes. The time of a call is
// that of one replica. It includes waiting for replicas that come later to the call. The bus factor is that of
// nccl-tests: see schedule.Contract. Bus bandwidth over an interval, and the time over the price, are
//
//	rate(gcl_collective_bus_bytes_total[1m]) / rate(gcl_collective_exec_time_seconds_sum[1m])
//	rate(gcl_collective_exec_time_seconds_sum[1m]) / rate(gcl_collective_exec_time_seconds_count[1m])
//	    / gcl_collective_price_seconds
//
// A price is that of the first call of a series, by [gcl.TraceCall.Explain]; sizes within a series differ by less than
// twice. A series has none where Explain has none for the way that the call went. There are no bus bytes and no
// bandwidth of a call that moves no bytes, or of which nothing says how much moves: see schedule.Contract.BusFactor.
//
// # Labels
//
//	replica        id of the replica
//	collective     as errors have it: "all-reduce", "barrier", "all-reduce within the replica"
//	p2p_operation  in place of collective: "send", "receive", "send and receive"
//	message_size   bytes as two powers of two, the second excluded: "512KiB-1MiB"; "0"
//	nranks         replicas in the group; of a collective within a replica, IPUs
//	comm_name      of Comm.Named; "unknown" without a name
//	method         "clockwise_ring"; "hybrid" of a call in phases; "none"
//	path           "messages", "peer memory", as gcl.Path has it; of phases, of the last
//	transport      "inproc", "shm", as gcl.TraceCall.Transport has it; "none" without one
//	kind           of an error: "mismatch", "deadline", "canceled", "peer", "aborted", "closed",
//	               "refused", which is for its arguments
//
// The errors have the labels collective or p2p_operation, and kind. Their kind is that of the cause: of a communicator
// that was aborted since replicas disagree, all calls that fail have "mismatch".
//
// # Bounds
//
// The first 100 names of Comms have series of their own. All later ones share the comm_name "other". Beyond 1,000
// series the labels of new ones are all "other". A call of either kind takes a lock that all share.
//
// # Cost
//
// docs/design/tracing.md has how much longer a call takes. It allocates nothing once its series is there. A scrape
// prices new series, for a second at most, and leaves the rest to the next. Until a series has been priced, the Comm of
// its first call is kept in memory.
//
// # Health
//
// /healthz is for whoever restarts a job. It is about all communicators of this process, whatever their Trace. It
// answers "ok", or 503 with a line for each call that is stalled and each communicator that was aborted and is not
// closed.
package metrics
