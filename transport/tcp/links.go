package tcp

import (
	"context"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/hosts"
	"gogcl.dev/transport/internal/stream"
)

// endpoint is a lane with what the replicas have agreed on about their links.
type endpoint struct {
	*stream.Lane
	*hosts.Table
	generation *generation
}

// Dup implements transport.Endpoint.
func (e *endpoint) Dup(ctx context.Context) (transport.Endpoint, error) {
	d, err := e.Lane.Dup(ctx)
	if err != nil {
		return nil, err
	}
	return e.generation.newEndpoint(d.(*stream.Lane), e.Table), nil
}

// The links, as gclperf shows them on the machine of docs/design/performance.md: half of a small all-reduce between
// two, and the speed of one of 16 MiB. A network is taken for one of 10 Gbit/s, in one room. Rings in memory are of the
// class of sockets: methods that are good for messages over those are good there (AMD EPYC, two cores, 2026-11-27: up
// to 128 KiB between two recursive_doubling, then direct).
var (
	localLink   = transport.Link{Class: transport.SocketLink, Latency: 6 * time.Microsecond, BytesPerSecond: 3e9}
	memoryLink  = transport.Link{Class: transport.SocketLink, Latency: 1200 * time.Nanosecond, BytesPerSecond: 1e10}
	networkLink = transport.Link{Class: transport.NetworkLink, Latency: 30 * time.Microsecond, BytesPerSecond: 1.2e9}
)

// links are those of replicas with addresses: within a host, where all that have unix sockets use them, or memory, and
// between hosts. Where not all name their machine alike it has no name.
func links(over Network, addresses []Address) (local, network transport.Link) {
	local, network = localLink, networkLink
	local.Transport, network.Transport = string(Unix), string(TCP)
	if over.memory() {
		local = memoryLink
		local.Transport = string(over)
	}
	local.Machine = addresses[0].Machine
	for _, a := range addresses {
		if a.Unix == "" {
			local.Transport = string(TCP)
		}
		if a.Machine != local.Machine {
			local.Machine = ""
		}
	}
	return local, network
}
