// Package tcp connects replicas that are processes: over TCP between hosts, over unix sockets or through shared memory
// between processes of one host.
//
//	end, err := tcp.Join(ctx, tcp.Config{Rank: 3, Size: 8, Job: "digits", Secret: secret},
//		tcp.Meeting{Where: "node0:29500"})
//
// Package gcl does that in [gogcl.dev/gcl.Join], with what the launcher's environment says.
//
// # How a job starts
//
//	replica r                        replica 0                    replica q
//	Meet ──────────────────────────▶ rendezvous ◀──────────────── Meet
//	  listens where others reach it, and tells its card: addresses, host, processors, a blob of the caller's
//	  ◀── all cards, the same for everyone: whatever is wrong with them is the same error for everyone
//	Connect ── control connection, the lower number dials ──────▶
//	  ── a data connection for each lane, when it is first used ─▶
//
// Every connection begins with a handshake that proves the job's secret before anything else of it is read: package
// transport/internal/handshake. Replica 0 adds a key to the secret that only those know who have met, and newcomers.
//
// # Connections
//
//	control  one for each pair: aborts, leaving, "I wait in this call", heartbeats
//	data     one for each pair and lane: the messages of package transport/internal/stream, and how many have been
//	         read; that goes by the control connection where it would not be seen
//
// On Linux a data connection is a socket that is in no poller of the Go runtime. A lane that waits blocks its thread in
// an epoll descriptor of its own. Elsewhere, and over TLS, two goroutines for each connection move its bytes.
//
// Replicas that share memory, over [Shm] or [Auto], have no data connections between them. Their control connections
// are unix sockets; before one carries messages, both ends swap descriptors of memory, in which each then makes rings
// for the other: package transport/internal/segment.
//
// # What is promised when something dies
//
//   - A replica that closes its endpoint says so. Messages that it had sent are good. A replica that waits for
//     more gets a *transport.ClosedError.
//   - A process that ends without that, or whose connection is reset, is lost: every other replica aborts with a
//     *transport.LostError that names it, as soon as its control connection ends.
//   - A process or a host that falls silent is lost after Config.Silence.
package tcp
