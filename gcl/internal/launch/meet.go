package launch

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// maxJob is the longest name of a job and maxUser the longest name of a user in that of a socket, so that
// "gcl-USER-JOB" is the name of an abstract socket.
const maxJob, maxUser = 64, 32

// meet chooses the first rendezvous that there is: GCL_RENDEZVOUS; the launcher's; an abstract socket, if all ranks are
// on one host and the job has a name; one made of the list of hosts. If there is none, why is the reason.
func meet(env environment, agreed []reading, job Job) (r Rendezvous, why string) {
	if job.Settings.Rendezvous != (Rendezvous{}) {
		return job.Settings.Rendezvous, ""
	}
	for _, r := range agreed {
		if r.given != (Rendezvous{}) {
			return r.given, ""
		}
	}
	local := job.LocalSize == job.Size
	if local && job.Name != "" {
		// The user is part of the name, since a launcher's names may be the same for two users.
		name := "gcl-" + job.Name
		if user := env.firstSet("USER", "LOGNAME"); user != "" {
			name = "gcl-" + tidy(env.value(user), maxUser) + "-" + job.Name
		}
		return Rendezvous{Unix: name}, ""
	}
	for _, r := range agreed {
		if r.derived != (Rendezvous{}) {
			return r.derived, ""
		}
		if why == "" {
			why = r.why
		}
	}
	if local {
		why = "all ranks are on this host, and a name of the job, " + varJob + ", would be enough"
	}
	return Rendezvous{}, why
}

// tidy keeps a name of at most most bytes, all printable ASCII and no space. Any other name becomes its beginning,
// without spaces and other characters, and its hash.
func tidy(name string, most int) string {
	if len(name) <= most && isPlain(name) {
		return name
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // never fails
	sum := fmt.Sprintf("-%016x", hash.Sum64())
	head := strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return -1
		}
		return r
	}, name[:min(len(name), most-len(sum))])
	return head + sum
}

const (
	runID      = "TORCHELASTIC_RUN_ID"
	masterAddr = "MASTER_ADDR"
	masterPort = "MASTER_PORT"
)

// master reads torchrun's name of the job and its rendezvous. With TORCHELASTIC_USE_AGENT_STORE=True torchrun itself
// listens at MASTER_PORT for as long as its processes run, so the job takes the next port.
func master(env environment, r *reading, settings Settings) error {
	r.job = env.value(runID)
	if settings.Rendezvous != (Rendezvous{}) {
		return nil
	}
	found := env.firstSet(masterAddr, masterPort)
	if found == "" {
		r.why = masterAddr + " and " + masterPort + " are not set"
		return nil
	}
	if err := env.missing(found, masterAddr, masterPort); err != nil {
		return fmt.Errorf("%w: want both, or %s", err, varRendezvous)
	}
	host, err := parseHost(env.value(masterAddr))
	if err != nil {
		return fmt.Errorf("%s: %w", env.show(masterAddr), err)
	}
	port, err := env.number(masterPort, 1, maxPort)
	if err != nil {
		return err
	}
	if env.value("TORCHELASTIC_USE_AGENT_STORE") == "True" {
		if port++; port > maxPort {
			port = maxPort - 1
		}
	}
	r.given = Rendezvous{Host: host, Port: uint16(port)}
	return nil
}

// openMPI reads the name of the job.
func openMPI(env environment, r *reading, _ Settings) error {
	r.job = env.value("PMIX_NAMESPACE")
	r.why = "Open MPI does not tell the host of rank 0 (mpirun -x GCL_RENDEZVOUS=HOST:PORT)"
	return nil
}

// pmiJob reads the name of the job, which Slurm tells and MPICH does not.
func pmiJob(env environment, r *reading, _ Settings) error {
	r.job = env.value("PMI_JOBID")
	r.why = "PMI does not tell the host of rank 0 (mpiexec -genv GCL_RENDEZVOUS HOST:PORT)"
	return nil
}

// kubernetes takes the name of the Job from that of the pod, which is the Job's with "-" and the index.
func kubernetes(env environment, r *reading, _ Settings) error {
	pod := "JOB"
	if name, ok := strings.CutSuffix(env.value("HOSTNAME"), fmt.Sprintf("-%d", r.rank)); ok && name != "" {
		r.job, pod = name, name
	}
	r.why = fmt.Sprintf("a pod is not told the name of its headless service (%s-0.SERVICE:PORT in the pod's template)",
		show(pod))
	return nil
}
