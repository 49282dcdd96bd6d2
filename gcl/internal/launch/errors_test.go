package launch

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Complete environments, of which the wrong ones differ by one variable or two.
const (
	byHand = "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 "
	mpi    = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
	task   = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_LOCALID=1 SLURM_NODEID=0 " +
		"SLURM_STEP_TASKS_PER_NODE=2(x2) SLURM_STEP_NODELIST=a[1-2] "
	pod = "JOB_COMPLETION_INDEX=1 GCL_SIZE=4 "
)

// environmentOf reads variables with spaces between. A later one wins, and "NAME=" counts as not set.
func environmentOf(text string) variables { return parseVariables(strings.ReplaceAll(text, " ", "\n")) }

// wrong lists environments that are errors, each by one check of its own.
var wrong = []string{
	// incomplete
	"RANK=1",
	"WORLD_SIZE=4",
	"TORCHELASTIC_RUN_ID=none",
	"OMPI_COMM_WORLD_RANK=1",
	"PMI_SIZE=4",
	"JOB_COMPLETION_INDEX=1",
	"GCL_SIZE=4",
	task + "SLURM_PROCID= SLURM_NTASKS=",
	task + "SLURM_JOB_ID=",
	mpi + "RANK=1",
	byHand + "MASTER_ADDR=a",
	byHand + "MASTER_PORT=6000",

	// not the number that is wanted
	byHand + "RANK=x",
	byHand + "RANK=-1",
	byHand + "RANK=+1",
	byHand + "RANK=1.0",
	byHand + "RANK=4",
	byHand + "RANK=99999999999999999999",
	byHand + "WORLD_SIZE=0",
	byHand + "WORLD_SIZE=65537",
	byHand + "LOCAL_RANK=two",
	byHand + "LOCAL_RANK=2",
	byHand + "LOCAL_RANK=4 LOCAL_WORLD_SIZE=",
	byHand + "LOCAL_WORLD_SIZE=0",
	byHand + "LOCAL_WORLD_SIZE=5",
	byHand + "MASTER_ADDR=a MASTER_PORT=0",
	byHand + "MASTER_ADDR=a MASTER_PORT=65536",
	byHand + "MASTER_ADDR=a/b MASTER_PORT=6000",
	task + "SLURM_PROCID=4",
	task + "SLURM_NTASKS=4(x2)",
	task + "SLURM_STEP_NUM_TASKS=none",
	task + "SLURM_STEP_ID=batch",
	task + "SLURM_JOB_ID=4294967296",
	task + "SLURM_NODEID=-1",
	task + "SLURM_NODEID=2",
	task + "SLURM_STEP_TASKS_PER_NODE=2(x",
	task + "SLURM_STEP_TASKS_PER_NODE=2(x2",
	task + "SLURM_STEP_TASKS_PER_NODE=2(x99999)",
	task + "SLURM_STEP_TASKS_PER_NODE=0(x2)",
	task + "SLURM_STEP_TASKS_PER_NODE=,",
	task + "SLURM_STEP_TASKS_PER_NODE=8(x2)",
	task + "SLURM_STEP_TASKS_PER_NODE=1,2",
	task + "SLURM_STEP_NODELIST=a[1-",
	task + "SLURM_STEP_NODELIST= SLURM_JOB_NODELIST=a,,b",
	task + "SLURM_STEP_NODELIST=10.300.0.[1-2]",

	// contradictions
	byHand + mpi + "RANK=2",
	byHand + mpi + "WORLD_SIZE=8",
	byHand + task + "SLURM_NTASKS=8",
	byHand + pod + "GCL_SIZE=2",
	byHand + pod + "JOB_COMPLETION_INDEX=0",
	task + "PMI_RANK=0 PMI_SIZE=4",
	mpi + "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=0",
	mpi + byHand + "TORCHELASTIC_RUN_ID=none RANK=3",
	byHand + task + "GCL_JOB=j GCL_RENDEZVOUS=a:1 SLURM_PROCID=0",

	// settings
	"GCL_JOB=caf\u00e9",
	"GCL_JOB=" + strings.Repeat("j", 65),
	"GCL_RENDEZVOUS=a",
	"GCL_INTERFACE=eth,",
	"GCL_PORTS=6000-",
	"GCL_SECRET=hush GCL_SECRET_FILE=/hush",
}

// bases shortens the environments in the golden file.
var bases = strings.NewReplacer(byHand, "byHand + ", mpi, "mpi + ", task, "task + ", pod, "pod + ")

