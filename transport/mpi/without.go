//go:build !mpi

package mpi

import (
	"context"
	"errors"

	"gogcl.dev/transport"
)

// Built says whether the program has been built with MPI.
const Built = false

var errNotBuilt = errors.New("mpi: the program has been built without MPI: build it with -tags mpi, which needs cgo " +
	"and an MPI library (Debian: apt-get install libopenmpi-dev, or libmpich-dev)")

// Join would connect the processes of an MPI job. It returns an error that says how to build the program.
func Join(context.Context, Config) (transport.Endpoint, error) { return nil, errNotBuilt }

// World would initialize MPI. It returns an error that says how to build the program.
func World(context.Context) (rank, size int, err error) { return 0, 0, errNotBuilt }

// Finalize would end MPI in this process.
func Finalize(context.Context) error { return nil }

// Mpirun would say how to start a job.
func Mpirun(n int) ([]string, error) { return nil, errNotBuilt }

// Library would say which MPI library the program has.
func Library() string { return "" }
