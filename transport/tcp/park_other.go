//go:build !linux

package tcp

import (
	"net"

	"gogcl.dev/transport/internal/stream"
)

func newParker() (stream.Parker, error) { return newBell(), nil }

// newLink makes a link of a connection that has shaken hands.
func newLink(conn net.Conn, ring int) (stream.Link, error) { return newPump(conn, ring), nil }
