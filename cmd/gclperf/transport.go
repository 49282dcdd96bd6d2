package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"gogcl.dev/transport/mpi"
)

// inproc is the transport among goroutines of one process. All others are between processes.
const inproc = "inproc"

// overMPI is MPI itself, whose processes mpirun starts.
const overMPI = "mpi"

// transports are the values of -transport.
var transports = []string{inproc, "tcp", "unix", overMPI}

// connect says what the replicas talk over. job is the number of processes in the job that has started this one, 0
// where there is none. auto is only a job's, which may be on several hosts.
func (r *raw) connect(s *settings, given givenFlags, job int) error {
	s.transport, s.processes = r.transport, job > 0 || r.transport != inproc
	switch {
	case !slices.Contains(transports, r.transport):
		return unknown("-transport", r.transport, transports)
	case job > 0 && given.has("n") && r.n != job:
		return fmt.Errorf("-n %d, and the job that has started this process has %d replicas: leave -n out, or start %d "+
			"processes", r.n, job, r.n)
	case job > 0 && given.has("transport") && r.transport == inproc:
		return fmt.Errorf("-transport inproc is among goroutines of one process, and this is one of the %d processes "+
			"of a job: leave it out, or start gclperf by itself", job)
	case r.transport == overMPI && !mpi.Built:
		return errors.New("-transport mpi needs gclperf built with MPI: go build -tags mpi ./cmd/gclperf")
	case s.processes && given.has("floor"):
		return errors.New("-floor is that of one address space, want -transport inproc")
	}
	s.n = r.n
	if job > 0 {
		s.n = job
		if !given.has("transport") {
			s.transport = cmp.Or(os.Getenv("GCL_TRANSPORT"), "auto")
		}
	}
	return nil
}

// network is the transport to join a job with: "" where the job is to say, or the flag is wrong.
func (r *raw) network() string {
	if r.transport == inproc || !slices.Contains(transports, r.transport) {
		return ""
	}
	return r.transport
}
