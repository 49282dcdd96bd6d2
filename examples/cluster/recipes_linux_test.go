// Package cluster holds only tests: they run the recipes beside them, and jobs in the environments of launchers, on
// four hosts that are network namespaces.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/hosttest"
)

// TestMain is main of the programs that the tests start. Each is the test binary under the program's name, so that its
// environment has the launcher's variables and no other.
func TestMain(m *testing.M) {
	programs := map[string]func() error{"replica": replica, "survivor": survivor, "srun": srun, "scontrol": scontrol,
		"torchrun": torchrun, "ssh": ssh}
	if program := programs[filepath.Base(os.Args[0])]; program != nil {
		var end *exec.ExitError
		switch err := program(); {
		case errors.As(err, &end):
			os.Exit(end.ExitCode())
		case err != nil:
			fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// replica joins the job of its environment, reduces, and says how it went and what its arguments are.
func replica() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return gcl.RunProcess(ctx, gcl.JoinConfig{}, func(ctx context.Context, c *gcl.Comm) error {
		for _, n := range []int{1, 1000, 100_000} {
			in := make([]int64, n)
			for i := range in {
				in[i] = int64(i+1) << (8 * c.Replica())
			}
			out, err := gcl.AllReduce(ctx, c, in, gcl.Add)
			if err != nil {
				return err
			}
			for i, x := range out {
				if want := int64(i+1) * 0x01010101; x != want {
					return fmt.Errorf("element %d of %d is %#x, want %#x", i, n, x, want)
				}
			}
		}
		fmt.Printf("replica %d of %d is right, arguments %q\n", c.Replica(), c.Replicas(), os.Args[1:])
		return nil
	})
}

// environments of launchers, recorded or documented, are those of package launch.
const environments = "../../gcl/internal/launch/testdata/"

// ranks are the environments of the processes of a recorded job, by rank.
func ranks(name string) ([][]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	out := make([][]string, 4)
	for part := range strings.SplitSeq(string(text), "\n-- ") {
		title, lines, _ := strings.Cut(part, "\n")
		var rank int
		if _, err := fmt.Sscanf(title, "rank %d", &rank); err != nil || title != fmt.Sprint("rank ", rank) {
			continue
		}
		out[rank] = strings.Fields(strings.ReplaceAll(lines, " ", "\x00"))
		for i := range out[rank] {
			out[rank][i] = strings.ReplaceAll(out[rank][i], "\x00", " ")
		}
	}
	for rank, env := range out {
		if len(env) == 0 {
			return nil, fmt.Errorf("%s has no rank %d", name, rank)
		}
	}
	return out, nil
}

// names are those of the hosts: in the environments of Slurm, of torchrun, of mpirun on several hosts, and of the pods
// in the manifest.
var names = map[string]int{
	"n1": 0, "n2": 1,
	"node01.cluster": 0,
	"node1":          0, "node2": 1,
	"rts-0.rts": 0, "rts-1.rts": 1, "rts-2.rts": 2, "rts-3.rts": 3,
}

// A test's programs are in a directory of their own, under their names.
type programs struct {
	*hosttest.Stage
	dir string
}

func newPrograms(t *testing.T, s *hosttest.Stage) programs {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := programs{s, t.TempDir()}
	for _, name := range []string{"replica", "survivor", "srun", "scontrol", "torchrun", "ssh"} {
		if err := os.Symlink(self, p.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p programs) path(name string) string { return filepath.Join(p.dir, name) }

// secret makes a file with a secret in it.
func secret(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte("a secret of this test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// says is what replica prints.
func says(rank int, arguments ...string) string {
	return fmt.Sprintf("replica %d of 4 is right, arguments %q\n", rank, arguments)
}

// TestLaunchers joins four processes in the environment of each launcher: its variables, those of the recipe, and no
// other.
func TestLaunchers(t *testing.T) {
	hosttest.Run(t, 4, names, func(t *testing.T, s *hosttest.Stage) {
		p := newPrograms(t, s)
		file := "GCL_SECRET_FILE=" + secret(t)
		oneHost, pairs, four := []int{0, 0, 0, 0}, []int{0, 0, 1, 1}, []int{0, 1, 2, 3}
		for _, job := range []struct {
			name  string
			of    string   // file of environments
			more  []string // variables of the recipe
			hosts []int    // by rank
		}{
			{"Slurm, two nodes", "slurm_recorded.env", []string{file}, pairs},
			{"Slurm, two nodes, PMI", "slurm_pmi2_recorded.env", []string{file}, pairs},
			{"Slurm, one node", "slurm_one_node_recorded.env", nil, oneHost},
			{"torchrun", "torchrun_hosts.env", []string{file}, pairs},
			{"torchrun, which keeps its store at MASTER_PORT", "torchrun_hosts.env",
				[]string{file, "TORCHELASTIC_USE_AGENT_STORE=True"}, pairs},
			{"Open MPI, one host", "openmpi.env", nil, oneHost},
			{"Open MPI, two hosts", "openmpi_hosts.env", []string{file, "GCL_RENDEZVOUS=node1:6000"}, pairs},
			{"MPICH, one host", "hydra.env", []string{"GCL_JOB=4711"}, oneHost},
		} {
			t.Run(job.name, func(t *testing.T) {
				env, err := ranks(environments + job.of)
				if err != nil {
					t.Fatal(err)
				}
				for rank := range env {
					env[rank] = append(env[rank], job.more...)
				}
				p.join(t, env, job.hosts)
			})
		}
		t.Run("Kubernetes", func(t *testing.T) { p.join(t, pods(t, "kubernetes.yaml"), four) })
		t.Run("by hand", func(t *testing.T) {
			env := make([][]string, 4)
			for rank := range env {
				env[rank] = []string{file, "WORLD_SIZE=4", "GCL_RENDEZVOUS=n1:6000", fmt.Sprint("RANK=", rank)}
			}
			p.join(t, env, four)
		})
	})
}

// join starts a replica in each environment, and wants all to be right.
func (p programs) join(t *testing.T, env [][]string, hosts []int) {
	t.Helper()
	var all sync.WaitGroup
	for rank, env := range env {
		cmd := exec.Command(p.path("replica"))
		cmd.Env = env
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := p.Start(hosts[rank], cmd); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := cmd.Wait(); err != nil || out.String() != says(rank) {
				t.Errorf("replica %d: %v\n%s", rank, err, out.String())
			}
		})
	}
	all.Wait()
}

// pods are the environments of the containers in a manifest: the variables of the manifest, and those that the Job
// controller and the kubelet add. The secret is mounted where the manifest has it. The stage resolves the names of pods
// in place of the headless Service.
func pods(t *testing.T, name string) [][]string {
	t.Helper()
	manifest, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var given []string
	for _, m := range regexp.MustCompile(`(?m)^ +- name: (GCL_\w+).*\n +value: "?([^"\n]+)"?$`).FindAllStringSubmatch(
		string(manifest), -1) {
		given = append(given, m[1]+"="+m[2])
		if m[1] == "GCL_SECRET_FILE" {
			mount(t, m[2])
		}
	}
	if len(given) != 3 {
		t.Fatalf("variables of the manifest: %q", given)
	}
	env := make([][]string, 4)
	for index := range env {
		env[index] = append(slices.Clone(given), fmt.Sprint("JOB_COMPLETION_INDEX=", index),
			fmt.Sprint("HOSTNAME=rts-", index), "HOME=/", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"KUBERNETES_PORT=tcp://10.96.0.1:443", "KUBERNETES_PORT_443_TCP=tcp://10.96.0.1:443",
			"KUBERNETES_PORT_443_TCP_ADDR=10.96.0.1", "KUBERNETES_PORT_443_TCP_PORT=443",
			"KUBERNETES_PORT_443_TCP_PROTO=tcp", "KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443",
			"KUBERNETES_SERVICE_PORT_HTTPS=443")
	}
	return env
}

// mount makes a file with a secret below /run, in the mount namespace of the stage.
func mount(t *testing.T, file string) {
	t.Helper()
	if !strings.HasPrefix(file, "/run/") {
		t.Fatalf("%s is not below /run", file)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount("/run", 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("a secret of this test"), 0o400); err != nil {
		t.Fatal(err)
	}
}

// A script runs with the tests' programs in place of the launchers', which start the replicas on the hosts.
type script struct {
	programs
	dir string   // working directory
	env []string // beside what the stand-ins need
}

// hostsOfStage and recordOf are variables of the scripts, which replicas do not get.
const hostsOfStage, recordOf = "CLUSTER_TEST_HOSTS", "CLUSTER_TEST_RECORD"

// run returns what a script has printed, and how it has ended.
func (s script) run(name string, arguments ...string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("bash", append([]string{filepath.Join(here, name)}, arguments...)...)
	cmd.Dir = s.dir
	cmd.Env = append(slices.Clip(s.env), "PATH="+s.programs.dir+":"+os.Getenv("PATH"), "HOME="+s.dir,
		recordOf+"="+filepath.Join(here, environments),
		hostsOfStage+"="+s.Network(0)+":"+s.Network(1)+":"+s.Network(2)+":"+s.Network(3))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// onHost is a command on a host of the stage, by its number.
func onHost(ctx context.Context, host int, name string, arguments ...string) *exec.Cmd {
	network := strings.Split(os.Getenv(hostsOfStage), ":")[host]
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + network, name}, arguments...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// startAll runs a program for each of the ranks, in the environments that are given, and returns their first error.
func startAll(env [][]string, hosts []int, program []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	errs := make(chan error, len(env))
	for rank := range env {
		go func() {
			cmd := onHost(ctx, hosts[rank], program[0], program[1:]...)
			cmd.Env = env[rank]
			errs <- cmd.Run()
		}()
	}
	var first error
	for range env {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// own are the variables of gcl's own in the environment of this process, which srun and torchrun pass on.
func own() (out []string) {
	for _, entry := range os.Environ() {
		if strings.HasPrefix(entry, "GCL_") {
			out = append(out, entry)
		}
	}
	return out
}

// sortedLines are the lines of a text in order: replicas print in any order.
func sortedLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// allSay is what four replicas print.
func allSay(arguments ...string) string {
	var out strings.Builder
	for rank := range 4 {
		out.WriteString(says(rank, arguments...))
	}
	return out.String()
}

// srun starts the tasks of a step of two nodes with two tasks each, in the recorded environments, or of a step of one
// task, on the first node if no other is given, in that of the node's first. It knows the flags of the recipes. A file
// "code" in the working directory has the exit code that it ends with in place of starting anything.
func srun() error {
	known := []string{"--mpi=none", "--distribution=block", "--cpus-per-task=3", "--cpu-bind=cores",
		"--kill-on-bad-exit=0"}
	alone := []string{"--exact", "--nodes=1", "--ntasks=1", "--nodelist=n1", "--nodelist=n2"}
	arguments, node, tasks := os.Args[1:], 0, 4
	for len(arguments) > 0 && strings.HasPrefix(arguments[0], "-") {
		switch {
		case slices.Contains(alone, arguments[0]):
			tasks = 1
		case !slices.Contains(known, arguments[0]):
			return fmt.Errorf("flag %s is not known", arguments[0])
		}
		if arguments[0] == "--nodelist=n2" {
			node = 1
		}
		arguments = arguments[1:]
	}
	file := os.Getenv("GCL_SECRET_FILE")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() < 40 {
		return fmt.Errorf("the file of the secret: %v, error %w", info, err)
	}
	if code, err := os.ReadFile("code"); err == nil {
		fmt.Printf("srun %q\n", arguments)
		return exec.Command("sh", "-c", "exit "+string(code)).Run()
	}
	env, err := ranks(os.Getenv(recordOf) + "/slurm_recorded.env")
	if err != nil {
		return err
	}
	for rank := range env {
		env[rank] = append(env[rank], own()...)
	}
	if tasks == 1 {
		return startAll(env[2*node:2*node+1], []int{node}, arguments)
	}
	return startAll(env, []int{0, 0, 1, 1}, arguments)
}

// scontrol lists nodes, or says how it was called.
func scontrol() error {
	if slices.Equal(os.Args[1:], []string{"show", "hostnames", "n[1-2]"}) {
		fmt.Print("n1\nn2\n")
		return nil
	}
	fmt.Printf("scontrol %q\n", os.Args[1:])
	return nil
}

// TestSbatch runs the batch script: the replicas join, a job that was told to stop is queued again and resumes, and
// another failure is final. The secret is gone afterwards.
func TestSbatch(t *testing.T) {
	hosttest.Run(t, 4, names, func(t *testing.T, s *hosttest.Stage) {
		p := newPrograms(t, s)
		in := script{p, t.TempDir(), []string{"SLURM_JOB_ID=5", "SLURM_CPUS_PER_TASK=3", "RTS=" + p.path("replica")}}
		directory := filepath.Join(in.dir, "checkpoint-5")
		want := func(text string, code int) {
			t.Helper()
			out, err := in.run("rts.sbatch", "-epochs", "7")
			var end *exec.ExitError
			if code == 0 && err != nil || code != 0 && (!errors.As(err, &end) || end.ExitCode() != code) {
				t.Errorf("ended with %v, want exit code %d", err, code)
			}
			if sortedLines(out) != text {
				t.Errorf("printed\n%s\nwant\n%s", out, text)
			}
			if left, _ := filepath.Glob(filepath.Join(in.dir, ".gcl-secret*")); len(left) > 0 {
				t.Errorf("%s is left", left)
			}
		}
		told := func(code string) {
			if err := os.WriteFile(filepath.Join(in.dir, "code"), []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		arguments := []string{"-checkpoint", directory, "-epochs", "7"}
		want(allSay(arguments...), 0)
		told("143")
		program := append([]string{p.path("replica")}, arguments...)
		again := "scontrol [\"requeue\" \"5\"]\n"
		want(again+fmt.Sprintf("srun %q\n", program), 143)
		told("130")
		if err := os.MkdirAll(filepath.Join(directory, "checkpoint-00000007"), 0o700); err != nil {
			t.Fatal(err)
		}
		program = slices.Insert(program, 3, "-resume")
		want(again+fmt.Sprintf("srun %q\n", program), 130)
		told("1")
		want(fmt.Sprintf("srun %q\n", program), 1)
	})
}

// ssh runs a command on a host. The command gets none of the variables of this process but PATH.
func ssh() error {
	arguments := slices.DeleteFunc(os.Args[1:], func(a string) bool { return a == "-x" }) // as MPI's launchers give it
	host, ok := names[arguments[0]]
	if !ok {
		return fmt.Errorf("no host %s", arguments[0])
	}
	cmd := onHost(context.Background(), host, "sh", "-c", strings.Join(arguments[1:], " "))
	cmd.Stdin = os.Stdin
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/"}
	return cmd.Run()
}

// TestSSH runs the script for hosts without a launcher. Arguments arrive as they are, and the exit code of a replica is
// the script's.
func TestSSH(t *testing.T) {
	hosttest.Run(t, 4, names, func(t *testing.T, s *hosttest.Stage) {
		p := newPrograms(t, s)
		in := script{p, t.TempDir(), nil}
		odd := []string{"-flag", "two words", "it's", "$HOME", "*"}
		out, err := in.run("ssh.sh", append([]string{"n1 n1 n2 rts-2.rts", p.path("replica")}, odd...)...)
		if err != nil || sortedLines(out) != allSay(odd...) {
			t.Errorf("error %v, printed\n%s", err, out)
		}
		if out, err := in.run("ssh.sh", "n1 n2 n1", "/none"); err == nil {
			t.Errorf("no error without a program:\n%s", out)
		}
		if out, err := in.run("ssh.sh", "n1"); err == nil || !strings.Contains(out, "usage: ") {
			t.Errorf("error %v, printed\n%s", err, out)
		}
	})
}

// torchrun starts the replicas of one host in the documented environments. It knows the flags of the recipe. The id of
// the job has the number of the host, which the real torchrun finds by its rendezvous.
func torchrun() error {
	flags := map[string]string{}
	arguments := os.Args[1:]
	for len(arguments) > 0 && strings.HasPrefix(arguments[0], "--") {
		name, value, _ := strings.Cut(arguments[0], "=")
		flags[name] = value
		arguments = arguments[1:]
	}
	node := 0
	if flags["--rdzv-id"] == "node 1" {
		node = 1
	}
	want := map[string]string{"--nnodes": "2", "--nproc-per-node": "2", "--max-restarts": "0", "--rdzv-backend": "c10d",
		"--rdzv-endpoint": "node01.cluster:29400", "--rdzv-id": fmt.Sprint("node ", node), "--no-python": ""}
	if !maps.Equal(flags, want) {
		return fmt.Errorf("flags %q, want %q", flags, want)
	}
	env, err := ranks(os.Getenv(recordOf) + "/torchrun_hosts.env")
	if err != nil {
		return err
	}
	env = env[2*node : 2*node+2]
	for rank := range env {
		env[rank] = append(env[rank], own()...)
	}
	return startAll(env, []int{node, node}, arguments)
}

// TestTorchrun runs the script on two hosts, and without a secret.
func TestTorchrun(t *testing.T) {
	hosttest.Run(t, 4, names, func(t *testing.T, s *hosttest.Stage) {
		p := newPrograms(t, s)
		file := "GCL_SECRET_FILE=" + secret(t)
		arguments := []string{"node01.cluster", "2", "2", p.path("replica"), "-epochs", "7"}
		var out [2]string
		var all sync.WaitGroup
		for node := range out {
			all.Go(func() {
				in := script{p, p.dir, []string{file, fmt.Sprint("JOB=node ", node)}}
				var err error
				if out[node], err = in.run("torchrun.sh", arguments...); err != nil {
					t.Errorf("host %d: %v", node, err)
				}
			})
		}
		all.Wait()
		if text := sortedLines(out[0] + out[1]); text != allSay("-epochs", "7") {
			t.Errorf("printed\n%s", text)
		}
		none := script{p, p.dir, []string{"JOB=node 0"}}
		if out, err := none.run("torchrun.sh", arguments...); err == nil || !strings.Contains(out, "needs a secret") {
			t.Errorf("without a secret: error %v, printed\n%s", err, out)
		}
	})
}

// TestMPI runs the commands of README.md by the launchers of MPI that are installed, on two hosts. The launchers start
// their own processes on the other host by ssh.
func TestMPI(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	names := maps.Clone(names)
	names[own] = 0 // mpiexec.hydra tells others its own name
	hosttest.Run(t, 4, names, func(t *testing.T, s *hosttest.Stage) {
		p := newPrograms(t, s)
		page, err := os.ReadFile("README.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, launcher := range []string{"mpirun", "mpiexec.hydra"} {
			t.Run(launcher, func(t *testing.T) {
				if _, err := exec.LookPath(launcher); err != nil {
					t.Skip(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				line := regexp.MustCompile("`" + regexp.QuoteMeta(launcher) + " ([^`]+) ./rts`").FindSubmatch(page)
				if line == nil {
					t.Fatal("README.md has no command")
				}
				arguments := append(strings.Fields(string(line[1])), p.path("replica"), "-epochs")
				cmd := exec.CommandContext(ctx, launcher, arguments...)
				cmd.Env = []string{"PATH=" + p.dir + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "USER=ada",
					"GCL_SECRET_FILE=" + secret(t), hostsOfStage + "=" + s.Network(0) + ":" + s.Network(1),
					"OMPI_MCA_orte_tmpdir_base=" + t.TempDir(), "OMPI_MCA_plm_rsh_agent=" + p.path("ssh"),
					"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
					"HYDRA_LAUNCHER=ssh", "HYDRA_LAUNCHER_EXEC=" + p.path("ssh")}
				var out strings.Builder
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := s.Start(0, cmd); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Wait(); err != nil || sortedLines(out.String()) != allSay("-epochs") {
					t.Errorf("error %v, printed\n%s", err, out.String())
				}
			})
		}
	})
}
