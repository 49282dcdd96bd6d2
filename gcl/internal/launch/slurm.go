package launch

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// slurm is the source of Slurm's variables. They are a task's only beside SLURM_STEP_ID: slurmstepd sets SLURM_PROCID
// and SLURM_LOCALID, both 0, for a batch script too, beside SLURM_NTASKS, the number of tasks that its srun would
// start. A script that runs a program without srun has started one process, which is in no job.
//
// SLURM_STEP_ID does not prove that srun started this very process. mpirun starts its daemons on other hosts by srun,
// and torchrun is a task; processes started by either keep the variables of that step. So Slurm is in the list inside
// of both.
//
// SLURM_NTASKS stays that of the allocation under srun --preserve-env, so SLURM_STEP_NUM_TASKS comes first.
func (e environment) slurm() source {
	s := source{
		name: Slurm,
		rank: "SLURM_PROCID", size: "SLURM_NTASKS", localRank: "SLURM_LOCALID",
		want: "srun sets all of them",
		more: slurmStep,
	}
	if e.value("SLURM_STEP_NUM_TASKS") != "" {
		s.size = "SLURM_STEP_NUM_TASKS"
	}
	// Steps of 2^31 and above are no steps of tasks: 4294967291 is the batch script, 4294967290 the shell of salloc.
	if step := e.step(); step != "" && !isAboveInt31(e.value(step)) {
		s.marks = []string{step}
	}
	return s
}

// step is the variable that has the number of the step, "" if none is set. The second is that of old releases.
func (e environment) step() string { return e.firstSet("SLURM_STEP_ID", "SLURM_STEPID") }

// isAboveInt31 reports whether text is a number of 2^31 or more.
func isAboveInt31(text string) bool {
	_, fits := number(text, math.MaxInt32)
	return !fits && text != "" && strings.Trim(text, "0123456789") == ""
}

// slurmStep reads the name of the job, the number of tasks on this host, and the first host. The components of a
// heterogeneous job have different job ids, nodes and counts, so there it reads none of them.
func slurmStep(env environment, r *reading, settings Settings) error {
	step := env.step()
	if err := env.missing(step, "SLURM_JOB_ID"); err != nil {
		return fmt.Errorf("%w: Slurm sets both", err)
	}
	stepNumber, err := env.number(step, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	jobNumber, err := strconv.ParseUint(env.value("SLURM_JOB_ID"), 10, 32)
	if err != nil {
		return fmt.Errorf("%s: want a number of 32 bits", env.show("SLURM_JOB_ID"))
	}
	if env.value("SLURM_HET_SIZE") != "" {
		r.why = "the job is heterogeneous (" + env.show("SLURM_HET_SIZE") + ")"
		return nil
	}
	r.job = fmt.Sprintf("%d.%d", jobNumber, stepNumber)
	if err := tasksHere(env, r); err != nil {
		return err
	}
	if settings.Rendezvous != (Rendezvous{}) {
		return nil
	}
	list := env.firstSet("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
	switch {
	case list == "":
		r.why = "SLURM_STEP_NODELIST is not set"
		return nil
	case env.value("SLURM_DISTRIBUTION") == "arbitrary":
		// The list of nodes is sorted, and the tasks are not.
		r.why = "with SLURM_DISTRIBUTION=arbitrary rank 0 may be on any node"
		return nil
	}
	hosts, err := Nodes(env.value(list))
	if err != nil {
		return fmt.Errorf("%s=%w", list, err)
	}
	if r.derived.Host, err = parseHost(hosts[0]); err != nil {
		return fmt.Errorf("%s: the first node is %s: %w", env.show(list), show(hosts[0]), err)
	}
	r.derived.Port = stepPort(jobNumber, stepNumber)
	return nil
}

// stepPort is the port of a step: one of the 16,384 below 32768, the first port that Linux gives to connections by
// itself. The stride, an odd number, keeps steps of jobs with near numbers apart. Where two steps on a host have one
// port all the same, the names of their jobs differ.
func stepPort(job uint64, step int) uint16 {
	const first, count, stride = 16384, 16384, 4099
	return uint16(first + (job+stride*uint64(step))%count)
}

// tasksHere reads the number of tasks on this host from SLURM_STEP_TASKS_PER_NODE, as in "2(x3),1": three nodes with
// two tasks and one with one. SLURM_NODEID is the node's place.
func tasksHere(env environment, r *reading) error {
	const tasks, node = "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID"
	if env.value(tasks) == "" || env.value(node) == "" {
		return nil
	}
	at, err := env.number(node, 0, maxNodes-1)
	if err != nil {
		return err
	}
	for item := range strings.SplitSeq(env.value(tasks), ",") {
		text, times, repeated := strings.Cut(item, "(x")
		repeat := 1
		if repeated {
			var ok bool
			digits, closed := strings.CutSuffix(times, ")")
			if repeat, ok = number(digits, maxNodes); !ok || !closed {
				return fmt.Errorf("%s: want numbers of tasks as in 2(x3),1", env.show(tasks))
			}
		}
		count, ok := number(text, maxSize)
		if !ok || count == 0 {
			return fmt.Errorf("%s: want numbers of tasks as in 2(x3),1", env.show(tasks))
		}
		if at -= repeat; at >= 0 {
			continue
		}
		switch {
		case count > r.size:
			return fmt.Errorf("%s with %s: want at most %d tasks on one node", env.show(tasks),
				env.show(r.source.size), r.size)
		case r.localRank >= count:
			return fmt.Errorf("%s with %s and %s: want a local rank from 0 to %d", env.show(r.source.localRank),
				env.show(node), env.show(tasks), count-1)
		}
		r.localSize = count
		return nil
	}
	return fmt.Errorf("%s with %s: want a node of that list, whose first is 0", env.show(node), env.show(tasks))
}
