//go:build !race

package gcl_test

import (
	"fmt"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/transport/tcp"
)

// TestSocketsSteadyState: over sockets too, calls allocate nothing.
func TestSocketsSteadyState(t *testing.T) {
	onSockets(t, func(t *testing.T, network tcp.Network) {
		for _, n := range []int{2, 3} {
			for _, bytes := range []int{1, 1000, 1 << 18} {
				for _, o := range []gcl.Options{{}, {Reproducible: true}, {Method: methods.ClockwiseRing}} {
					if o.Reproducible && bytes == 1 {
						continue
					}
					t.Run(fmt.Sprintf("n=%d/size=%d/method=%v/reproducible=%v", n, bytes, o.Method, o.Reproducible),
						func(t *testing.T) {
							steady(t, n, o, bytes, func(c *gcl.Comm) *gcl.Comm { return c }, sockets(t, network, n))
						})
				}
			}
		}
	})
}
