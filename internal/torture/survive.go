package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/internal/command"
)

// surviving is what mode survive does: jobs that go on without replicas that are killed, or stopped for too long.
type surviving struct {
	runs, jobs int
	seed       uint64
	network    string
	single     bool     // one replica of each job is killed, and none is stopped
	grow       bool     // with single: another comes in its place
	processes  int      // 0: the seed decides
	hosts      []string // files of network namespaces, of each replica in turn
	steps      int      // of a job; in the first half of them replicas are ended

	mu       sync.Mutex // guards what follows
	done     int
	wrong    int
	first    string          // of those that were wrong
	recovery []time.Duration // from the end of the only one that is killed to the first step of all others
	growth   []time.Duration // from there to the first step of all with the process in its place
}

// surviveSteps is how many steps a job has if nothing else is said.
const surviveSteps = 2000

// survivePatience is how long a replica may go without a step, on a busy machine too.
const survivePatience = time.Minute

// surviveSilence is JoinConfig.Silence where a replica is stopped.
const surviveSilence = time.Second

func survive(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s surviving
	flags := flag.NewFlagSet("torture survive", flag.ContinueOnError)
	flags.IntVar(&s.runs, "runs", 100, "number of `jobs`")
	flags.IntVar(&s.jobs, "j", 1, "number of `jobs` at a time")
	flags.Uint64Var(&s.seed, "seed", 1, "`seed` of the first job: it decides who is ended, how and when")
	flags.StringVar(&s.network, "transport", "", "tcp, unix or shm; default: the seed decides")
	flags.IntVar(&s.processes, "n", 0, "number of `processes`; 0: the seed decides, 2 to 7")
	flags.IntVar(&s.steps, "steps", surviveSteps, "`steps` of a job: on a busy machine they take long")
	flags.Func("hosts", "network namespaces that replicas run in, in turn, as `files` with commas between; see "+
		"bench/hosts.sh", s.setHosts)
	flags.BoolVar(&s.single, "single", false, "kill one replica of each job, to see how long the others take to go on")
	flags.BoolVar(&s.grow, "grow", false, "with -single, start a process in its place, to see how long it takes to come")
	err := command.Parse(flags, args, stdout, "Runs jobs whose replicas commit steps. Some are killed, or one is stopped "+
		"for too long. The others are to go on, with the steps that were done, and in some jobs with processes that come "+
		"in place of those that were killed.")
	if errors.Is(err, flag.ErrHelp) {
		return command.OK
	}
	switch {
	case err != nil:
	case s.runs < 1:
		err = fmt.Errorf("-runs %d, want 1 or more", s.runs)
	case s.jobs < 1 || s.jobs > 64:
		err = fmt.Errorf("-j %d, want 1 to 64", s.jobs)
	case s.processes < 0 || s.processes == 1 || s.processes > 64:
		err = fmt.Errorf("-n %d, want 2 to 64, or 0", s.processes)
	case s.steps < 2 || s.steps > 1_000_000:
		err = fmt.Errorf("-steps %d, want 2 to 1000000", s.steps)
	case s.grow && !s.single:
		err = errors.New("-grow: there is no -single")
	case len(s.hosts) > 0 && s.network != "":
		err = fmt.Errorf("-transport %s with -hosts: over hosts it is auto", s.network)
	case !slices.Contains(networks, s.network):
		err = fmt.Errorf("-transport %s, want tcp, unix or shm", s.network)
	}
	if err != nil {
		return command.Mistake("torture", err, stderr)
	}
	if unsupported != "" {
		fmt.Fprintln(stderr, unsupported)
		return command.Failed
	}
	began := time.Now()
	failed := each(ctx, s.runs, s.jobs, func(k int) error { return s.one(ctx, s.seed+uint64(k)) })
	s.print(stdout, time.Since(began))
	switch {
	case ctx.Err() != nil:
		return command.Ended(ctx, "torture", ctx.Err(), stderr)
	case failed != nil:
		fmt.Fprintf(stderr, "torture: %v\n", failed)
		return command.Failed
	case s.wrong > 0:
		fmt.Fprintf(stderr, "torture: the first that was wrong: %s\n", s.first)
		return command.Failed
	}
	return command.OK
}

// setHosts takes -hosts.
func (s *surviving) setHosts(files string) error {
	s.hosts = strings.Split(files, ",")
	for _, file := range s.hosts {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%w: want files such as /proc/PID/ns/net", err)
		}
	}
	return nil
}

// firstHost is the address of the first of bench/hosts.sh's hosts, and firstPort the port of the first job's meeting:
// each has its own.
const firstHost, firstPort, manyPorts = "10.77.0.1", 7000, 20000

// where is where the replicas of a job meet.
func (s *surviving) where(seed uint64) string {
	if len(s.hosts) > 0 {
		return fmt.Sprintf("%s:%d", firstHost, firstPort+seed%manyPorts)
	}
	return fmt.Sprintf("unix:@torture-survive-%d-%d", os.Getpid(), seed)
}

