//go:build mpi

package mpi

import (
	"context"
	"errors"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/hosts"
	"gogcl.dev/transport/internal/stream"
)

// endpoint is a lane with what the replicas have agreed on about their links.
type endpoint struct {
	*stream.Lane
	*hosts.Table
	world *world
	last  bool // Close finalizes MPI

	native nativeCall
}

// Close implements transport.Endpoint.
func (e *endpoint) Close() error {
	err := e.Lane.Close()
	if !e.last {
		return err
	}
	return errors.Join(err, e.world.finalize())
}

// finalize finalizes MPI when all others have left. After an abort it does not wait for them without end.
func (w *world) finalize() error {
	ctx := context.Background()
	if w.node.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, abortedLimit)
		defer cancel()
	}
	return Finalize(ctx)
}

// Dup implements transport.Endpoint.
func (e *endpoint) Dup(ctx context.Context) (transport.Endpoint, error) {
	d, err := e.Lane.Dup(ctx)
	if err != nil {
		return nil, err
	}
	return &endpoint{Lane: d.(*stream.Lane), Table: e.Table, world: e.world}, nil
}
