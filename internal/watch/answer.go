package watch

import (
	"bufio"
	"cmp"
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
	answerTime = time.Second            // to write an answer
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
// named by run, host, replica and process. say is called for each that asks, on goroutines of its own; all: the
// others are asked too.
func Answer(dir, run string, replica int, say func(all bool) Job) (io.Closer, error) {
	name := fmt.Sprintf("%08x-%08x-%d-%d-%d.sock", short(run), short(Hostname()), replica, os.Getpid(),
		listeners.Add(1))
	path := filepath.Join(dir, name)
	if replica == 0 { // one of a job is enough
		sweep(dir)
	}
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

// sweep removes the sockets of processes of this host that are no more: of those that were killed they stay.
func sweep(dir string) {
	all, _ := sockets(dir) // whoever lists them next sees the error
	for _, s := range all {
		if s.own && gone(s.pid) {
			_ = os.Remove(s.path) // who comes after us will see it again
		}
	}
}

// maxPath is how long the path of a socket may be on all systems.
const maxPath = 103

type answerer struct {
	listener *net.UnixListener
	say      func(all bool) Job
	loop     sync.WaitGroup
}

// maxAnswers is how many are answered at a time, and readTime how long the request of one may take.
const (
	maxAnswers = 8
	readTime   = 300 * time.Millisecond
)

// serve answers.
func (a *answerer) serve() {
	room := make(chan struct{}, maxAnswers)
	for {
		conn, err := a.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // descriptors may be short for a while
			time.Sleep(readTime)
			continue
		}
		select {
		case room <- struct{}{}:
			go func() {
				defer func() { <-room }()
				defer conn.Close()
				a.answer(conn)
			}()
		default:
			conn.Close()
		}
	}
}

func (a *answerer) answer(conn net.Conn) {
	if conn.SetReadDeadline(time.Now().Add(readTime)) != nil {
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
	if conn.SetWriteDeadline(time.Now().Add(answerTime)) == nil {
		_, _ = conn.Write(append(text, '\n')) // who asks sees that it is cut
	}
}

// Close implements io.Closer. The socket is removed. Answers that are being given go on, for a second or so.
func (a *answerer) Close() error {
	err := a.listener.Close()
	a.loop.Wait()
	return err
}

// Hostname is the name of this host, or "".
var Hostname = sync.OnceValue(func() string {
	name, _ := os.Hostname() // "" is as good as any name
	return name
})

// short is a number for a text in the names of sockets and files.
func short(text string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return h.Sum32()
}

// socket is what the name of one says.
type socket struct {
	path         string
	run          uint32
	own          bool // it is of this host
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
		if len(parts) != 5 || e.Type() != fs.ModeSocket {
			continue
		}
		run, e1 := strconv.ParseUint(parts[0], 16, 32)
		host, e2 := strconv.ParseUint(parts[1], 16, 32)
		replica, e3 := strconv.Atoi(parts[2])
		pid, e4 := strconv.Atoi(parts[3])
		if e1 == nil && e2 == nil && e3 == nil && e4 == nil && replica >= 0 && replica < maxSize {
			out = append(out, socket{filepath.Join(dir, e.Name()), uint32(run), uint32(host) == short(Hostname()),
				replica, pid})
		}
	}
	return out, err
}

// Ask asks the processes whose sockets are in a directory, and has one of each job ask those of other hosts. It takes
// less than a second, and returns the jobs by name. Replicas that do not answer are Missing. Sockets of processes of
// this host that are no more are removed.
func Ask(ctx context.Context, dir string) ([]Job, error) {
	all, err := sockets(dir)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s socket) bool { return !s.own })
	answers := make([]*Job, len(all))
	refused := make([]bool, len(all)) // the process is no more, is about to listen, or has just left
	var asking sync.WaitGroup
	own, cancel := context.WithTimeout(ctx, ownTime)
	defer cancel()
	for i, s := range all {
		asking.Go(func() {
			job, err := s.ask(own, askOwn)
			answers[i] = job
			refused[i] = errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
		})
	}
	asking.Wait()
	sweep(dir)
	var jobs []*Job
	of, asked := map[uint32]*Job{}, map[*Job]socket{} // by run; a process of it that has answered
	for i, s := range all {
		a := answers[i]
		if refused[i] {
			continue
		}
		j := of[s.run]
		if j == nil {
			j = &Job{Name: fmt.Sprintf("%08x (no process answers)", s.run)}
			of[s.run] = j
			jobs = append(jobs, j)
		}
		if a == nil {
			j.Missing = append(j.Missing, Missing{s.replica, s.pid, silence(s.pid)})
			continue
		}
		j.Name, j.Run, j.Size, j.Transport = a.Name, a.Run, a.Size, a.Transport
		j.add(a.Processes)
		asked[j] = s
	}
	for j, s := range asked {
		if j.known() >= j.Size {
			continue
		}
		asking.Go(func() {
			if more, err := s.ask(ctx, askAll); err == nil { // else nobody knows whether the others answer
				j.add(more.Processes)
				j.fill("does not answer")
			}
		})
	}
	asking.Wait()
	out := make([]Job, len(jobs))
	for i, j := range jobs {
		j.sort()
		out[i] = *j
	}
	slices.SortFunc(out, func(a, b Job) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Run, b.Run))
	})
	return out, nil
}

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

// add adds processes whose replicas have not told anything themselves, and may be replicas of the job.
func (j *Job) add(processes []Process) {
	all := j.replicas()
	for _, p := range processes {
		if slices.ContainsFunc(p.Replicas, func(r Replica) bool {
			return all[r.Replica] != nil || r.Replica < 0 || r.Replica >= min(j.Size, maxSize)
		}) {
			continue
		}
		j.Processes = append(j.Processes, p)
		for i := range p.Replicas {
			all[p.Replicas[i].Replica] = &p.Replicas[i]
		}
	}
	j.Missing = slices.DeleteFunc(j.Missing, func(m Missing) bool { return all[m.Replica] != nil })
}

// fill notes the replicas of which nothing is known as missing.
func (j *Job) fill(why string) {
	all := j.replicas()
	missing := map[int]bool{}
	for _, m := range j.Missing {
		missing[m.Replica] = true
	}
	for replica := range min(j.Size, maxSize) {
		if all[replica] == nil && !missing[replica] {
			j.Missing = append(j.Missing, Missing{Replica: replica, Why: why})
		}
	}
	j.sort()
}

// sort puts all in order.
func (j *Job) sort() {
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
