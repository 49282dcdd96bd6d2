package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
)

// standing is what mode stand does: a job that is to stand a busy machine, and pauses, without a replica that counts as
// lost.
type standing struct {
	processes, load int
	length          time.Duration // of the job
	pause           time.Duration // the longest
	silence         time.Duration // JoinConfig.Silence
	transport       string
	seed            uint64
}

// standOrder is what a process of mode stand is told.
type standOrder struct {
	Size      int
	Transport string
	Silence   time.Duration
	Length    time.Duration // from the first call on, by the clock of replica 0
	Busy      int           // not 0: no replica, but so many threads that are busy
}

// stand carries out mode stand.
func stand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s standing
	flags := flag.NewFlagSet("torture stand", flag.ContinueOnError)
	flags.IntVar(&s.processes, "n", 8, "number of `processes`")
	flags.IntVar(&s.load, "load", 40, "`threads` that want a processor, those of the replicas among them")
	flags.DurationVar(&s.length, "for", 20*time.Minute, "how `long` the job lasts")
	flags.DurationVar(&s.pause, "pause", 4*time.Second, "how `long` a replica is stopped at most")
	flags.DurationVar(&s.silence, "silence", 5*time.Second, "JoinConfig.Silence")
	flags.StringVar(&s.transport, "transport", "auto", "JoinConfig.Transport")
	flags.Uint64Var(&s.seed, "seed", 1, "`seed` of the pauses")
	err := command.Parse(flags, args, stdout, "Runs one job on a machine that is kept busy, and stops its replicas in "+
		"turn for a while, by SIGSTOP and SIGCONT. No replica is to count as lost.")
	if errors.Is(err, flag.ErrHelp) {
		return command.OK
	}
	switch {
	case err != nil:
	case s.processes < 2 || s.processes > 64:
		err = fmt.Errorf("-n %d, want 2 to 64", s.processes)
	case s.load < 0 || s.load > 1000:
		err = fmt.Errorf("-load %d, want 0 to 1000", s.load)
	case s.length <= 0 || s.pause <= 0 || s.silence <= 0:
		err = fmt.Errorf("-for %v, -pause %v, -silence %v, want more than 0 for each", s.length, s.pause, s.silence)
	}
	if err != nil {
		return command.Mistake("torture", err, stderr)
	}
	if unsupported != "" {
		fmt.Fprintln(stderr, unsupported)
		return command.Failed
	}
	alarms, text, err := s.run(ctx)
	fmt.Fprint(stdout, text)
	switch {
	case ctx.Err() != nil:
		return command.Ended(ctx, "torture", ctx.Err(), stderr)
	case err != nil:
		fmt.Fprintf(stderr, "torture: %v\n", err)
		return command.Failed
	case alarms > 0:
		return command.Failed
	}
	return command.OK
}

// run carries out the job, and returns how many replicas have ended with an error, and the text of the outcome.
func (s *standing) run(ctx context.Context) (alarms int, text string, err error) {
	dir, err := os.MkdirTemp("", "torture-")
	if err != nil {
		return 0, "", err
	}
	defer os.RemoveAll(dir)
	running, stop := context.WithCancel(ctx)
	var all []*process // the replicas, and who keeps the machine busy
	defer func() {
		stop()
		for _, p := range all {
			<-p.ended
		}
	}()
	where := fmt.Sprintf("unix:@torture-stand-%d-%d", os.Getpid(), s.seed)
	begin := func(o order) error {
		p, err := start(running, o, dir)
		if err == nil {
			all = append(all, p)
		}
		return err
	}
	o := order{Seed: s.seed, Where: where, Stand: &standOrder{Size: s.processes, Transport: s.transport,
		Silence: s.silence, Length: s.length}}
	for o.Rank = 0; o.Rank < s.processes; o.Rank++ {
		if err := begin(o); err != nil {
			return 0, "", err
		}
	}
	replicas := all
	if busy := s.load - s.processes; busy > 0 {
		if err := begin(order{Stand: &standOrder{Busy: busy}}); err != nil {
			return 0, "", err
		}
	}
	over := make(chan struct{})
	go func() {
		for _, p := range replicas {
			<-p.ended
		}
		close(over)
	}()
	began := time.Now()
	r := rand.New(rand.NewPCG(s.seed, 19))
	pauses, longest := 0, time.Duration(0)
	wait := func(d time.Duration) bool {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return true
		case <-over:
		case <-ctx.Done():
		}
		return false
	}
	for wait(time.Duration(r.Int64N(int64(s.pause)))) {
		p := replicas[r.IntN(len(replicas))]
		if p.reached() < 0 { // before the first call there is nothing to stand
			continue
		}
		length := time.Duration(r.Int64N(int64(s.pause)))
		stopped := time.Now()
		if signalTo(p.cmd.Process.Pid, stopSignal) != nil { // it has ended
			continue
		}
		wait(length)
		proceed(p.cmd.Process)
		pauses++
		longest = max(longest, time.Since(stopped))
	}
	if ctx.Err() != nil {
		return 0, "", context.Cause(ctx)
	}
	var faults strings.Builder
	for _, p := range replicas {
		switch {
		case p.report == nil:
			alarms++
			fmt.Fprintf(&faults, "replica %d: %s, no report\n%s", p.rank, p.state, p.stderr.text)
		case p.report.Error != "":
			alarms++
			fmt.Fprintf(&faults, "replica %d: %s\n", p.rank, p.report.Error)
		}
	}
	verdict := "no false alarm"
	if alarms > 0 {
		verdict = fmt.Sprintf("%d replicas ended with an error", alarms)
	}
	return alarms, fmt.Sprintf("%s%d replicas by %s, %d busy threads beside, Silence %v, %d pauses of up to %v, %d calls in "+
		"%v: %s\n", faults.String(), s.processes, s.transport, max(s.load-s.processes, 0), s.silence, pauses,
		longest.Round(time.Millisecond), replicas[0].reached()+1, time.Since(began).Round(time.Second), verdict), nil
}

// standReplica is a process of mode stand. It says how many calls it has begun, now and then.
func standReplica(o order) report {
	s := o.Stand
	if s.Busy > 0 {
		runtime.GOMAXPROCS(s.Busy)
		var sink atomic.Uint64
		for range s.Busy - 1 {
			go spin(&sink)
		}
		spin(&sink)
	}
	cfg := gcl.JoinConfig{Rank: o.Rank, Size: s.Size, Job: fmt.Sprint("stand ", o.Where), Rendezvous: o.Where,
		Transport: s.Transport, Secret: []byte("torture stands this"), Timeout: 10 * time.Minute, Silence: s.Silence}
	err := gcl.RunProcess(context.Background(), cfg, func(ctx context.Context, c *gcl.Comm) error {
		long, over := make([]float32, 30_000), make([]int32, 1)
		began := time.Now()
		for k := 0; ; k++ {
			if k%100 == 0 || time.Since(began) >= s.Length {
				fmt.Println(atLine, k)
			}
			if err := gcl.AllReduceInPlace(ctx, c, long, gcl.Add); err != nil {
				return err
			}
			over[0] = 0
			if c.Rank() == 0 && time.Since(began) >= s.Length {
				over[0] = 1
			}
			if err := gcl.AllReduceInPlace(ctx, c, over, gcl.Max); err != nil {
				return err
			}
			if over[0] > 0 {
				return nil
			}
		}
	})
	return newReport(o.Rank, err, nil, nil)
}

// spin keeps a thread busy.
func spin(sink *atomic.Uint64) {
	for {
		sink.Add(1)
	}
}