// start starts a replica, on its host if there are several.
func (s *surviving) start(ctx context.Context, o order, dir string) (*process, error) {
	if len(s.hosts) > 0 {
		o.host = s.hosts[o.Rank%len(s.hosts)]
	}
	return start(ctx, o, dir)
}

// print prints how the jobs have gone.
func (s *surviving) print(stdout io.Writer, took time.Duration) {
	fmt.Fprintf(stdout, "%d jobs went on, %d wrong, in %v\n", s.done-s.wrong, s.wrong, took.Round(time.Millisecond))
	for _, took := range []struct {
		what string
		all  []time.Duration
	}{
		{"from the end of a replica to the first step of all others", s.recovery},
		{"from there to the first step of all with a process in its place", s.growth},
	} {
		if n := len(took.all); n > 0 {
			slices.Sort(took.all)
			fmt.Fprintf(stdout, "%s: median %v, 99th percentile %v, of %d\n", took.what,
				took.all[n/2].Round(10*time.Microsecond), took.all[n*99/100].Round(10*time.Microsecond), n)
		}
	}
}

// one carries out the job of a seed.
func (s *surviving) one(ctx context.Context, seed uint64) error {
	o, e := s.plan(seed)
	dir, err := os.MkdirTemp("", "torture-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	running, stop := context.WithCancel(ctx)
	var all []*process
	came := make([]*process, len(e.victims)) // in their places
	defer func() {
		stop()
		for _, p := range slices.Concat(all, came) {
			if p != nil {
				<-p.ended
			}
		}
	}()
	where := s.where(seed)
	for rank := range o.Size {
		p, err := s.start(running, order{Seed: seed, Rank: rank, Where: where, Survive: &o}, dir)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	killed := make([]time.Time, len(e.victims))
	var enders errgroup.Group
	for i, v := range e.victims {
		enders.Go(func() (err error) {
			p := all[v]
			for p.reached() < e.at[i] {
				select {
				case <-p.ended:
					return nil
				case <-time.After(time.Millisecond):
				}
			}
			time.Sleep(e.after[i])
			if killed[i] = time.Now(); e.stop {
				_ = signalTo(p.cmd.Process.Pid, stopSignal) // it may have ended
				return nil
			}
			_ = p.cmd.Process.Kill()
			if o.Comers > 0 {
				own := o
				own.Newcomer = true
				came[i], err = s.start(running, order{Seed: seed, Rank: v, Where: where, Survive: &own}, dir)
			}
			return err
		})
	}
	wrong := s.wait(all, e)
	if err := enders.Wait(); err != nil {
		return err
	}
	if wrong == "" && o.Comers > 0 {
		wrong = s.wait(came, ends{})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if wrong == "" {
		wrong = judgeSurvivors(all, came, e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	if wrong != "" {
		if s.wrong++; s.first == "" || s.wrong == 1 {
			s.first = fmt.Sprintf("seed %d, %d processes by %s, of which %v end: %s\nto repeat it: go run ./internal/torture "+
				"survive -runs 1 -seed %[1]d%[6]s", seed, o.Size, o.Transport, e.victims, wrong,
				strings.Repeat(" -hosts ...", min(len(s.hosts), 1)))
		}
		return nil
	}
	if len(e.victims) == 1 && !e.stop {
		var last int64
		for r, p := range all {
			if r != e.victims[0] && len(p.goods) > 0 {
				last = max(last, p.goods[0])
			}
		}
		if last > 0 { // else it was killed after the end
			s.recovery = append(s.recovery, time.Unix(0, last).Sub(killed[0]))
		}
		if o.Comers > 0 {
			last = 0
			for r, p := range append(slices.Clone(all), came...) {
				if r != e.victims[0] {
					last = max(last, p.report.Survived.Grown)
				}
			}
			s.growth = append(s.growth, time.Unix(0, last).Sub(killed[0]))
		}
	}
	return nil
}

// wait waits for the replicas of a job, those that are stopped last. It says who hangs.
func (s *surviving) wait(all []*process, e ends) string {
	for _, stopped := range []bool{false, true} {
		for r, p := range all {
			if is := e.stop && r == e.victims[0]; is != stopped {
				continue
			}
			if stopped {
				proceed(p.cmd.Process)
			}
			if !goesOn(p) {
				askStacks(p.cmd.Process)
				<-p.ended
				return fmt.Sprintf("replica %d hangs:\n%s", r, p.stderr.text)
			}
		}
	}
	return ""
}

// goesOn waits for the end of a process, and reports whether it has come. It waits as long as steps go on.
func goesOn(p *process) bool {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	step, since := p.reached(), time.Now()
	for {
		select {
		case <-p.ended:
			return true
		case now := <-look.C:
			if at := p.reached(); at != step {
				step, since = at, now
			}
			if now.Sub(since) >= survivePatience {
				return false
			}
		}
	}
}
