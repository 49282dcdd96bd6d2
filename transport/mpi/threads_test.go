//go:build mpi

package mpi

import "testing"

// TestThreads: a library that grants less than calls by several threads is an error that names it, and what it grants.
// The numbers of the levels are 0 to 3 in Open MPI and MPICH.
func TestThreads(t *testing.T) {
	if err := threads(3, "a library"); err != nil {
		t.Error(err)
	}
	for provided, name := range []string{"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED"} {
		want := "mpi: a library grants " + name +
			", want MPI_THREAD_MULTIPLE: use a library that is built for several threads"
		if err := threads(provided, "a library"); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
