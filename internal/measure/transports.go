package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/methods/cost"
	"gogcl.dev/transport/mpi"
	"gogcl.dev/transport/sim"
)

// inproc is the transport among goroutines of one process.
const inproc = "inproc"

// simulated is that among goroutines on a network of package cost, in its time. All others are between processes.
const simulated = "sim"

// inProcess reports whether the replicas of a transport are goroutines of this process.
func inProcess(transport string) bool { return transport == inproc || transport == simulated }

// overMPI is MPI itself, whose processes mpirun starts.
const overMPI = "mpi"

// transports are the values of -transport.
var transports = []string{inproc, "tcp", "unix", "shm", overMPI, simulated}

// known are those that the program has.
func (r *Flags) known() []string {
	if r.simulates {
		return transports
	}
	return transports[:len(transports)-1]
}

// connect says what the replicas talk over. job is the number of processes in the job that has started this one, 0
// where there is none. auto is only a job's, which may be on several hosts.
func (r *Flags) connect(s *Settings, given Given, n, job int) error {
	s.Transports = []string{r.transport}
	if r.several {
		s.Transports = strings.Split(r.transport, ",")
	}
	s.Transport, s.Processes = s.Transports[0], job > 0
	for _, name := range s.Transports {
		s.Processes = s.Processes || !inProcess(name)
		switch {
		case !slices.Contains(r.known(), name):
			return Unknown("-transport", name, r.known())
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
	case job > 0 && given.Has("transport") && inProcess(r.transport):
		return fmt.Errorf("-transport %s is among goroutines of one process, and this is one of the %d processes "+
			"of a job: leave it out, or start %s by itself", r.transport, job, r.program)
	}
	s.N = n
	if err := r.simulate(s, given); err != nil {
		return err
	}
	if job > 0 {
		s.N = job
		if !given.Has("transport") {
			s.Transport = cmp.Or(os.Getenv("GCL_TRANSPORT"), "auto")
			s.Transports = []string{s.Transport}
		}
	}
	return Once("-transport", s.Transports)
}

// simulate reads the network of -transport sim, which says how many replicas there are.
func (r *Flags) simulate(s *Settings, given Given) error {
	switch sim := slices.Contains(s.Transports, simulated); {
	case !sim && given.Has("network"):
		return errors.New("-network is that of -transport sim")
	case !sim && given.Has("overhead"):
		return errors.New("-overhead is that of -transport sim")
	case !sim:
		return nil
	case len(s.Transports) > 1:
		return errors.New("-transport sim is measured by itself: its times are those of a network, and not of this machine")
	case r.overhead < 0 || r.overhead > time.Second:
		return fmt.Errorf("-overhead %v, want 0 to 1s", r.overhead)
	case r.network == "":
		return errors.New("-transport sim needs a -network, such as torus:8x8 or fattree:16x8")
	}
	network, err := command.Network(r.network)
	if err != nil {
		return fmt.Errorf("-network: %w", err)
	}
	s.Network = cost.Model{Network: network, Overhead: r.overhead}
	if n := network.Replicas(); given.Has("n") && n != s.N {
		return fmt.Errorf("%s %d, and -network %s has %d replicas: leave %[1]s out", given.As("n"), s.N, r.network, n)
	}
	s.N, s.On = network.Replicas(), r.network
	if r.overhead > 0 {
		s.On += fmt.Sprint(" -overhead ", r.overhead)
	}
	return nil
}

// Run has a body run on the replicas of this process, over the transport of the settings.
func (s *Settings) Run(ctx context.Context, body func(context.Context, *gcl.Comm) error) error {
	if s.Transport != simulated {
		return gcl.Run(ctx, s.N, body)
	}
	net, endpoints, err := sim.New(sim.Config{Model: s.Network})
	if err != nil {
		return err
	}
	s.Clock = net.Now
	return gcl.Run(ctx, s.N, body, gcl.WithEndpoints(endpoints))
}

// Over is the settings of one of several transports.
func (s *Settings) Over(transport string) *Settings {
	one := *s
	one.Transport, one.Transports, one.Processes = transport, []string{transport}, !inProcess(transport)
	return &one
}

// joins is the transport to join a job with: "" where the job is to say, or the flag is wrong.
func (r *Flags) joins() string {
	if inProcess(r.transport) || !slices.Contains(transports, r.transport) {
		return ""
	}
	return r.transport
}
