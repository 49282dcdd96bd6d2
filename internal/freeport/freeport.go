// Package freeport finds ports of the loopback interface at which somebody can listen later.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports of which one is taken: below those that systems give to connections (from 32768 on Linux, from 49152 on
// others), so that no connection comes to have one between Address and the listener.
const first, last = 16384, 32767

// Address is the address of a port of the loopback interface, as "127.0.0.1:20000", at which nobody listened a moment
// ago. Another program that listens at a port of its own choice can still take it.
func Address() (string, error) {
	var err error
	for range 100 {
		var l net.Listener
		l, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first+1)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", fmt.Errorf("no free port of the loopback interface: %w", err)
}
