package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/transport"
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

// surviveOrder is what a process of mode survive is told.
type surviveOrder struct {
	Size      int
	Transport string
	Silence   time.Duration
	Steps     int
	Comers    int  // that come in place of those that are killed
	Newcomer  bool // this process does
}

// survived is what a replica has done.
type survived struct {
	Steps      int
	State      uint64 // of these steps
	Members    []int  // ranks at the beginning of those that are left
	LeftBehind bool   // its error is transport.ErrLeftBehind
	Grown      int64  // when it has done the first step with the last that has come, in nanoseconds of the clock

	came  int    // how many have come
	next  uint64 // state after the step that is being made
	made  bool   // it has that
	alone bool   // others are gone, and there has been no step since
	grows bool   // one has come, and there has been no step since
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

// ends is how the replicas of a job are ended: each at a step, and a while after.
type ends struct {
	stop    bool // the one victim is stopped, until the others have ended
	victims []int
	at      []int
	after   []time.Duration
}

// plan decides by a seed.
func (s *surviving) plan(seed uint64) (o surviveOrder, e ends) {
	r := rand.New(rand.NewPCG(seed, 34))
	o.Size, o.Steps = 2+r.IntN(6), s.steps
	if s.processes > 0 {
		o.Size = s.processes
	}
	o.Transport = networks[1+r.IntN(len(networks)-1)]
	if s.network != "" {
		o.Transport = s.network
	}
	many := 1
	switch k := r.IntN(10); {
	case s.single:
	case k < 2 && o.Size > 2:
		e.stop, o.Silence = true, surviveSilence
	case k < 6:
		many = 1 + r.IntN(o.Size-1)
	}
	e.victims = r.Perm(o.Size)[:many]
	at := r.IntN(s.steps / 2)
	for range e.victims {
		e.at = append(e.at, at)
		e.after = append(e.after, time.Duration(r.Int64N(int64(20*time.Millisecond))))
		if r.IntN(2) == 0 { // the next one not at the same time
			at = r.IntN(s.steps / 2)
		}
	}
	if s.grow || !s.single && !e.stop && r.IntN(2) == 0 {
		o.Comers = many
	}
	if len(s.hosts) > 0 {
		s.overHosts(&o, &e)
	}
	return o, e
}

// overHosts has more than half of the replicas go on: over several hosts fewer may not. Others come where the job
// meets, so only while replica 0 lives.
func (s *surviving) overHosts(o *surviveOrder, e *ends) {
	o.Transport = "auto"
	if o.Size == 2 {
		o.Size = 3
	}
	many := min(len(e.victims), (o.Size-1)/2)
	e.victims, e.at, e.after = e.victims[:many], e.at[:many], e.after[:many]
	o.Comers = min(o.Comers, many)
	if slices.Contains(e.victims, 0) {
		o.Comers = 0
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

// judgeSurvivors says what is wrong with the end of a job, to which those that came have come, or are nil. One that was
// taken in and has given up by then, which it may on a busy machine, comes again, as another one. So of those that come
// only their number is known before, and that all name the same.
func judgeSurvivors(all, came []*process, e ends) string {
	var left []int
	began := len(all)
	for r := range all {
		if !slices.Contains(e.victims, r) {
			left = append(left, r)
		}
	}
	for _, p := range came {
		if p != nil {
			left, all = append(left, len(all)), append(slices.Clone(all), p)
		}
	}
	var first *survived
	for r, p := range all {
		victim := slices.Contains(e.victims, r)
		switch {
		case victim && !e.stop:
			if p.report != nil && p.report.Error != "" { // it has been killed after its end, or not at all
				return fmt.Sprintf("replica %d, which was to be killed: %s", r, p.report.Error)
			}
			continue
		case p.report == nil || p.report.Survived == nil:
			return fmt.Sprintf("replica %d: %s, no report\n%s", r, p.state, p.stderr.text)
		case victim:
			if !p.report.Survived.LeftBehind {
				return fmt.Sprintf("replica %d, which was stopped: %q, want that it is left behind", r, p.report.Error)
			}
			continue
		case p.report.Error != "":
			return fmt.Sprintf("replica %d: %s", r, p.report.Error)
		}
		got := p.report.Survived
		later := slices.IndexFunc(got.Members, func(m int) bool { return m >= began })
		if later < 0 {
			later = len(got.Members)
		}
		switch {
		case len(got.Members) != len(left) || !slices.Equal(got.Members[:later], left[:later]) ||
			later < len(left) && left[later] < began:
			return fmt.Sprintf("replica %d has gone on with %v, want %v", r, got.Members, left)
		case first == nil:
			first = got
		case !slices.Equal(first.Members, got.Members):
			return fmt.Sprintf("replica %d has gone on with %v, and replica %d with %v", left[0], first.Members, r,
				got.Members)
		case first.Steps != got.Steps || first.State != got.State:
			return fmt.Sprintf("replica %d has done %d steps to %#x, and replica %d %d to %#x", left[0], first.Steps,
				first.State, r, got.Steps, got.State)
		}
	}
	return ""
}

// surviveReplica is a process of mode survive.
func surviveReplica(o order) report {
	s := o.Survive
	cfg := gcl.JoinConfig{Rank: o.Rank, Size: s.Size, Job: fmt.Sprint("survive ", o.Seed), Rendezvous: o.Where,
		Transport: s.Transport, Secret: []byte("torture survives this"), Timeout: survivePatience, Silence: s.Silence}
	cfg.Newcomer = s.Newcomer
	elastic := gcl.Elastic{Min: 1}
	if s.Comers > 0 {
		elastic.Max = s.Size
	}
	var got survived
	err := gcl.RunProcess(context.Background(), cfg, func(ctx context.Context, c *gcl.Comm) error {
		return got.work(ctx, c, s)
	}, gcl.WithElastic(elastic))
	r := newReport(o.Rank, err, nil, nil)
	got.LeftBehind = errors.Is(err, transport.ErrLeftBehind)
	r.Survived = &got
	return r
}

// work commits steps until there are enough, and all that have died have been replaced if others come in their places.
// It is called again when the members have changed.
func (g *survived) work(ctx context.Context, c *gcl.Comm, o *surviveOrder) error {
	if change, changed := c.Change(); !changed {
		for r := range o.Size {
			g.Members = append(g.Members, r)
		}
	} else if err := g.take(ctx, c, change, o.Size); err != nil {
		return err
	}
	sums := make([]uint64, 1000)
	for g.Steps < o.Steps || g.came < o.Comers {
		if g.Steps%10 == 0 {
			fmt.Println(atLine, g.Steps)
		}
		g.made = false
		done, err := c.Commit(ctx, func() (err error) {
			g.next, err = g.step(ctx, c, sums)
			g.made = err == nil
			return err
		})
		if done {
			g.Steps, g.State, g.made = g.Steps+1, g.next, false
			if g.alone {
				fmt.Println(goodLine, time.Now().UnixNano())
			}
			if g.grows {
				g.Grown = time.Now().UnixNano()
			}
			g.alone, g.grows = false, false
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take goes on from the steps that are done, with other members. Of a job of size at first, those that come have the
// ranks from size on.
func (g *survived) take(ctx context.Context, c *gcl.Comm, change gcl.Change, size int) error {
	blank := slices.Contains(change.Came, c.Replica())
	if !blank {
		switch change.Committed {
		case uint64(g.Steps):
		case uint64(g.Steps) + 1:
			if !g.made {
				return &wrongError{fmt.Errorf("step %d counts as done, and this replica has failed in it", g.Steps)}
			}
			g.Steps, g.State = g.Steps+1, g.next
		default:
			return &wrongError{fmt.Errorf("%d steps count as done, and this replica has done %d", change.Committed,
				g.Steps)}
		}
		members := make([]int, 0, c.Size())
		for _, before := range change.Replicas {
			members = append(members, g.Members[before])
		}
		for len(members) < c.Size() {
			members, g.came, g.grows = append(members, size+g.came), g.came+1, true
		}
		g.Members, g.alone, g.made = members, g.alone || len(change.Left) > 0, false
	}
	if len(change.Came) == 0 {
		return nil
	}
	all := make([]uint64, 3+c.Size())
	if !blank {
		all[0], all[1], all[2] = uint64(g.Steps), g.State, uint64(g.came)
		for i, member := range g.Members {
			all[3+i] = uint64(member)
		}
	}
	own := slices.Clone(all)
	if err := gcl.BroadcastInPlace(ctx, c, all, change.Givers[0]); err != nil {
		return err
	}
	if !blank && !slices.Equal(own, all) {
		return &wrongError{fmt.Errorf("replica %d gives %v, and this one has %v", change.Givers[0], all, own)}
	}
	g.Steps, g.State, g.came, g.grows = int(all[0]), all[1], int(all[2]), true
	g.Members = g.Members[:0]
	for _, member := range all[3:] {
		g.Members = append(g.Members, int(member))
	}
	return nil
}

// step returns the state after the next step: a hash over what all members give to it.
func (g *survived) step(ctx context.Context, c *gcl.Comm, sums []uint64) (uint64, error) {
	value := func(member, i int) uint64 {
		return uint64(member+1) * uint64(g.Steps+3) * uint64(i+7) * 0x9e3779b97f4a7c15
	}
	for i := range sums {
		sums[i] = value(g.Members[c.Replica()], i)
	}
	if err := gcl.AllReduceInPlace(ctx, c, sums, gcl.Add); err != nil {
		return 0, err
	}
	state := g.State
	for i, sum := range sums {
		var want uint64
		for _, member := range g.Members {
			want += value(member, i)
		}
		if sum != want {
			return 0, &wrongError{fmt.Errorf("step %d, element %d: %#x, want %#x of %v", g.Steps, i, sum, want,
				g.Members)}
		}
		state = state*31 + sum
	}
	return state, nil
}
