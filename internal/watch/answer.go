package watch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// What is asked of a process: one line.
const (
	askOwn = "own\n" // what it says of itself
	askAll = "all\n" // and what the other replicas say, which it asks
)

// How long things take at most.
const (
	answerTime = 5 * time.Second        // an answer, until the connection is cut
	ownTime    = 400 * time.Millisecond // Ask waits for what processes say of themselves
	OthersTime = 300 * time.Millisecond // a process waits for what others say, which it asks for Ask
)

// What bounds a request and an answer, in bytes.
const (
	maxRequest = 16
	maxAnswer  = 64 << 20
)

// listeners tells sockets of one process apart.
var listeners atomic.Int64

// Answer has a process answer on a unix socket in a directory, which Dir has made, until it is closed. The socket is
// named by job, replica and process. say is called for each that asks, on one goroutine; all: the others are asked too.
func Answer(dir, job string, replica int, say func(all bool) Job) (io.Closer, error) {
	name := fmt.Sprintf("%08x-%d-%d-%d.sock", jobNumber(job), replica, os.Getpid(), listeners.Add(1))
	path := filepath.Join(dir, name)
	if len(path) > maxPath {
		return nil, fmt.Errorf("a socket in %s has a path of %d bytes, and may have %d", dir, len(path), maxPath)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	a := &answerer{listener: l, say: say}
	a.loop.Go(a.serve)
	return a, nil
}

// maxPath is how long the path of a socket may be on all systems.
const maxPath = 103

type answerer struct {
	listener *net.UnixListener
	say      func(all bool) Job
	loop     sync.WaitGroup

	mu   sync.Mutex // guards conn
	conn net.Conn   // that is being answered
}

// serve answers one after the other.
func (a *answerer) serve() {
	for {
		conn, err := a.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // descriptors may be short for a while
			time.Sleep(answerTime / 10)
			continue
		}
		a.mu.Lock()
		a.conn = conn
		a.mu.Unlock()
		a.answer(conn)
		conn.Close()
	}
}

func (a *answerer) answer(conn net.Conn) {
	if conn.SetDeadline(time.Now().Add(answerTime)) != nil {
		return
	}
	line, err := bufio.NewReader(io.LimitReader(conn, maxRequest)).ReadString('\n')
	if err != nil || line != askOwn && line != askAll {
		return
	}
	text, err := json.Marshal(a.say(line == askAll))
	if err != nil { // there is nothing in it that cannot be marshalled
		panic(err)
	}
	_, _ = conn.Write(append(text, '\n')) // who asks sees that it is cut
}

// Close implements io.Closer. The socket is removed.
func (a *answerer) Close() error {
	err := a.listener.Close()
	a.mu.Lock()
	if a.conn != nil {
		a.conn.Close()
	}
	a.mu.Unlock()
	a.loop.Wait()
	return err
}

// jobNumber tells jobs apart in the names of sockets.
func jobNumber(job string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(job))
	return h.Sum32()
}

// socket is what the name of one says.
type socket struct {
	path         string
	job          uint32
	replica, pid int
}

// sockets are those of a directory. Names that are none are left alone.
func sockets(dir string) (out []socket, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		parts := strings.Split(strings.TrimSuffix(e.Name(), ".sock"), "-")
		if len(parts) != 4 || e.Type() != fs.ModeSocket {
			continue
		}
		job, e1 := strconv.ParseUint(parts[0], 16, 32)
		replica, e2 := strconv.Atoi(parts[1])
		pid, e3 := strconv.Atoi(parts[2])
		if e1 == nil && e2 == nil && e3 == nil {
			out = append(out, socket{filepath.Join(dir, e.Name()), uint32(job), replica, pid})
		}
	}
	return out, err
}

