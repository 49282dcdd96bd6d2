package tcp

import (
	"testing"

	"gogcl.dev/transport"
)

// TestLinkNames: a link within a host names the transport that all replicas have, and the machine that all name.
func TestLinkNames(t *testing.T) {
	for _, x := range []struct {
		a, b               Address
		transport, machine string
	}{
		{Address{Unix: "@a", Machine: "fast"}, Address{Unix: "@b", Machine: "fast"}, "unix", "fast"},
		{Address{Unix: "@a", Machine: "fast"}, Address{Machine: "slow"}, "tcp", ""},
		{Address{Machine: "fast"}, Address{}, "tcp", ""},
		{Address{}, Address{}, "tcp", ""},
	} {
		table := links(Auto, []Address{x.a, x.b, x.a, {Host: "elsewhere", Machine: x.a.Machine}})
		local, network := table.Link(0, 1), table.Link(0, 3)
		if local.Class != transport.SocketLink || local.Transport != x.transport || local.Machine != x.machine ||
			network.Class != transport.NetworkLink || network.Machine != "" {
			t.Errorf("%+v, %+v: %+v, %+v", x.a, x.b, local, network)
		}
	}
}
