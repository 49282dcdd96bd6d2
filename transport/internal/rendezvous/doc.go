// Package rendezvous lets all replicas of a job find each other and gives each the blobs of all.
//
//	met, err := rendezvous.Meet(ctx, rendezvous.Config{Rank: 3, Size: 8, Job: "digits", Where: "node0:29500", ...})
//
// A blob is what a replica has to tell the others before they connect: addresses, host, versions, options. It is opaque
// here.
//
// # The protocol
//
// The replicas meet over a store, where each process has one entry: its sheet, which says how far it is. To say
// something new it puts another sheet in place of that. One replica is the host, replica 0, and decides. The others are
// its visitors.
//
//	visitor                                    host
//	here {size, time left, where, blob} ──▶    here; waits until all have come
//	                               ◀── table {nonce and blob of each rank}
//	got                                 ──▶    waits until all have it
//	                               ◀── begin
//
// At any moment either side may say failed, with an [Error]. The host passes a visitor's error on to all. So all
// replicas succeed, or all who had come get the same Error. After it the host stays for 5 s, or until every rank has
// come and been told.
//
// A process has drawn a nonce, by which it knows whether it is in a table. One that is not is late.
//
// The error at the end of the time is the same on all replicas: the host ends the wait at the first deadline of those
// who are here, less an eighth or 250 ms, whichever is less, so that its word arrives in time. A visitor whose context
// has ended says so, and waits for the host's answer.
//
// Strangers end no job: the store refuses them, and the host names them if the time is over.
//
// # The stores
//
//	                     "host:port"                   "unix:@NAME"        "dir:PATH"
//	who may put entries  who has the secret or a       processes of one    who may write there and has the secret;
//	                     certificate; with neither,    user of one host    without one, processes of one user
//	                     processes of one user
//	who may read them    these, and without TLS        the same            who may read files of the job's users
//	                     whoever reads the network
//	an entry is alive    while its connection is       the same            once it echoes the reader's nonce, until
//	                                                                       its file is removed
//
// The secret itself is in no entry. The key of a job may be, in a blob.
//
// Over sockets the host listens, and the store is in its process. The others dial until it is there. Every connection
// begins with a handshake of the job's secret, over TLS if asked for. The sheets after it are not authenticated
// themselves: they ride on that connection. Their lengths are checked. A visitor puts its sheet by sending it, and the
// host sends its own over all connections. A dialer that finds a stranger at the host's address tries for 5 s more,
// since a job that has just ended may take that long to go.
//
// A visitor that loses its connection before it has the table dials again: the host may not have read its sheet. If the
// host has, and finds the connection lost before the visitor is back, that ends the meeting.
//
// In a directory, which exists and which all hosts share, the files of a job are in a directory below it that has the
// job's name. Each process has one file, with its rank, its nonce and a sequence number in its name. To put a sheet it
// writes the next file under another name, renames it, and removes the last one. So a name always means the same bytes,
// and nobody depends on how long a file system caches them. A file ends with an HMAC of the job's secret over its name
// and its bytes. It echoes the nonces of the processes whose files its writer has read: the host reads all, the others
// read the host.
//
//	visitor                                    host
//	1.NONCE.0 {here}                           0.NONCE.0 {here}
//	1.NONCE.1 {here, echo of the host}  ──▶    0.NONCE.1 {here, echo of the visitor}: each is alive to the other
//	                               ◀──         0.NONCE.2 {table}
//	1.NONCE.2 {got}                     ──▶    0.NONCE.3 {begin}
//	removes its file                    ──▶    removes what is left, and the directory
//
// Files of an earlier run that was killed echo no nonce of this run, so nobody believes them. The host removes them
// when the job begins. So a job's name may be used again after a crash, but by one job at a time. What is needed:
//
//   - PATH is writable for the users of the job only, since whoever may write there can remove files. A job without a
//     secret refuses one that is not, and a directory of the job's name that another user has made.
//   - On NFS, directories are not cached for long: mount options lookupcache=none or a small acdirmax. Otherwise each
//     of the steps above takes up to a minute.
//   - The directory of a job name whose killed runs have left 65,536 files is removed by hand.
//
// A process that is killed is noticed at the end of the time only, since nothing connects it with the others.
package rendezvous
