// Package launch reads who a process is from the environment that a launcher gave it: its rank, the size of its job,
// the name of the job and the rendezvous. It also reads the texts in which people say such things. It has no network
// and no clock, and the environment comes in as a function.
//
//	source       found by                     rank                   size                    ranks on the host
//	gclrun       RANK or WORLD_SIZE, and      RANK                   WORLD_SIZE              LOCAL_RANK
//	             GCL_JOB, GCL_RENDEZVOUS                                                     LOCAL_WORLD_SIZE
//	torchrun     RANK or WORLD_SIZE or        RANK                   WORLD_SIZE              LOCAL_RANK
//	             TORCHELASTIC_RUN_ID                                                         LOCAL_WORLD_SIZE
//	by hand      RANK or WORLD_SIZE           RANK                   WORLD_SIZE              LOCAL_RANK
//	                                                                                         LOCAL_WORLD_SIZE
//	Open MPI     rank or size                 OMPI_COMM_WORLD_RANK   OMPI_COMM_WORLD_SIZE    OMPI_COMM_WORLD_LOCAL_RANK
//	                                                                                         OMPI_COMM_WORLD_LOCAL_SIZE
//	PMI          rank or size                 PMI_RANK               PMI_SIZE                MPI_LOCALRANKID
//	                                                                                         MPI_LOCALNRANKS
//	Slurm        SLURM_STEP_ID                SLURM_PROCID           SLURM_STEP_NUM_TASKS    SLURM_LOCALID
//	                                                                 or SLURM_NTASKS         SLURM_STEP_TASKS_PER_NODE
//	Kubernetes   JOB_COMPLETION_INDEX         JOB_COMPLETION_INDEX   GCL_SIZE
//	             or GCL_SIZE
//
//	source       name of the job              rendezvous
//	gclrun       GCL_JOB                      GCL_RENDEZVOUS
//	torchrun     TORCHELASTIC_RUN_ID          MASTER_ADDR:MASTER_PORT; the next port where torchrun listens itself
//	by hand      GCL_JOB                      MASTER_ADDR:MASTER_PORT
//	Open MPI     PMIX_NAMESPACE               a socket on one host; none on several
//	PMI          PMI_JOBID                    a socket on one host, given PMI_JOBID or GCL_JOB; none on several
//	Slurm        SLURM_JOB_ID.SLURM_STEP_ID   a socket on one host; else the first node and a port made of the name
//	Kubernetes   HOSTNAME without the index   none: GCL_RENDEZVOUS=JOB-0.SERVICE:PORT
//
// The socket is an abstract one, unix:@gcl-USER-NAME. GCL_JOB, GCL_RENDEZVOUS, GCL_TRANSPORT, GCL_INTERFACE, GCL_PORTS,
// GCL_SECRET, GCL_SECRET_FILE and GCL_NEWCOMER are read under every launcher and come before what it says. A variable
// that is empty counts as not set.
//
// # Several sources
//
// All sources must agree on rank and size, and the first of the table counts; what it does not know (the ranks on the
// host, the name, the rendezvous) the next one gives. A contradiction is an error that prints both sides. There is one
// exception, for launchers that others start: their processes keep the variables of the outer launcher, which are then
// about the inner one.
//
//	inner launcher                             outer, not looked at
//	torchrun (TORCHELASTIC_RUN_ID)             Slurm, Kubernetes
//	gclrun                                     Kubernetes; it removes the variables of the rest
//	Open MPI                                   Slurm, Kubernetes
//	PMI, by mpiexec (MPI_LOCALRANKID or        Slurm, Kubernetes
//	HYDI_CONTROL_FD), not by srun --mpi=pmi2
//
// So under mpirun within a batch script of Slurm Open MPI wins: SLURM_PROCID is the script's own there, and on other
// hosts that of the daemon that srun has started for mpirun.
//
// Beside another source Kubernetes counts only with both of its variables, since every pod of an indexed Job has an
// index, also one that runs torchrun or mpirun.
package launch
