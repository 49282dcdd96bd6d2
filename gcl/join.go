package gcl

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"gogcl.dev/gcl/internal/launch"
	"gogcl.dev/transport/tcp"
)

// JoinConfig says which job a process joins, and how. The zero value is what the launcher's environment says: gclrun,
// torchrun, Open MPI, MPICH, Slurm and Kubernetes are known, and so are RANK, WORLD_SIZE and GCL_RENDEZVOUS set by
// hand. A field that is not zero comes before the environment.
type JoinConfig struct {
	Rank, Size int // Size 0: both from the environment

	// Job tells jobs apart that share a host or a directory. "": GCL_JOB, or the launcher's name of the job.
	Job string

	// Rendezvous is where the replicas find each other: "host:port" at replica 0, "unix:@NAME" on one host, or
	// "dir:PATH", a directory that all hosts share. "": GCL_RENDEZVOUS, or what the launcher says.
	Rendezvous string

	// Transport is what connects the replicas: "tcp", "unix", "shm", "mpi" or "auto". shm is memory that all
	// processes of a job share: they are on one Linux host and of one user, without TLS. auto is such memory between
	// processes of one host where that can be, and else unix sockets, and TCP between hosts; Explanation.Links says
	// what it is, and why not shm. But where a program that has been built with the tag mpi is started by an MPI
	// launcher, auto is MPI, where Job and Insecure mean nothing: see docs/design/mpi.md. "": GCL_TRANSPORT, or "auto".
	Transport string

	// Interface says which addresses of this host the others are told: names of interfaces ("eth,ib": what begins with
	// either; "=eth0"; "^docker": all but those) or a CIDR ("10.0.0.0/8"). "": GCL_INTERFACE, or the address that
	// reached the rendezvous.
	Interface string

	Ports   [2]int        // first and last port to listen on; zero: GCL_PORTS, or any
	Timeout time.Duration // for everybody to come, over MPI from the end of MPI_Init on; 0: 60 s
	Silence time.Duration // after which a replica that says nothing counts as lost; 0: 10 s; less than 0: never

	// Secret is what the replicas of the job know, and nobody else. Nil: GCL_SECRET, or what the file GCL_SECRET_FILE
	// holds. gclrun makes one for each job. Off one host a job has a secret or TLS, or is Insecure. There a secret has
	// 16 bytes or more, and its file is for its owner alone. On one host a job that has neither takes replicas of its
	// own user only.
	Secret   []byte
	Insecure bool

	// TLS encrypts all connections, by TLS 1.3, and has both sides of each verify the other's certificate. It needs a
	// certificate that is good for servers and clients, and in RootCAs or ClientCAs the authority of the others'.
	// Without ServerName the names in certificates are not compared, since replicas are dialed at addresses: each
	// certificate of the authority may be any replica. See docs/design/security.md. Nil: no encryption.
	TLS *tls.Config

	Checksum Checksum

	// Newcomer says that the job runs, as one made with an Elastic that has a Max, and that this process is to come
	// into it: in place of a replica that has died, or as one more. The replicas are found at Rendezvous, a socket, and
	// take it in when they rejoin: see Comm.Commit, Rejoin. Size is that with which the job began, and Rank of no
	// account. Or: GCL_NEWCOMER=1. Timeout bounds how long it looks for the job, and the context of Join how long it
	// waits.
	Newcomer bool

	// Logger is told how the joining goes, over sockets: after 5 s and then every 15 for whom this replica waits, and
	// at once what stands in the way, as a port in use or somebody with another secret. Nil: slog.Default().
	Logger *slog.Logger
}

// Checksum says which messages between processes carry a checksum (CRC32C) of their data.
type Checksum = tcp.Checksum

// The values of Checksum.
const (
	ChecksumAuto = tcp.ChecksumAuto // between hosts
	ChecksumOn   = tcp.ChecksumOn
	ChecksumOff  = tcp.ChecksumOff
)

// joinTimeout is JoinConfig.Timeout where that is 0.
const joinTimeout = time.Minute

// ErrNoJob is what Join returns when the process is in no job: no launcher has started it, and JoinConfig.Size is 0.
var ErrNoJob = newError("no job to join: the environment has no rank and no size, and JoinConfig.Size is 0")

