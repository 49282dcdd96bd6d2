package launch

import (
	"errors"
	"fmt"
	"slices"
)

// Source names the launcher that a job's rank and size come from. In a text it follows the word "by".
type Source string

// The sources, in the order in which they are asked.
const (
	GCLRun     Source = "gclrun"
	Torchrun   Source = "torchrun"
	ByHand     Source = "hand" // RANK and WORLD_SIZE, set by a person or a script
	OpenMPI    Source = "Open MPI"
	PMI        Source = "PMI" // MPICH and its descendants
	Slurm      Source = "Slurm"
	Kubernetes Source = "Kubernetes"
)

// Job is a process's place in its job.
type Job struct {
	Source     Source
	Rank, Size int

	// LocalRank is the rank among the processes of this host, -1 if unknown.
	LocalRank int
	// LocalSize is the number of processes on this host, 0 if unknown.
	LocalSize int

	// Name tells jobs apart that share a host or a directory: GCL_JOB or the launcher's own name of the job. "" if
	// there is neither. It has at most 64 bytes, printable ASCII without spaces.
	Name string

	// MPI says that an MPI library finds its job in the environment: mpirun, mpiexec, or srun with a plugin for it, has
	// started the process.
	MPI bool

	Settings Settings

	rendezvous Rendezvous
	noMeeting  string // reason why rendezvous is zero
}

// ErrNoJob is the error of an environment in which no launcher has set a rank or a size.
var ErrNoJob = errors.New("no launcher has started this process: its environment has no rank and no size")

// pmixRank is set by launchers for processes that use PMIx: srun --mpi=pmix is one.
const pmixRank = "PMIX_RANK"

// maxSize is the largest size of a job, since schedules have at most that many ranks.
const maxSize = 1 << 16

// Read reads the environment. lookup is [os.LookupEnv] or does as it does; a variable that is empty counts as not set.
//
// Without a launcher's variables the error is an [ErrNoJob] and the Job has its Settings alone. Every other error names
// the variables that are wrong, and their values; the Job is then zero.
func Read(lookup func(string) (string, bool)) (Job, error) {
	settings, err := ReadSettings(lookup)
	if err != nil {
		return Job{}, err
	}
	env := environment(lookup)
	var agreed []reading
	for _, s := range env.sources() {
		found := env.firstSet(s.marks...)
		if found == "" || env.isOuter(s, found, agreed) {
			continue
		}
		r, err := env.read(s, found, settings)
		if err != nil {
			return Job{}, err
		}
		if len(agreed) > 0 && (agreed[0].rank != r.rank || agreed[0].size != r.size) {
			return Job{}, fmt.Errorf("%s, but %s: remove the variables of the one that did not start this process",
				env.says(agreed[0]), env.says(r))
		}
		agreed = append(agreed, r)
	}
	if len(agreed) == 0 {
		return Job{Settings: settings}, env.noJob()
	}
	return combine(env, agreed, settings), nil
}

// isOuter reports whether a source is passed over: it started the launcher of a source in agreed, or it counts only if
// it is complete, and is not. found is the mark by which the source was found.
func (e environment) isOuter(s source, found string, agreed []reading) bool {
	return s.alone && len(agreed) > 0 && e.missing(found, s.rank, s.size) != nil ||
		slices.ContainsFunc(agreed, func(r reading) bool { return slices.Contains(r.inside, s.name) })
}

// says is one side of a contradiction.
func (e environment) says(r reading) string {
	return fmt.Sprintf("rank %d of %d by %s (%s, %s)", r.rank, r.size, r.name, e.show(r.source.rank),
		e.show(r.source.size))
}

// noJob is an [ErrNoJob], with advice if the process runs within an allocation of Slurm.
func (e environment) noJob() error {
	if found := e.firstSet("SLURM_JOB_ID"); found != "" {
		return fmt.Errorf("%w (%s, but this is no task of a step: srun starts tasks)", ErrNoJob, e.show(found))
	}
	return ErrNoJob
}

// combine makes the job from sources that agree on its rank and size. The first source with a name gives the name, and
// the first with a local rank or size gives both of these.
func combine(env environment, agreed []reading, settings Settings) Job {
	job := Job{
		Source: agreed[0].name, Rank: agreed[0].rank, Size: agreed[0].size, LocalRank: -1,
		Name: settings.Job, Settings: settings,
	}
	for _, r := range agreed {
		job.MPI = job.MPI || r.name == OpenMPI || r.name == PMI || r.name == Slurm && env.firstSet(pmixRank) != ""
		if job.LocalRank < 0 && job.LocalSize == 0 {
			job.LocalRank, job.LocalSize = r.localRank, r.localSize
		}
		if job.Name == "" {
			job.Name = tidy(r.job, maxJob)
		}
	}
	job.rendezvous, job.noMeeting = meet(env, agreed, job)
	return job
}

// Rendezvous is where the replicas of the job meet. The error says why the environment does not tell, and what to set.
func (j Job) Rendezvous() (Rendezvous, error) {
	if j.rendezvous == (Rendezvous{}) {
		return Rendezvous{}, fmt.Errorf("no rendezvous (started by %s: %s): set %s on all ranks to host:port "+
			"(a free port of rank 0's host), to dir:PATH (a directory that all hosts share), or to unix:@NAME "+
			"(all on one host)", j.Source, j.noMeeting, varRendezvous)
	}
	return j.rendezvous, nil
}
