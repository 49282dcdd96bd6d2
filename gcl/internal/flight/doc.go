// Package flight has the flight recorders of a communicator: what each connection's last collectives were, when they
// began and how they went.
//
//	Recorder      one connection's; who has the connection's turn writes it, anybody may read
//	Recorders     all connections' of a communicator in this process: Dump, Now
//	Whereabouts   what they say about who is where, for the text of a call that timed out
//
// It knows no Comm, and of operators only the words that it is given.
package flight
