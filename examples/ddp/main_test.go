package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/jobtest"
)

func TestMain(m *testing.M) { jobtest.Main(m, main) }

// byOne trains as train does, in one thread: it computes the gradients of all replicas, adds them in the order of the
// ranks, and divides.
func byOne(n, steps, micros int) [][]float64 {
	params := begin(0)
	for step := range steps {
		var total [][]float64
		for rank := range n {
			grads := zeros()
			for micro := range micros {
				_, _ = backward(params, grads, points(step, micro, rank), func(int) error { return nil })
			}
			if rank == 0 {
				total = grads
				continue
			}
			for i, g := range grads {
				for j := range g {
					total[i][j] += g[j]
				}
			}
		}
		for _, g := range total {
			for j := range g {
				g[j] /= float64(n)
			}
		}
		update(params, total, micros)
	}
	return params
}

// TestBits: the parameters of all replicas are those of one process that folds in rank order, to the bit.
func TestBits(t *testing.T) {
	const steps = 50
	for _, n := range []int{1, 2, 3, 4} {
		for _, micros := range []int{1, 3} {
			t.Run(fmt.Sprintf("n=%d/accumulate=%d", n, micros), func(t *testing.T) {
				want := sum(byOne(n, steps, micros))
				if err := gcl.Run(t.Context(), n, func(ctx context.Context, c *gcl.Comm) error {
					params, err := train(ctx, c, steps, micros, io.Discard)
					if err == nil && sum(params) != want {
						err = fmt.Errorf("%016x, want %016x", sum(params), want)
					}
					return err
				}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// output is what the program prints.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, stderr strings.Builder
	if code := run(t.Context(), args, &out, &stderr); code != command.OK {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	return out.String()
}

// TestLearns: the loss, which is 1/6 of a net that says 0, falls below a hundredth.
func TestLearns(t *testing.T) {
	losses := regexp.MustCompile(`loss (\S+)`).FindAllStringSubmatch(output(t, "-n", "2", "-steps", "2000"), -1)
	if len(losses) != 20 {
		t.Fatalf("%d losses", len(losses))
	}
	if last, err := strconv.ParseFloat(losses[19][1], 64); err != nil || last > 0.01 {
		t.Errorf("loss %v, %v", last, err)
	}
}

// TestJob: three processes print what three goroutines print, and only replica 0 prints.
func TestJob(t *testing.T) {
	args := []string{"-n", "3", "-steps", "120", "-accumulate", "2"}
	want := output(t, args...)
	for rank, r := range jobtest.Start(t, 3, args...).Wait() {
		if rank > 0 {
			want = ""
		}
		if r.Code != command.OK || r.Stderr != "" || r.Stdout != want {
			t.Errorf("replica %d: %+v, want\n%s", rank, r, want)
		}
	}
}

// TestMistakes: a number that is too small is named.
func TestMistakes(t *testing.T) {
	for _, args := range []string{"-n -1, want 0", "-steps 0, want 1", "-accumulate 0, want 1"} {
		var out, stderr strings.Builder
		flag, _, _ := strings.Cut(args, ",")
		code := run(t.Context(), strings.Fields(flag), &out, &stderr)
		if code != command.Usage || !strings.Contains(stderr.String(), args) {
			t.Errorf("%s: exit code %d, %q", flag, code, stderr.String())
		}
	}
}
