package tcp

import (
	"context"
	"crypto/rand"
	"math/bits"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/segment"
)

// New connects n replicas of this process over sockets of this host, and returns their endpoints by rank. It is for
// tests and comparisons: package inproc is many times as fast within a process. The errors are those of Listen and
// Listener.Connect.
func New(n int, network Network) ([]transport.Endpoint, error) {
	return newAll(n, Config{Network: network})
}

// newAddresses bounds how many addresses the segments of the replicas of New take, each of which is mapped n times: 1
// TiB, or 1 GiB where addresses have 32 bits.
const newAddresses = 1 << (30 + 10*(bits.UintSize/64))

// newAll connects n replicas of this process, all with one Config.
func newAll(n int, c Config) ([]transport.Endpoint, error) {
	c.Size, c.Job, c.Secret = n, "one process", make([]byte, 32)
	rand.Read(c.Secret)
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.form == (segment.Form{}) {
		c.form = segment.DefaultForm.Within(newAddresses / int64(n) / int64(n))
	}
	listeners, addresses, err := listenAll(c)
	if err != nil {
		return nil, err
	}
	return connectAll(listeners, addresses)
}

// connectAll connects the replicas of this process that listen. The first error ends the others' wait, closes all of
// them, and is the one returned.
func connectAll(listeners []*Listener, addresses []Address) ([]transport.Endpoint, error) {
	ends := make([]transport.Endpoint, len(listeners))
	connecting, ctx := errgroup.WithContext(context.Background())
	for i, l := range listeners {
		connecting.Go(func() (err error) {
			ends[i], err = l.Connect(ctx, addresses)
			return err
		})
	}
	if err := connecting.Wait(); err != nil {
		for _, e := range ends {
			if e != nil {
				e.Close()
			}
		}
		return nil, err
	}
	return ends, nil
}

// listenAll has all replicas of a Config listen, in this process.
func listenAll(c Config) ([]*Listener, []Address, error) {
	listeners, addresses := make([]*Listener, c.Size), make([]Address, c.Size)
	for i := range listeners {
		c.Rank = i
		var err error
		if listeners[i], err = Listen(c); err != nil {
			for _, l := range listeners[:i] {
				l.Close()
			}
			return nil, nil, err
		}
		addresses[i] = listeners[i].Address()
	}
	return listeners, addresses, nil
}
