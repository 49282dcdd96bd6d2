//go:build mpi

package mpi

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// launchers are the programs that start jobs, by library: the names that tell apart what is installed side by side come
// first.
var launchers = map[string][]string{
	"Open MPI": {"mpirun.openmpi", "mpirun", "mpiexec"},
	"MPICH":    {"mpirun.mpich", "mpiexec.hydra", "mpirun", "mpiexec"},
}

// Mpirun is the beginning of the command line that starts n processes on this host, by the launcher of the library that
// the program is built with. The program and its arguments go behind it.
func Mpirun(n int) ([]string, error) {
	names := launchers[headers()]
	if len(names) == 0 {
		names = []string{"mpirun", "mpiexec"}
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		command := []string{path, "-np", strconv.Itoa(n)}
		if headers() == "Open MPI" {
			command = append(command, "--oversubscribe") // else it starts no more processes than there are cores
		}
		return command, nil
	}
	return nil, fmt.Errorf("mpi: the launcher of %s is not installed: want one of %s in PATH", headers(),
		strings.Join(names, ", "))
}