// Ask asks the processes whose sockets are in a directory, and has one of each job ask those of other hosts. It takes
// less than a second, and returns the jobs by name. Replicas that do not answer are Missing. Sockets at which nobody
// listens any more are removed.
func Ask(ctx context.Context, dir string) ([]Job, error) {
	all, err := sockets(dir)
	if err != nil {
		return nil, err
	}
	answers := make([]*Job, len(all))
	var asking sync.WaitGroup
	room := make(chan struct{}, maxAsking)
	own, cancel := context.WithTimeout(ctx, ownTime)
	defer cancel()
	for i, s := range all {
		asking.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			job, err := s.ask(own, askOwn)
			switch {
			case err == nil:
				answers[i] = job
			case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
				_ = os.Remove(s.path) // who comes after us will see it again
				all[i].path = ""
			}
		})
	}
	asking.Wait()
	var jobs []Job
	of := map[uint32]int{} // the job's place in jobs
	for i, a := range answers {
		if a == nil {
			continue
		}
		k, ok := of[all[i].job]
		if !ok {
			k = len(jobs)
			of[all[i].job] = k
			jobs = append(jobs, Job{Name: a.Name, Size: a.Size, Transport: a.Transport})
		}
		jobs[k].Processes = append(jobs[k].Processes, a.Processes...)
	}
	for i, a := range answers {
		if a != nil || all[i].path == "" {
			continue
		}
		k, ok := of[all[i].job]
		if !ok {
			k = len(jobs)
			of[all[i].job] = k
			jobs = append(jobs, Job{Name: fmt.Sprintf("%08x (no process answers)", all[i].job), Size: 0})
		}
		jobs[k].Missing = append(jobs[k].Missing, Missing{all[i].replica, all[i].pid, silence(all[i].pid)})
	}
	for number, k := range of {
		j := &jobs[k]
		if j.known() >= j.Size {
			continue
		}
		i := slices.IndexFunc(answers, func(a *Job) bool { return a != nil })
		for i < len(all) && (answers[i] == nil || all[i].job != number) {
			i++
		}
		if i < len(all) {
			if more, err := all[i].ask(ctx, askAll); err == nil {
				j.add(more.Processes)
			}
		}
	}
	for k := range jobs {
		jobs[k].fill("does not answer")
	}
	slices.SortFunc(jobs, func(a, b Job) int { return strings.Compare(a.Name, b.Name) })
	return jobs, nil
}

// maxAsking bounds how many are asked at a time.
const maxAsking = 64

// ask asks the process that listens at a socket.
func (s socket) ask(ctx context.Context, what string) (*Job, error) {
	var d net.Dialer
	limit := time.Now().Add(OthersTime + ownTime/4)
	if at, ok := ctx.Deadline(); ok && at.Before(limit) {
		limit = at
	}
	ctx, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	conn, err := d.DialContext(ctx, "unix", s.path)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, what); err != nil {
		return nil, err
	}
	var job Job
	if err := json.NewDecoder(io.LimitReader(conn, maxAnswer)).Decode(&job); err != nil {
		return nil, err
	}
	return &job, nil
}

// known is how many replicas are known, be it that they are missing.
func (j *Job) known() int { return len(j.replicas()) + len(j.Missing) }

// add adds processes whose replicas have not told anything themselves.
func (j *Job) add(processes []Process) {
	for _, p := range processes {
		all := j.replicas()
		if !slices.ContainsFunc(p.Replicas, func(r Replica) bool { return all[r.Replica] != nil }) {
			j.Processes = append(j.Processes, p)
			j.Missing = slices.DeleteFunc(j.Missing, func(m Missing) bool {
				return slices.ContainsFunc(p.Replicas, func(r Replica) bool { return r.Replica == m.Replica })
			})
		}
	}
}

// fill notes the replicas of which nothing is known as missing, and puts all in order.
func (j *Job) fill(why string) {
	all := j.replicas()
	for replica := range min(j.Size, maxSize) {
		is := func(m Missing) bool { return m.Replica == replica }
		if all[replica] == nil && !slices.ContainsFunc(j.Missing, is) {
			j.Missing = append(j.Missing, Missing{Replica: replica, Why: why})
		}
	}
	slices.SortFunc(j.Processes, func(a, b Process) int { return a.first() - b.first() })
	slices.SortFunc(j.Missing, func(a, b Missing) int { return a.Replica - b.Replica })
}

// maxSize is how many replicas a job has at most, whatever a process says.
const maxSize = 1 << 16

// first is the lowest replica of a process.
func (p *Process) first() int {
	out := maxSize
	for _, r := range p.Replicas {
		out = min(out, r.Replica)
	}
	return out
}
