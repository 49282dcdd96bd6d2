package launch

import "fmt"

// A source is a launcher and its variables.
type source struct {
	name Source

	// marks are variables by which the source is found. One is enough.
	marks []string

	rank, size           string // variables that must be set
	localRank, localSize string // variables that may be set; "" if the launcher has none

	// inside lists the sources that may have started this launcher. Their variables count the launcher's own processes,
	// so nothing compares them with the variables of this source.
	inside []Source

	// alone says that an incomplete source is an error only where no other source is found.
	alone bool

	// want is the advice of the error about a missing rank or size. "" stands for one that names both variables.
	want string

	// more reads the fields of a reading below the local ones.
	more func(environment, *reading, Settings) error
}

// A reading is what a source says.
type reading struct {
	source
	rank, size           int
	localRank, localSize int    // -1 and 0 if unknown
	job                  string // the launcher's name of the job, not yet tidy; "" if it has none

	given   Rendezvous // the launcher's own
	derived Rendezvous // made of the hosts that the launcher lists
	why     string     // reason why both are zero
}

// sources lists the sources, inner launchers before those that start them: torchrun runs in tasks of Slurm, mpirun in a
// batch script, and both in pods.
func (e environment) sources() []source {
	return []source{
		e.ranks(),
		{
			name:  OpenMPI,
			marks: []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
			rank:  "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE",
			localRank: "OMPI_COMM_WORLD_LOCAL_RANK", localSize: "OMPI_COMM_WORLD_LOCAL_SIZE",
			inside: []Source{Slurm, Kubernetes},
			more:   openMPI,
		},
		e.pmi(),
		e.slurm(),
		{
			name:  Kubernetes,
			marks: []string{"JOB_COMPLETION_INDEX", varSize},
			rank:  "JOB_COMPLETION_INDEX", size: varSize,
			alone: true,
			want: "want " + varSize + " to be the completions of the Job, or no JOB_COMPLETION_INDEX for a process " +
				"that works alone",
			more: kubernetes,
		},
	}
}

// ranks is the source of RANK and WORLD_SIZE. torchrun, gclrun, scripts and people set them.
// LOCAL_RANK alone is no mark: scripts set it for programs that choose a device by it.
func (e environment) ranks() source {
	s := source{
		name:  ByHand,
		marks: []string{"RANK", "WORLD_SIZE"},
		rank:  "RANK", size: "WORLD_SIZE", localRank: "LOCAL_RANK", localSize: "LOCAL_WORLD_SIZE",
		more: master,
	}
	switch {
	case e.value(runID) != "":
		// Each host's torchrun is a task of Slurm, or a pod. Open MPI is not in the list: the environment does not tell
		// whether mpirun started torchrun or a script of torchrun started mpirun.
		s.name, s.inside, s.marks = Torchrun, []Source{Slurm, Kubernetes}, append(s.marks, runID)
	case e.value(varJob) != "" && e.value(varRendezvous) != "":
		// gclrun removes the variables of other launchers from the environment, except those of the pod.
		s.name, s.inside = GCLRun, []Source{Kubernetes}
	}
	return s
}

// pmi is the source of PMI. MPICH's and Intel's mpiexec set its variables, the local ones too. srun --mpi=pmi2 sets
// PMI_RANK and PMI_SIZE alone; these must then agree with Slurm's.
func (e environment) pmi() source {
	s := source{
		name:  PMI,
		marks: []string{"PMI_RANK", "PMI_SIZE"},
		rank:  "PMI_RANK", size: "PMI_SIZE", localRank: "MPI_LOCALRANKID", localSize: "MPI_LOCALNRANKS",
		more: pmiJob,
	}
	if e.firstSet("MPI_LOCALRANKID", "HYDI_CONTROL_FD") != "" {
		s.inside = []Source{Slurm, Kubernetes}
	}
	return s
}

// read reads a source. found is the mark by which it was found.
func (e environment) read(s source, found string, settings Settings) (reading, error) {
	r := reading{source: s, localRank: -1}
	err := e.missing(found, s.rank, s.size)
	if err != nil {
		want := s.want
		if want == "" {
			want = fmt.Sprintf("want both %s and %s, or neither", s.rank, s.size)
		}
		return reading{}, fmt.Errorf("%w: %s", err, want)
	}
	if r.size, err = e.number(s.size, 1, maxSize); err != nil {
		return reading{}, err
	}
	if r.rank, err = e.number(s.rank, 0, maxSize-1); err != nil {
		return reading{}, err
	}
	if r.rank >= r.size {
		return reading{}, fmt.Errorf("%s with %s: want a rank from 0 to %d", e.show(s.rank), e.show(s.size), r.size-1)
	}
	if err := e.readLocal(&r); err != nil {
		return reading{}, err
	}
	if err := s.more(e, &r, settings); err != nil {
		return reading{}, err
	}
	return r, nil
}

// readLocal reads the rank and the size within the host.
func (e environment) readLocal(r *reading) (err error) {
	s, below, limit := r.source, r.size, r.source.size
	if s.localSize != "" && e.value(s.localSize) != "" {
		if r.localSize, err = e.number(s.localSize, 1, maxSize); err != nil {
			return err
		}
		if r.localSize > r.size {
			return fmt.Errorf("%s with %s: want at most %d ranks on one host", e.show(s.localSize), e.show(s.size),
				r.size)
		}
		below, limit = r.localSize, s.localSize
	}
	if s.localRank != "" && e.value(s.localRank) != "" {
		if r.localRank, err = e.number(s.localRank, 0, maxSize-1); err != nil {
			return err
		}
		if r.localRank >= below {
			return fmt.Errorf("%s with %s: want a local rank from 0 to %d", e.show(s.localRank), e.show(limit), below-1)
		}
	}
	return nil
}
