package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/hosttest"
)

// survivor joins the job of its environment, and makes steps with the others, which go on when one dies. After -die its
// arguments have numbers of replicas with commas, each of which dies when so many newcomers have come as stand before
// it. When as many have come as have died, it makes five steps more, and says what its arguments are.
func survivor() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var die []string
	if i := slices.Index(os.Args, "-die"); i >= 0 {
		die = strings.Split(os.Args[i+1], ",")
	}
	first, came, all := -1, uint64(0), false
	err := gcl.RunProcess(ctx, gcl.JoinConfig{}, func(ctx context.Context, c *gcl.Comm) error {
		change, changed := c.Change()
		if !changed {
			first = c.Replica()
		}
		if all && len(change.Came) == 0 {
			return nil // the others have ended, before this one has heard of the last step
		}
		came += uint64(len(change.Came))
		if len(change.Came) > 0 { // the last knows of itself only
			most, err := gcl.AllReduce(ctx, c, []uint64{came}, gcl.Max)
			if err != nil {
				return err
			}
			came = most[0]
		}
		all = came == uint64(len(die))
		for step := 0; step < 5 || !all; step++ {
			if _, err := c.Commit(ctx, func() error {
				if step == 2 && !all && first >= 0 && die[came] == strconv.Itoa(first) {
					fmt.Printf("replica %d dies\n", first)
					os.Exit(3)
				}
				sum, err := gcl.AllReduce(ctx, c, []int{1}, gcl.Add)
				if err == nil && sum[0] != c.Size() {
					err = fmt.Errorf("%d replicas are %d", c.Size(), sum[0])
				}
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	}, gcl.WithElastic(gcl.Elastic{Min: 1, Replace: true}))
	if err == nil {
		who := "a newcomer"
		if first >= 0 {
			who = fmt.Sprint("replica ", first)
		}
		fmt.Printf("%s is right, arguments %q\n", who, os.Args[1:])
	}
	return err
}

// survivorsSay is what the survivors of four print of which these have died.
func survivorsSay(died []int, arguments ...string) string {
	var out strings.Builder
	for rank := range 4 {
		if slices.Contains(died, rank) {
			fmt.Fprintf(&out, "replica %d dies\na newcomer is right, arguments %q\n", rank, arguments)
		} else {
			fmt.Fprintf(&out, "replica %d is right, arguments %q\n", rank, arguments)
		}
	}
	return sortedLines(out.String())
}

// TestKubernetesSurvive runs the command of the manifest in each pod, as the kubelet does: again when it has failed.
// Replicas 0 and 1 die, one after the other, and their containers come back into the job, which is then found at pod 1,
// and at pod 2.
func TestKubernetesSurvive(t *testing.T) {
	pod := map[string]int{}
	for k := range 4 { // the name of the Service is that of all pods
		pod[fmt.Sprintf("rts-%d.rts rts", k)] = k
	}
	hosttest.Run(t, 4, pod, func(t *testing.T, s *hosttest.Stage) {
		p := newPrograms(t, s)
		manifest, err := os.ReadFile("kubernetes-survive.yaml")
		if err != nil {
			t.Fatal(err)
		}
		form := regexp.MustCompile(`(?s)- /run/gcl/busybox\n +- sh\n +- -c\n +- \|\n(.*?)\n +- rts\n +args: \["(-survive)", `)
		command := form.FindSubmatch(manifest)
		if command == nil {
			t.Fatalf("no command of the container is as %v", form)
		}
		var out, errs strings.Builder
		var mu sync.Mutex // guards both
		var all sync.WaitGroup
		for k, env := range pods(t, "kubernetes-survive.yaml") {
			places := strings.NewReplacer("/run/gcl", t.TempDir(), "/program", p.path("survivor"))
			script := places.Replace(string(command[1]))
			all.Go(func() {
				for range 3 {
					container := exec.Command("sh", "-c", script, "rts", string(command[2]), "-die", "0,1")
					container.Env = env
					var stdout, stderr strings.Builder
					container.Stdout, container.Stderr = &stdout, &stderr
					err := s.Start(k, container)
					if err == nil {
						err = container.Wait()
					}
					mu.Lock()
					out.WriteString(stdout.String())
					errs.WriteString(stderr.String())
					mu.Unlock()
					if err == nil {
						return
					}
				}
			})
		}
		all.Wait()
		if got, want := sortedLines(out.String()), survivorsSay([]int{0, 1}, "-survive", "-die", "0,1"); got != want {
			t.Errorf("printed\n%s\nwant\n%s\nstandard error\n%s", got, want, errs.String())
		}
	})
}

// TestSbatchSurvive runs the batch script: replicas 1 and 0 die, one after the other, and another comes in the place of
// each, the second of which finds the job on the other node.
func TestSbatchSurvive(t *testing.T) {
	hosttest.Run(t, 4, names, func(t *testing.T, s *hosttest.Stage) {
		p := newPrograms(t, s)
		in := script{p, t.TempDir(), []string{"SLURM_JOB_ID=5", "SLURM_CPUS_PER_TASK=3", "SLURM_NTASKS=4",
			"SLURM_NTASKS_PER_NODE=2", "SLURM_JOB_NODELIST=n[1-2]", "RTS=" + p.path("survivor")}}
		directory := filepath.Join(in.dir, "checkpoint-5")
		out, err := in.run("rts-survive.sbatch", "-die", "1,0")
		comes := "rts-survive.sbatch: a replica comes in the place of replica %d, and looks for the job on %s\n"
		want := sortedLines(survivorsSay([]int{0, 1}, "-survive", "-checkpoint", directory, "-die", "1,0") +
			fmt.Sprintf(comes, 1, "n1") + fmt.Sprintf(comes, 0, "n2"))
		if err != nil || sortedLines(out) != want {
			t.Errorf("error %v, printed\n%s\nwant\n%s", err, out, want)
		}
		in.env = append(in.env, "RESTARTS=0") // or one comes in two slow seconds
		for _, c := range []struct{ code, more string }{{"143", "scontrol [\"requeue\" \"5\"]\n"}, {"7", ""}} {
			if err := os.WriteFile(filepath.Join(in.dir, "code"), []byte(c.code), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := in.run("rts-survive.sbatch")
			var end *exec.ExitError
			if !errors.As(err, &end) || fmt.Sprint(end.ExitCode()) != c.code || strings.Count(out, "srun [") != 4 ||
				!strings.HasSuffix(out, c.more) || strings.Contains(out, "comes in the place") {
				t.Errorf("ended with %v, want exit code %s; printed\n%s", err, c.code, out)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(in.dir, ".gcl-secret*")); len(left) > 0 {
			t.Errorf("%s is left", left)
		}
	})
}
