// Package watch has what the processes of a job say of themselves as data, and what follows from it: who waits for
// whom, and who comes late.
//
//	Process    what one process says: its replicas, their connections, their calls
//	Judge      of what all say, who waits for whom in which call, and for whom the job waits in the end
//	Lateness   who was last in calls that all wait for, and by how much
//	Answer     serves what a process says on a unix socket of its user; Ask asks all processes of this host
//
// It knows no communicator: package gcl fills in what it says.
package watch
