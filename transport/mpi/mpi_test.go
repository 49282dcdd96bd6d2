//go:build mpi

package mpi

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/transporttest"
)

// launcher starts processes by the mpirun of the library that the test is built with.
func launcher(t *testing.T) transporttest.Launcher {
	t.Helper()
	if _, err := Mpirun(2); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1") // a container's CI
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	return transporttest.Launcher{
		Sizes: []int{2, 3, 4}, // some cases are for 3 replicas alone
		Command: func(n int, program []string) *exec.Cmd {
			mpirun, _ := Mpirun(n) // it is there
			return exec.Command(mpirun[0], append(mpirun[1:], program...)...)
		},
		Rank: func() int {
			rank, _, err := World(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return rank
		},
		Leave: func() {
			if err := Finalize(t.Context()); err != nil {
				t.Error(err)
			}
		},
	}
}

// TestConformance runs the suite with one process for each replica, under mpirun.
func TestConformance(t *testing.T) {
	transporttest.RunLaunched(t, launcher(t), func(t testing.TB, rank, size int, dir string) transport.Endpoint {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		e, err := Join(ctx, Config{})
		if err != nil {
			t.Fatal(err)
		}
		_ = e.(transport.Native) // which the suite tests where it is offered
		return e
	}, transporttest.Buffers, transporttest.NoAlloc)
}
