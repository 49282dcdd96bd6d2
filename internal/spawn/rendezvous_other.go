//go:build !linux

package spawn

import "gogcl.dev/internal/freeport"

// rendezvous is a port of the loopback interface that was free a moment ago. Another program may take the port before
// replica 0 does: joining then fails.
func rendezvous() (string, error) { return freeport.Address() }
