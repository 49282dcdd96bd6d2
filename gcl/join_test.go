package gcl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
)

// job is a JoinConfig for replicas of this process that meet as processes do. No other test has its name.
func job(t testing.TB, size int) gcl.JoinConfig {
	where := "dir:" + t.TempDir()
	if runtime.GOOS == "linux" {
		name := strings.NewReplacer("/", "-", " ", "-", "#", "-").Replace(t.Name())
		where = fmt.Sprintf("unix:@gcl-test-%d-%s", os.Getpid(), name)
	}
	return gcl.JoinConfig{Size: size, Job: "test", Rendezvous: where, Timeout: time.Minute}
}

// inJob calls f for each replica of a job, on goroutines of their own, and returns their errors.
func inJob(size int, f func(rank int) error) []error {
	errs := make([]error, size)
	var all sync.WaitGroup
	for rank := range size {
		all.Go(func() { errs[rank] = f(rank) })
	}
	all.Wait()
	return errs
}

// checkSums has replicas add up numbers that each makes of its own, in calls of several lengths.
func checkSums(ctx context.Context, c *gcl.Comm) error {
	size := c.Size()
	for _, n := range []int{1, 1000, 300_000} {
		in := make([]int64, n)
		for i := range in {
			in[i] = int64(i * (c.Rank() + 1))
		}
		out, err := gcl.AllReduce(ctx, c, in, gcl.Add)
		if err != nil {
			return err
		}
		for i := range out {
			if want := int64(i * size * (size + 1) / 2); out[i] != want {
				return fmt.Errorf("element %d is %d, want %d", i, out[i], want)
			}
		}
	}
	return nil
}

// TestRunProcess: replicas that join are right, over all transports and kinds of rendezvous.
func TestRunProcess(t *testing.T) {
	leaktest.Check(t)
	for _, transport := range []string{"", "tcp", "unix", "shm"} {
		for _, size := range []int{1, 2, 3, 8} {
			t.Run(fmt.Sprintf("transport=%s/n=%d", transport, size), func(t *testing.T) {
				if (transport == "unix" || transport == "shm") && runtime.GOOS != "linux" {
					t.Skip("unix sockets and shared memory need Linux")
				}
				cfg := job(t, size)
				cfg.Transport, cfg.Secret = transport, []byte("a secret of this test")
				if size == 3 {
					cfg.Rendezvous = "dir:" + t.TempDir()
				}
				for rank, err := range inJob(size, func(rank int) error {
					cfg := cfg
					cfg.Rank = rank
					return gcl.RunProcess(context.Background(), cfg, func(ctx context.Context, c *gcl.Comm) error {
						if c.Replica() != rank || c.Replicas() != size {
							return fmt.Errorf("replica %d of %d is %d of %d", rank, size, c.Replica(), c.Replicas())
						}
						return checkSums(ctx, c)
					})
				}) {
					if err != nil {
						t.Errorf("replica %d: %v", rank, err)
					}
				}
			})
		}
	}
}

// TestRunProcessFails: the error of one body is an abort on the others, whose contexts end, and so is a panic.
func TestRunProcessFails(t *testing.T) {
	leaktest.Check(t)
	boom := errors.New("boom")
	for what, fail := range map[string]func() error{
		"error": func() error { return boom },
		"panic": func() error { panic(boom) },
	} {
		for _, waits := range []string{"collective", "context"} {
			t.Run(what+"/"+waits, func(t *testing.T) {
				cfg := job(t, 3)
				errs := inJob(3, func(rank int) error {
					cfg := cfg
					cfg.Rank = rank
					return gcl.RunProcess(context.Background(), cfg, func(ctx context.Context, c *gcl.Comm) error {
						if rank == 1 {
							return fail()
						}
						if waits == "context" {
							<-ctx.Done()
							return context.Cause(ctx)
						}
						return c.Barrier(ctx)
					})
				})
				for rank, err := range errs {
					if err == nil || !strings.Contains(err.Error(), "boom") {
						t.Errorf("replica %d: %v", rank, err)
					}
					if rank == 1 && !errors.Is(err, boom) {
						t.Errorf("replica 1: %v is not its own error", err)
					}
					if waits == "collective" && rank != 1 && !errors.Is(err, gcl.ErrAborted) {
						t.Errorf("replica %d: %v is not ErrAborted", rank, err)
					}
					want := "aborted by replica 1: boom"
					if waits == "collective" && rank != 1 && what == "error" && !strings.HasSuffix(err.Error(), want) {
						t.Errorf("replica %d: %q does not end with %q", rank, err, want)
					}
				}
			})
		}
	}
}