// TestWrongEnvironments compares errors with testdata/errors.txt. With -update it writes the file.
func TestWrongEnvironments(t *testing.T) {
	var got strings.Builder
	for _, text := range wrong {
		job, err := Read(environmentOf(text).lookup)
		if err == nil || errors.Is(err, ErrNoJob) || job.Size != 0 || strings.Contains(fmt.Sprint(err), "hush") {
			t.Errorf("%s: %+v, %v", text, job, err)
		}
		if !regexp.MustCompile(`^(rank \d|[A-Z_]+[= ])`).MatchString(fmt.Sprint(err)) {
			t.Errorf("%s: %v: want the variable first", text, err)
		}
		fmt.Fprintf(&got, "%s\n  %v\n\n", bases.Replace(text), err)
	}
	golden(t, "errors.txt", got.String())
}

// golden compares a text with a file of testdata, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it). Got:\n%s", name, got)
	}
}

// TestRight: the environments from which the wrong ones are made are right, and so are others that look alike.
func TestRight(t *testing.T) {
	for text, want := range map[string]string{
		byHand: "hand 1/4 1/2 ()",
		mpi:    "Open MPI 1/4 1/2 ()",
		task:   "Slurm 1/4 1/2 7.0 a1:16391",
		pod:    "Kubernetes 1/4 -1/0 ()",

		byHand + "MASTER_ADDR=a MASTER_PORT=6000":                                    "hand 1/4 1/2 a:6000",
		byHand + "MASTER_ADDR=a MASTER_PORT=65535 TORCHELASTIC_USE_AGENT_STORE=True": "hand 1/4 1/2 a:65534",
		byHand + "MASTER_ADDR=/ GCL_RENDEZVOUS=a:1":                                  "hand 1/4 1/2 a:1",
		byHand + "LOCAL_WORLD_SIZE=4 GCL_JOB=j LOGNAME=l":                            "hand 1/4 1/4 j unix:@gcl-l-j",
		byHand + "LOCAL_WORLD_SIZE=4 GCL_JOB=j":                                      "hand 1/4 1/4 j unix:@gcl-j",
		byHand + "LOCAL_WORLD_SIZE=4 GCL_JOB=j MASTER_ADDR=a MASTER_PORT=1":          "hand 1/4 1/4 j a:1",
		byHand + "LOCAL_RANK= LOCAL_WORLD_SIZE=":                                     "hand 1/4 -1/0 ()",
		byHand + "LOCAL_RANK=3 LOCAL_WORLD_SIZE=":                                    "hand 1/4 3/0 ()",
		byHand + task:                          "hand 1/4 1/2 7.0 a1:16391",
		byHand + mpi + task + "SLURM_PROCID=0": "hand 1/4 1/2 ()",
		byHand + pod:                           "hand 1/4 1/2 ()",
		byHand + pod + "GCL_SIZE= JOB_COMPLETION_INDEX=3":                "hand 1/4 1/2 ()",
		byHand + pod + "GCL_SIZE=2 JOB_COMPLETION_INDEX=":                "hand 1/4 1/2 ()",
		byHand + pod + "GCL_JOB=j GCL_RENDEZVOUS=a:1 GCL_SIZE=2":         "gclrun 1/4 1/2 j a:1",
		byHand + task + "TORCHELASTIC_RUN_ID=none SLURM_PROCID=0":        "torchrun 1/4 1/2 none ()",
		byHand + pod + "TORCHELASTIC_RUN_ID=none GCL_SIZE=2":             "torchrun 1/4 1/2 none ()",
		byHand + "TORCHELASTIC_RUN_ID=none GCL_JOB=j GCL_RENDEZVOUS=a:1": "torchrun 1/4 1/2 j a:1",
		mpi + task + "SLURM_PROCID=0":                                    "Open MPI 1/4 1/2 ()",
		mpi + pod + "GCL_SIZE=2":                                         "Open MPI 1/4 1/2 ()",
		mpi + "LOCAL_RANK=3 PMIX_NAMESPACE=n":                            "Open MPI 1/4 1/2 n ()",
		task + "PMI_RANK=1 PMI_SIZE=4":                                   "PMI 1/4 1/2 7.0 a1:16391",
		task + "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0":                 "PMI 0/2 0/0 ()",
		task + "PMI_RANK=0 PMI_SIZE=2 HYDI_CONTROL_FD=7":                 "PMI 0/2 -1/0 ()",
		pod + "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0":                  "PMI 0/2 0/0 ()",
		task + "SLURM_STEP_ID= SLURM_STEPID=3":                           "Slurm 1/4 1/2 7.3 a1:28688",
		task + "SLURM_STEP_NUM_TASKS=3":                                  "Slurm 1/3 1/2 7.0 a1:16391",
		task + "SLURM_STEP_NODELIST= SLURM_JOB_NODELIST=b":               "Slurm 1/4 1/2 7.0 b:16391",
		task + "SLURM_STEP_NODELIST=":                                    "Slurm 1/4 1/2 7.0 ()",
		task + "SLURM_STEP_NODELIST=[ GCL_RENDEZVOUS=a:1":                "Slurm 1/4 1/2 7.0 a:1",
		task + "SLURM_NODEID=":                                           "Slurm 1/4 1/0 7.0 a1:16391",
		task + "SLURM_STEP_TASKS_PER_NODE=1,3 SLURM_NODEID=1":            "Slurm 1/4 1/3 7.0 a1:16391",

		task + "SLURM_JOB_ID=4294967295 SLURM_STEP_ID=2147483647": "Slurm 1/4 1/2 4294967295.2147483647 a1:28668",

		pod + "HOSTNAME=train-1": "Kubernetes 1/4 -1/0 train ()",
		pod + "HOSTNAME=train-2": "Kubernetes 1/4 -1/0 ()",
		pod + "HOSTNAME=-1":      "Kubernetes 1/4 -1/0 ()",
	} {
		job, err := Read(environmentOf(text).lookup)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := fmt.Sprintf("%s %d/%d %d/%d ", job.Source, job.Rank, job.Size, job.LocalRank, job.LocalSize)
		if job.Name != "" {
			got += job.Name + " "
		}
		if meeting, err := job.Rendezvous(); err == nil {
			got += meeting.String()
		} else {
			got += "()"
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestStepsAreNoTasks: above 2^31 a step is not one of tasks, and without a step there is no task.
func TestStepsAreNoTasks(t *testing.T) {
	for _, step := range []string{"SLURM_STEP_ID=", "SLURM_STEP_ID=2147483648", "SLURM_STEP_ID=4294967291"} {
		if job, err := Read(environmentOf(task + step).lookup); !errors.Is(err, ErrNoJob) {
			t.Errorf("%s: %+v, %v", step, job, err)
		}
	}
}

// TestSettings reads all variables of gcl's own, beside a launcher that is wrong.
func TestSettings(t *testing.T) {
	env := environmentOf("RANK=x GCL_JOB=j GCL_RENDEZVOUS=dir:/d GCL_TRANSPORT=tcp GCL_INTERFACE==eth0 " +
		"GCL_PORTS=6000-6100 GCL_SECRET_FILE=/s GCL_NEWCOMER=1")
	s, err := ReadSettings(env.lookup)
	if err != nil || fmt.Sprintf("%+v", s) != "{Job:j Rendezvous:dir:/d Transport:tcp Interface:=eth0 "+
		"Ports:[6000 6100] Secret:secret SecretFile:/s Newcomer:true}" {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestTidy: names that differ stay different, and none is too long or has a character that cannot be printed.
func TestTidy(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("n", maxJob)
	for _, name := range []string{"a", "a b", "a\tb", "ab", long, long + "1", long + "2", "\u00e9", "\xff", " ", "  "} {
		got := tidy(name, maxJob)
		if len(got) > maxJob || got == "" || !isPlain(got) || seen[got] != "" {
			t.Errorf("%q is %q, as is %q", name, got, seen[got])
		}
		seen[got] = name
	}
	if seen["a"] != "a" || seen[long] != long {
		t.Errorf("good names change: %q", slices.Sorted(maps.Keys(seen)))
	}
}

// TestLongestSocket: the longest name of a job and of a user make a name that ParseRendezvous takes.
func TestLongestSocket(t *testing.T) {
	env := environmentOf("RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 USER=" + strings.Repeat("u", 99) +
		" GCL_JOB=" + strings.Repeat("j", maxJob))
	job, err := Read(env.lookup)
	if err != nil {
		t.Fatal(err)
	}
	meeting, err := job.Rendezvous()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := ParseRendezvous(meeting.String()); err != nil || back != meeting {
		t.Errorf("%+v, %v", back, err)
	}
}
