package tcp

import (
	"context"
	"fmt"
	"slices"
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

// links are those of replicas with addresses: within a host, where all that share memory go by it, and all that have
// unix sockets by those, and between hosts. Where not all replicas name their machine alike it has no name.
func links(over Network, addresses []Address) *hosts.Table {
	network := networkLink
	network.Transport = string(TCP)
	names := make([]string, len(addresses))
	machine := addresses[0].Machine
	for r, a := range addresses {
		names[r] = a.Host
		if a.Machine != machine {
			machine = ""
		}
	}
	return hosts.NewTable(names, func(name string) transport.Link {
		local := within(over, name, addresses)
		local.Machine = machine
		return local
	}, network)
}

// within is the link between replicas of one host.
func within(over Network, host string, addresses []Address) transport.Link {
	shm, local := memoryLink, localLink
	shm.Transport, local.Transport = string(Shm), string(Unix)
	if over.memory() {
		return shm
	}
	first := slices.IndexFunc(addresses, func(a Address) bool { return a.Host == host })
	shares := true
	for r, a := range addresses {
		if a.Host != host {
			continue
		}
		if a.Unix == "" {
			local.Transport = string(TCP)
		}
		if a.shares(addresses[first]) {
			continue
		}
		shares = false
		switch {
		case local.Why != "":
		case a.Sockets != "":
			local.Why = fmt.Sprintf("replica %d: %s", r, a.Sockets)
		case a.Memory != "" && addresses[first].Memory != "":
			local.Why = fmt.Sprintf("replica %d is of user %s, and replica %d of user %s", r, a.Memory, first,
				addresses[first].Memory)
		}
	}
	if shares {
		return shm
	}
	return local
}