// TestJoinErrors: what is wrong is an error on every replica that has come, and names the replica and what to do.
func TestJoinErrors(t *testing.T) {
	leaktest.Check(t)
	t.Setenv("GCL_OPTIONS", "")
	join := func(cfg gcl.JoinConfig, opts ...gcl.CommOption) error {
		c, err := gcl.Join(context.Background(), cfg, opts...)
		if err != nil {
			return err
		}
		return c.Close()
	}
	for _, test := range []struct {
		name string
		odd  func(rank int, cfg *gcl.JoinConfig) []gcl.CommOption // changes what one replica of three does
		want []string                                             // in every error
	}{
		{"options", func(rank int, cfg *gcl.JoinConfig) []gcl.CommOption {
			if rank == 2 {
				return []gcl.CommOption{gcl.WithOptions(gcl.Options{Reproducible: true})}
			}
			return nil
		}, []string{"reproducible", "the default", "true", "replica 2"}},
		{"size", func(rank int, cfg *gcl.JoinConfig) []gcl.CommOption {
			if rank == 2 {
				cfg.Size = 4
			}
			return nil
		}, []string{"replica 2", "4", "3"}},
		{"missing", func(rank int, cfg *gcl.JoinConfig) []gcl.CommOption {
			cfg.Timeout = 2 * time.Second
			if rank == 1 {
				cfg.Rank = -1 // it does not come
			}
			return nil
		}, []string{"replica 1"}},
		{"duplicate", func(rank int, cfg *gcl.JoinConfig) []gcl.CommOption {
			cfg.Timeout = 5 * time.Second
			if rank == 1 {
				cfg.Rank = 2
			}
			return nil
		}, []string{"replica 2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := job(t, 3)
			for rank, err := range inJob(3, func(rank int) error {
				cfg := cfg
				cfg.Rank = rank
				opts := test.odd(rank, &cfg)
				if cfg.Rank < 0 {
					return nil
				}
				return join(cfg, opts...)
			}) {
				if rank == 1 && test.name == "missing" {
					continue
				}
				if err == nil {
					t.Errorf("replica %d: no error", rank)
					continue
				}
				for _, want := range test.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("replica %d: %q does not say %q", rank, err, want)
					}
				}
			}
		})
	}
	t.Run("environment", func(t *testing.T) {
		t.Setenv("GCL_OPTIONS", `{"method": "direct"}`)
		cfg := job(t, 2)
		for rank, err := range inJob(2, func(rank int) error {
			cfg := cfg
			cfg.Rank = rank
			return join(cfg, gcl.WithOptions(gcl.Options{Reproducible: rank == 1}))
		}) {
			if err == nil || !strings.Contains(err.Error(), "the options: reproducible differs") {
				t.Errorf("replica %d: %v", rank, err)
			}
		}
	})
	for name, cfg := range map[string]gcl.JoinConfig{
		"want 0 to Size-1":           {Rank: 3, Size: 3},
		"give both":                  {Rank: 3},
		"transport \"infiniband\"":   {Size: 2, Rendezvous: "unix:@x", Transport: "infiniband"},
		"no Rendezvous":              {Size: 2},
		"want host:port":             {Size: 2, Rendezvous: "nowhere"},
		"can be reached from other":  {Size: 2, Rendezvous: "192.0.2.1:6000"},
		"JoinConfig.Timeout is -1ns": {Size: 2, Rendezvous: "unix:@x", Timeout: -1},
		"JoinConfig.Checksum is 7":   {Size: 2, Rendezvous: "unix:@x", Checksum: 7},
		"JoinConfig.Interface":       {Size: 2, Rendezvous: "unix:@x", Interface: "10.0.0.0/99"},
	} {
		if err := join(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v does not say %q", cfg, err, name)
		}
	}
}

