package gcl

import (
	"cmp"
	"context"

	"gogcl.dev/gcl/internal/launch"
	"gogcl.dev/transport"
	"gogcl.dev/transport/mpi"
)

// overMPI is the text of the transport that is MPI itself.
const overMPI = "mpi"

// byMPI reports whether the job goes over MPI: where Transport says so, or says nothing, the program has been built
// with MPI, and an MPI launcher has started it.
func (cfg JoinConfig) byMPI(job *launch.Job) (bool, error) {
	transport := cfg.transport(job)
	if _, err := network(transport); transport != overMPI && err != nil {
		return false, errorf("%w", err)
	}
	over := transport == overMPI || transport == "auto" && mpi.Built && job.MPI
	if !over {
		return false, nil
	}
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"TLS", cfg.TLS != nil}, {"Secret", cfg.Secret != nil}, {"Rendezvous", cfg.Rendezvous != ""},
		{"Interface", cfg.Interface != ""}, {"Ports", cfg.Ports != [2]int{}}, {"Checksum", cfg.Checksum != ChecksumAuto},
	} {
		if field.set {
			return false, errorf("JoinConfig.%s is for sockets, and the job goes over MPI: leave it out, or set Transport "+
				"to tcp or unix", field.name)
		}
	}
	return true, nil
}

// joinMPI joins the job of MPI_COMM_WORLD. MPI says which replica this is. The time for everybody to come begins when
// MPI has come up here: what that takes is a matter of mpirun, which starts all processes and ends all if one fails.
func (cfg JoinConfig) joinMPI(ctx context.Context, job *launch.Job, opts []CommOption) (transport.Endpoint, *config,
	error) {
	rank, size, err := mpi.World(ctx)
	if err != nil {
		return nil, nil, errorf("join: %w", err)
	}
	if job.Rank != rank || job.Size != size {
		if size == 1 { // nobody else is in that world
			mpi.Finalize(ctx)
		}
		source := "by " + string(job.Source)
		if job.Source == "" {
			source = "by JoinConfig"
		}
		return nil, nil, errorf("join: this is replica %d of %d %s, and rank %d of %d in %s: start the program by the "+
			"mpirun of the library that it is linked with, or set Transport to tcp or unix", job.Rank, job.Size, source,
			rank, size, mpi.Library())
	}
	config, blob, err := propose(size, opts)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := cfg.limited(ctx)
	defer cancel()
	endpoint, err := mpi.Join(ctx, mpi.Config{Blob: blob, Agree: config.agreeAll, Silence: cfg.Silence, Last: true})
	if err != nil {
		return nil, nil, errorf("join: %w", err)
	}
	config.job = cmp.Or(cfg.Job, job.Name)
	return endpoint, config, nil
}
