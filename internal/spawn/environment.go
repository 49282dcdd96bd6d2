package spawn

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// foreign are the prefixes of other launchers' variables: those of Open MPI, PMI (MPICH, Intel MPI), Slurm and
// torchrun. A replica would find a second rank in them.
var foreign = []string{"OMPI_", "PMIX_", "PMI_", "SLURM_", "TORCHELASTIC_"}

// replaced are single variables that a job sets anew or that would contradict those it sets: the rest of torchrun's,
// those of Hydra (MPICH), of Kubernetes, and those of a job around this one.
var replaced = []string{
	"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
	"GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME",
	"MPI_LOCALRANKID", "MPI_LOCALNRANKS", "JOB_COMPLETION_INDEX",
	"GCL_JOB", "GCL_RENDEZVOUS", "GCL_SECRET", "GCL_SECRET_FILE", "GCL_TRANSPORT", "GCL_NEWCOMER",
}

// Environment is that of the replicas of one job, all on this host:
//
//	RANK, LOCAL_RANK                0 to n-1
//	WORLD_SIZE, LOCAL_WORLD_SIZE    n
//	GCL_JOB                         a random name of the job
//	GCL_RENDEZVOUS                  an abstract unix socket on Linux; elsewhere a port of 127.0.0.1 that was free
//	GCL_SECRET                      32 random bytes, in hexadecimal digits
//	GCL_TRANSPORT                   auto, tcp or unix
type Environment struct {
	base []string // the same for all replicas
	n    int
}

// NewEnvironment makes a job's name, secret and place to meet. base is the environment of this process, whose variables
// of other launchers are left out.
func NewEnvironment(base []string, n int, transport string) (*Environment, error) {
	meet, err := rendezvous()
	if err != nil {
		return nil, err
	}
	e := &Environment{n: n}
	for _, entry := range base {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(replaced, name) &&
			!slices.ContainsFunc(foreign, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			e.base = append(e.base, entry)
		}
	}
	e.base = append(e.base, "GCL_JOB="+random(8), "GCL_RENDEZVOUS="+meet, "GCL_SECRET="+random(32),
		"GCL_TRANSPORT="+transport)
	return e, nil
}

// Replica is the environment of one replica.
func (e *Environment) Replica(rank int) []string {
	return append(slices.Clip(e.base),
		fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("WORLD_SIZE=%d", e.n),
		fmt.Sprintf("LOCAL_RANK=%d", rank), fmt.Sprintf("LOCAL_WORLD_SIZE=%d", e.n))
}

// random is n random bytes in hexadecimal digits.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
