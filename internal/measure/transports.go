package measure

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"gogcl.dev/transport/mpi"
)

// inproc is the transport among goroutines of one process. All others are between processes.
const inproc = "inproc"

// overMPI is MPI itself, whose processes mpirun starts.
const overMPI = "mpi"

// transports are the values of -transport.
var transports = []string{inproc, "tcp", "unix", "shm", overMPI}

// connect says what the replicas talk over. job is the number of processes in the job that has started this one, 0
// where there is none. auto is only a job's, which may be on several hosts.
func (r *Flags) connect(s *Settings, given Given, n, job int) error {
	s.Transports = []string{r.transport}
	if r.several {
		s.Transports = strings.Split(r.transport, ",")
	}
	s.Transport, s.Processes = s.Transports[0], job > 0
	for _, name := range s.Transports {
		s.Processes = s.Processes || name != inproc
		switch {
		case !slices.Contains(transports, name):
			return Unknown("-transport", name, transports)
		case name == overMPI && !mpi.Built:
			return fmt.Errorf("-transport mpi needs %s built with MPI: go build -tags mpi ./cmd/%[1]s", r.program)
		}
	}
	switch {
	case job > 0 && given.Has("n") && n != job:
		return fmt.Errorf("-n %d, and the job that has started this process has %d replicas: leave -n out, or start %d "+
			"processes", n, job, n)
	case job > 0 && len(s.Transports) > 1:
		return fmt.Errorf("-transport %s: this is one of the %d processes of a job, which has one transport: want one, or "+
			"start %s by itself", r.transport, job, r.program)
	case job > 0 && given.Has("transport") && r.transport == inproc:
		return fmt.Errorf("-transport inproc is among goroutines of one process, and this is one of the %d processes "+
			"of a job: leave it out, or start %s by itself", job, r.program)
	}
	s.N = n
	if job > 0 {
		s.N = job
		if !given.Has("transport") {
			s.Transport = cmp.Or(os.Getenv("GCL_TRANSPORT"), "auto")
			s.Transports = []string{s.Transport}
		}
	}
	return Once("-transport", s.Transports)
}

// Over is the settings of one of several transports.
func (s *Settings) Over(transport string) *Settings {
	one := *s
	one.Transport, one.Transports, one.Processes = transport, []string{transport}, transport != inproc
	return &one
}

// network is the transport to join a job with: "" where the job is to say, or the flag is wrong.
func (r *Flags) network() string {
	if r.transport == inproc || !slices.Contains(transports, r.transport) {
		return ""
	}
	return r.transport
}
