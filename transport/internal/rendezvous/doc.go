// Package rendezvous lets all replicas of a job find each other and gives each the blobs of all.
//
//	met, err := rendezvous.Meet(ctx, rendezvous.Config{Rank: 3, Size: 8, Job: "digits", Where: "node0:29500", ...})
//
// A blob is what a replica has to tell the others before they connect: addresses, host, versions, options. It is opaque
// here.
//
// All replicas succeed or all who had come get the same [Error]. Replica 0 decides. After a failure it stays for 5 s,
// or until every rank has come and been told.
//
// # Over sockets: "host:port" and "unix:@NAME"
//
// Replica 0 listens, the others dial until it is there. Every connection begins with a handshake of the job's secret,
// over TLS if asked for. In a job with neither, and on every unix socket, each side checks that the other is a process
// of its own user on its host.
// The messages after it are not authenticated themselves: they ride on that connection. Their lengths are checked.
//
//	replica r                                  replica 0
//	here {size, time left, where, blob} ──▶    waits until all are here
//	                               ◀── table {blob of each rank}
//	got                                 ──▶    waits until all have got it
//	                               ◀── begin
//
// At any moment either side may say failed in place of these, with the error; replica 0 tells all who are here.
//
// Strangers end no job: replica 0 refuses them, goes on waiting, and names them if the time is over. A dialer that
// finds a stranger at replica 0's address tries for 5 s more, since a job that has just ended may take that long to go.
//
// The error at the end of the time is the same on all replicas: replica 0 ends the wait at the first deadline of those
// who are here, less an eighth or 250 ms, whichever is less, so that its word arrives in time.
//
// # In a directory: "dir:PATH"
//
// PATH is a directory that exists and that all hosts share. The files of a job are in a directory below it that has the
// job's name. Each process has one file, which has its rank, a nonce that it has drawn, and a sequence number in its
// name. To say something new it writes the next file under another name, renames it, and removes the last one. So a
// name always means the same bytes, and nobody depends on how long a file system caches them. A file ends with an HMAC
// of the job's secret over its name and its bytes.
//
//	replica r                                  replica 0
//	3.NONCE.0 {here}                           0.NONCE.0 {waiting}
//	3.NONCE.1 {here, echo of 0's nonce} ──▶    r is alive
//	                                           0.NONCE.1 {table, nonces of all}
//	3.NONCE.2 {here, echo, hash of table} ──▶  r has got it
//	                                           0.NONCE.2 {begin, nonces of all}
//	removes its file                    ──▶    removes what is left, and the directory
//
// Files of an earlier run that was killed are not believed: they echo no nonce of this run, and name none. Replica 0
// removes them when the job begins. So a job's name may be used again after a crash, but by one job at a time. What is
// needed:
//
//   - PATH is writable for the users of the job only, since whoever may write there can remove files. A job without a
//     secret refuses one that is not, and a directory of the job's name that another user has made.
//   - On NFS, directories are not cached for long: mount options lookupcache=none or a small acdirmax. Otherwise each
//     of the steps above takes up to a minute.
//   - The directory of a job name whose runs were killed a thousand times is removed by hand.
//
// A process that is killed is noticed at the end of the time only, since nothing connects it with the others.
package rendezvous