// TestNoJob: without a launcher there is no job, and RunOrJoin runs goroutines.
func TestNoJob(t *testing.T) {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		for _, prefix := range []string{
			"OMPI_", "PMI", "SLURM_", "RANK", "WORLD_SIZE", "LOCAL_", "JOB_COMPLETION", "GCL_",
		} {
			if strings.HasPrefix(name, prefix) {
				t.Setenv(name, "")
			}
		}
	}
	if _, err := gcl.Join(context.Background(), gcl.JoinConfig{}); !errors.Is(err, gcl.ErrNoJob) {
		t.Errorf("Join: %v", err)
	}
	var mu sync.Mutex
	var ranks []int
	if err := gcl.RunOrJoin(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) error {
		mu.Lock()
		defer mu.Unlock()
		ranks = append(ranks, c.Replica())
		return nil
	}); err != nil {
		t.Error(err)
	}
	if slices.Sort(ranks); !slices.Equal(ranks, []int{0, 1, 2}) {
		t.Errorf("RunOrJoin ran replicas %d", ranks)
	}
	var any atomic.Int64
	if err := gcl.RunOrJoin(context.Background(), 0, func(_ context.Context, c *gcl.Comm) error {
		any.Add(1)
		if want := runtime.GOMAXPROCS(0); c.Replicas() != want {
			return fmt.Errorf("%d replicas, want GOMAXPROCS, %d", c.Replicas(), want)
		}
		return nil
	}); err != nil || any.Load() != int64(runtime.GOMAXPROCS(0)) {
		t.Errorf("RunOrJoin of any number: %d replicas, %v", any.Load(), err)
	}
	t.Setenv("RANK", "0")
	t.Setenv("WORLD_SIZE", "1")
	err := gcl.RunOrJoin(context.Background(), 3, func(context.Context, *gcl.Comm) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "3 replicas, and the job has 1") {
		t.Errorf("RunOrJoin of another size: %v", err)
	}
	if err := gcl.RunOrJoin(context.Background(), 0, func(_ context.Context, c *gcl.Comm) error {
		if c.Replicas() != 1 {
			return fmt.Errorf("%d replicas", c.Replicas())
		}
		return nil
	}); err != nil {
		t.Errorf("RunOrJoin in a job of one: %v", err)
	}
}

// TestJoinLogs: what stands in the way of joining is logged while it lasts.
func TestJoinLogs(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	var log bytes.Buffer
	_, err = gcl.Join(t.Context(), gcl.JoinConfig{Size: 2, Rendezvous: busy.Addr().String(),
		Timeout: 100 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	want := "gcl: joining: replica 0 cannot listen at " + busy.Addr().String() + ", since another process does"
	if err == nil || !strings.Contains(log.String(), want) {
		t.Errorf("error %v, and the log has %q, want %q", err, log.String(), want)
	}
}

// TestRunUnderALauncher: Run in one of several processes says once that each of them has a job of its own.
func TestRunUnderALauncher(t *testing.T) {
	for _, c := range []struct {
		size string
		want string
	}{
		{"", ""}, {"1", ""},
		{"4", "Run makes a job of 2 replicas in this process, and so does each of the 4 processes that the launcher has " +
			"started: call RunOrJoin for one job of 4"},
	} {
		t.Run("size="+c.size, func(t *testing.T) {
			t.Setenv("WORLD_SIZE", c.size)
			t.Setenv("RANK", map[bool]string{true: "0"}[c.size != ""])
			gcl.LookAgain()
			t.Cleanup(gcl.LookAgain)
			var log bytes.Buffer
			before := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
			t.Cleanup(func() { slog.SetDefault(before) })
			for range 2 {
				if err := gcl.Run(t.Context(), 2, func(context.Context, *gcl.Comm) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if text := log.String(); strings.Count(text, "Run makes a job") != min(len(c.want), 1) ||
				!strings.Contains(text, c.want) {
				t.Errorf("the log has %q, want %q once", text, c.want)
			}
		})
	}
}

// TestDumpOfProcesses: Dump has what the replicas of other processes were doing.
func TestDumpOfProcesses(t *testing.T) {
	leaktest.Check(t)
	cfg := job(t, 3)
	dumps := make([]string, 3)
	inJob(3, func(rank int) error {
		cfg := cfg
		cfg.Rank = rank
		c, err := gcl.Join(context.Background(), cfg)
		if err != nil {
			t.Error(err)
			return nil
		}
		defer c.Close()
		c = c.Named(fmt.Sprintf("mine%d", rank))
		err = c.Barrier(context.Background())
		if rank == 2 {
			c.Abort(errors.New("enough"))
		}
		if err == nil { // else the abort came before the end of the first barrier
			err = c.Barrier(context.Background())
		}
		dumps[rank] = gcl.Dump(err)
		return nil
	})
	for rank, d := range dumps {
		for other := range dumps {
			name := fmt.Sprintf("\"mine%d\"", other)
			told := fmt.Sprintf("replica %d, in another process", other)
			if !strings.Contains(d, name) || strings.Contains(d, told) != (other != rank) {
				t.Errorf("replica %d does not tell of replica %d:\n%s", rank, other, d)
			}
		}
	}
}
