package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"gogcl.dev/internal/command"
)

// soaking is the command line of the mode soak.
type soaking struct {
	length, warm time.Duration
	samples      int
	directory    string // of the sockets at which replicas answer as net/http/pprof
	begin        string
	command      []string // of the launcher
}

// soak has a launcher run a job for long, and looks at what grows.
func soak(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s soaking
	flags := flag.NewFlagSet("torture soak", flag.ContinueOnError)
	flags.DurationVar(&s.length, "for", 30*time.Minute, "`time` of the job")
	flags.DurationVar(&s.warm, "warm", 3*time.Minute, "`time` of it before the first sample")
	flags.IntVar(&s.samples, "samples", 60, "number of `samples`")
	flags.StringVar(&s.directory, "pprof", "", "`directory` where each replica answers as net/http/pprof, at a unix "+
		"socket that has its rank as its name; profiles of replica 0's heap are kept there too: heap-first, heap-last")
	flags.StringVar(&s.begin, "begin", "epoch", "how the line of output `begins` that shows that the job is at work")
	err := command.ParseArguments(flags, args, stdout, "[flags] [--] launcher [arguments]", "Has a launcher such as "+
		"gclrun run a job for long, and looks at whether the descriptors, goroutines, heap or resident memory of a "+
		"replica grow.\n\n"+
		"  mkdir soak\n"+
		"  torture soak -pprof soak ./gclrun -n 8 -transport unix ./rts -epochs 10000000 -batch 8 -pprof soak")
	if errors.Is(err, flag.ErrHelp) {
		return command.OK
	}
	s.command = flags.Args()
	switch {
	case err != nil:
	case s.samples < leastSamples:
		err = fmt.Errorf("-samples %d, want %d or more", s.samples, leastSamples)
	case s.warm < 0 || s.length <= s.warm:
		err = fmt.Errorf("-warm %v, want less than -for %v", s.warm, s.length)
	case s.directory == "":
		err = errors.New("-pprof is missing, want the directory where the replicas answer")
	case len(s.command) == 0:
		err = errors.New("the launcher is missing, such as ./gclrun -n 8 ./rts -epochs 10000000 -batch 8 -pprof " +
			"soak")
	}
	if err != nil {
		return command.Mistake("torture", err, stderr)
	}
	if unsupported != "" {
		fmt.Fprintln(stderr, unsupported)
		return command.Failed
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	job, err := launch(running, s.command, s.begin)
	var replicas []child
	if err == nil {
		defer func() {
			stop()
			<-job.ended
		}()
		replicas, err = job.await(ctx)
	}
	if err == nil && len(replicas) == 0 {
		err = fmt.Errorf("%v has no children with a RANK in their environment", job.cmd)
	}
	if err != nil {
		return command.Ended(ctx, "torture", err, stderr)
	}
	sample := func(last bool) ([]vitals, error) { return s.sample(replicas, last) }
	code := s.watch(ctx, job.ended, sample, stdout, stderr)
	stop()
	<-job.ended
	if said := bytes.TrimSpace(job.stderr.text); code != command.OK && len(said) > 0 {
		fmt.Fprintf(stderr, "torture: the job has said:\n%s\n", said)
	}
	return code
}

// watch takes the samples and prints what they say. sample is told of the last one. The end of the job is an error.
func (s *soaking) watch(ctx context.Context, ended <-chan struct{}, sample func(last bool) ([]vitals, error), stdout,
	stderr io.Writer) int {
	began := time.Now()
	var taken []sampling
	var err error
	for k := 0; k < s.samples && err == nil; k++ {
		due := began.Add(s.warm + (s.length-s.warm)*time.Duration(k)/time.Duration(s.samples-1))
		wait := time.NewTimer(time.Until(due))
		select {
		case <-wait.C:
			var v []vitals
			if v, err = sample(k == s.samples-1); err == nil {
				taken = append(taken, sampling{at: time.Since(began), replicas: v})
			}
		case <-ended:
			err = errors.New("the job has ended before the last sample")
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		wait.Stop()
	}
	growing := 0
	if len(taken) >= leastSamples {
		growing = printGrowth(stdout, taken)
	}
	switch {
	case err != nil:
		return command.Ended(ctx, "torture", err, stderr)
	case growing > 0:
		fmt.Fprintf(stderr, "torture: %d of these grow beyond their bounds (go tool pprof -base %s %s)\n", growing,
			filepath.Join(s.directory, "heap-first"), filepath.Join(s.directory, "heap-last"))
		return command.Failed
	}
	return command.OK
}

// sample looks at all replicas, by rank. It keeps a profile of replica 0's heap, of the first time and of the last.
func (s *soaking) sample(replicas []child, last bool) (out []vitals, err error) {
	for _, r := range replicas {
		v, err := s.look(r)
		if err != nil {
			return nil, fmt.Errorf("replica %d (pid %d): %w", r.rank, r.pid, err)
		}
		out = append(out, v)
	}
	name := filepath.Join(s.directory, "heap-first")
	if last {
		name = filepath.Join(s.directory, "heap-last")
	} else if _, err := os.Stat(name); err == nil {
		return out, nil
	}
	profile, err := s.ask(replicas[0].rank, "heap?gc=1")
	if err == nil {
		err = os.WriteFile(name, profile, 0o644)
	}
	return out, err
}

// look looks at one replica.
func (s *soaking) look(r child) (v vitals, err error) {
	if v.descriptors, v.resident, err = processVitals(r.pid); err != nil { // before the connections that follow
		return v, err
	}
	heap, err := s.ask(r.rank, "heap?gc=1&debug=1")
	if err != nil {
		return v, err
	}
	routines, err := s.ask(r.rank, "goroutine?debug=1")
	if err != nil {
		return v, err
	}
	var wrong error
	number := func(of []byte, pattern string) float64 {
		found := regexp.MustCompile(pattern).FindSubmatch(of)
		if found == nil {
			wrong = fmt.Errorf("no %s in its profile", pattern)
			return 0
		}
		n, err := strconv.ParseFloat(string(found[1]), 64)
		wrong = errors.Join(wrong, err)
		return n
	}
	v.heap = number(heap, `(?m)^# HeapAlloc = (\d+)$`) / 1024
	v.goroutines = number(routines, `^goroutine profile: total (\d+)`)
	return v, wrong
}

// ask asks a replica for a profile.
func (s *soaking) ask(rank int, profile string) ([]byte, error) {
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.directory, strconv.Itoa(rank)))
		}}}
	answer, err := client.Get("http://replica/debug/pprof/" + profile)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(text))
	}
	return text, err
}