// Join makes this process one replica of a job and returns its Comm, when all other replicas have joined too. All must
// have the same options, which includes GCL_OPTIONS, and the same version of this module; a difference is an error on
// everyone. So is a replica that does not come in time, comes twice, or has another size: the error names it. A second
// replica 0 gets an error alone, but in a directory.
//
// ctx bounds the joining, beside JoinConfig.Timeout; it does not bound the Comm. Close leaves the job: later calls of
// others with this replica are a *PeerError. A process that dies without Close aborts the calls of all others, which
// get a *PeerError that names it.
//
// A process that no launcher has started gets ErrNoJob: see RunOrJoin.
func Join(ctx context.Context, cfg JoinConfig, opts ...CommOption) (*Comm, error) {
	if ctx == nil {
		return nil, newError("Join needs a context")
	}
	joined, config, err := cfg.join(ctx, opts)
	if err != nil {
		return nil, err
	}
	var c *Comm
	endpoint := joined.Endpoint
	if joined.Generation > 0 {
		c, err = config.newcomer(joined)
	} else if err = config.place(endpoint); err == nil {
		c, err = newComm(endpoint, config)
	}
	if err != nil {
		endpoint.Abort(err)
		return nil, errors.Join(err, endpoint.Close())
	}
	c.beSeen()
	return c, nil
}

// RunProcess is Run for one replica of a job whose other replicas are other processes: it joins, calls body, and
// leaves.
//
// The first error that the body of any replica returns aborts the communicator: collectives of the others fail with
// ErrAborted, and their context is cancelled, but with [WithElastic]. RunProcess returns the error of this replica.
func RunProcess(ctx context.Context, cfg JoinConfig, body func(context.Context, *Comm) error,
	opts ...CommOption) error {
	if ctx == nil || body == nil {
		return newError("RunProcess needs a context and a body")
	}
	c, err := Join(ctx, cfg, opts...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	if c.conn.made.elastic == nil {
		watch.Go(func() { // for an abort by another process
			select {
			case <-c.conn.Endpoint.Done():
				cancel(c.conn.Endpoint.Err())
			case <-ctx.Done():
			}
		})
	}
	return runReplicas(ctx, []*Comm{c}, body)
}

// RunOrJoin is RunProcess where a launcher has started this process as a replica of a job, and else Run of n replicas
// as goroutines. n is the number of replicas that the program wants. 0 stands for any number: the size of the job, and
// without a job GOMAXPROCS. Another number than the size of the job is an error. The program need not know which it is:
// under "gclrun -n 4", "mpirun -np 4" or by itself it does the same.
func RunOrJoin(ctx context.Context, n int, body func(context.Context, *Comm) error, opts ...CommOption) error {
	if ctx == nil || body == nil {
		return newError("RunOrJoin needs a context and a body")
	}
	job, err := launch.Read(os.LookupEnv)
	switch {
	case errors.Is(err, launch.ErrNoJob):
		if set, err := launch.ReadSettings(os.LookupEnv); err == nil && set.Newcomer {
			return newError("GCL_NEWCOMER says that this process comes to a job, and the environment has no rank and no size of " +
				"one: give it what the others have")
		}
		if n == 0 {
			n = runtime.GOMAXPROCS(0)
		}
		return Run(ctx, n, body, opts...)
	case err != nil:
		return errorf("%w", err)
	case n != 0 && n != job.Size:
		return errorf("the program wants %d replicas, and the job has %d (by %s): start %d processes, or have the "+
			"program take any number", n, job.Size, job.Source, n)
	}
	return RunProcess(ctx, JoinConfig{}, body, opts...)
}

// aloneOnce is done when Run has looked whether its process is one of several.
var aloneOnce sync.Once

// sayAlone logs that Run makes n replicas in this process, where a launcher has started several such processes: as many
// jobs, which know nothing of each other.
func sayAlone(n int, lookup func(string) (string, bool)) {
	if job, err := launch.Read(lookup); err == nil && job.Size > 1 {
		slog.Warn(fmt.Sprintf("gcl: Run makes a job of %d replicas in this process, and so does each of the %d processes "+
			"that the launcher has started: call RunOrJoin for one job of %[2]d", n, job.Size), "launcher", job.Source)
	}
}

// transport is that of JoinConfig, or of the environment.
func (cfg JoinConfig) transport(job *launch.Job) string {
	return cmp.Or(cfg.Transport, job.Settings.Transport, "auto")
}

// network is the transport's word for a Transport of JoinConfig.
func network(transport string) (tcp.Network, error) {
	if name := tcp.Network(transport); slices.Contains(tcp.Networks(), name) {
		return name, nil
	}
	return "", fmt.Errorf("transport %q: want auto, tcp, unix, shm or mpi", transport)
}
