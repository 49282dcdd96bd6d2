package transport

import "sync"

// Shared is what an Endpoint may offer beside Exchange when several replicas of its transport are in one process.
type Shared interface {
	Endpoint

	// Shared returns one map for all endpoints of the transport in this process, Dups included, in which their users
	// find each other, under keys of their own types. The transport puts nothing into it.
	Shared() *sync.Map
}
