// Package hosts tells which replicas share a host, for the transports whose replicas are processes.
package hosts

import (
	"crypto/rand"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"gogcl.dev/transport"
)

// Name is the name of this process's host: it is the same for processes that reach each other's loopback and abstract
// sockets. On Linux it is the number of the kernel's boot and that of the network namespace. Containers with networks
// of their own are hosts of their own; containers with that of the machine are one host.
//
// Where the kernel does not tell both (/proc is not mounted, some sandboxes) it is a name that no other process has:
// host names repeat. The same name on two hosts is still possible, for virtual machines started from one snapshot.
func Name() string { return name() }

var name = sync.OnceValue(func() string { return nameOf(os.ReadFile, os.Readlink, runtime.GOOS) })

// nameOf is Name of a system.
func nameOf(read func(string) ([]byte, error), readLink func(string) (string, error), system string) string {
	host, _ := os.Hostname()
	if system != "linux" {
		return host // and the network is the machine's
	}
	boot, err := read("/proc/sys/kernel/random/boot_id")
	space, failed := readLink("/proc/self/ns/net")
	if id := strings.TrimSpace(string(boot)); err == nil && failed == nil && id != "" && space != "" {
		return id + " " + space
	}
	return fmt.Sprintf("process %d of %s, whose kernel does not tell its hosts apart: %s", os.Getpid(), host, rand.Text())
}

// Table says which replicas share a host, and what connects each pair. It carries out transport.Linked.
type Table struct {
	of      []int            // by replica
	within  []transport.Link // by host
	network transport.Link
}

// NewTable numbers the hosts of replicas, given by name, in the order of their first replicas. within is what connects
// replicas of a host, network those of two.
func NewTable(names []string, within func(name string) transport.Link, network transport.Link) *Table {
	t := &Table{network: network}
	numbers := map[string]int{}
	for _, name := range names {
		if _, ok := numbers[name]; !ok {
			numbers[name] = len(numbers)
			t.within = append(t.within, within(name))
		}
		t.of = append(t.of, numbers[name])
	}
	return t
}

// Host implements transport.Linked.
func (t *Table) Host(replica int) int {
	if replica < 0 || replica >= len(t.of) {
		return -1
	}
	return t.of[replica]
}

// Link implements transport.Linked.
func (t *Table) Link(a, b int) transport.Link {
	switch one, other := t.Host(a), t.Host(b); {
	case a == b || one < 0 || other < 0:
		return transport.Link{}
	case one == other:
		return t.within[one]
	}
	return t.network
}

// Place is where a replica runs.
type Place struct {
	Host string // the Name of its host
	CPUs []int  // the processors that it may run on, if known
}

// Crowded reports whether the replicas on one replica's host outnumber the processors that they may run on, all
// together.
func Crowded(places []Place, rank int) bool {
	here, all := 0, map[int]bool{}
	for _, p := range places {
		if p.Host != places[rank].Host {
			continue
		}
		here++
		for _, cpu := range p.CPUs {
			all[cpu] = true
		}
	}
	return len(all) > 0 && here > len(all)
}
