package main

import (
	"context"
	"fmt"
	"strings"

	"gogcl.dev/gcl"
)

// connection is a transport under its name: how replicas are started on it.
type connection struct {
	name string
	run  func(ctx context.Context, n int, body func(context.Context, *gcl.Comm) error) error
}

// connections are the transports that gclperf knows.
var connections = []connection{
	{"inproc", func(ctx context.Context, n int, body func(context.Context, *gcl.Comm) error) error {
		return gcl.Run(ctx, n, body)
	}},
}

// parseTransport finds a transport.
func parseTransport(name string) (connection, error) {
	var names []string
	for _, c := range connections {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	return connection{}, fmt.Errorf("-transport %q does not exist; there is %s", name, strings.Join(names, ", "))
}
