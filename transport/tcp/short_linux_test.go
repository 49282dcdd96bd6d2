package tcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/transport"
)

// shortVariable tells a process of TestShortOfDescriptors what it is: rank, size, where, network, and for the one that
// runs short of descriptors when that is, and how many it keeps.
const shortVariable = "GCL_TEST_SHORT"

// exhaust opens files until few more can be opened.
func exhaust(few int) error {
	limit := syscall.Rlimit{Cur: 256, Max: 256}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	var files []*os.File
	for {
		file, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		files = append(files, file)
	}
	for _, file := range files[len(files)-few:] {
		file.Close()
	}
	kept = files[:len(files)-few]
	return nil
}

var kept []*os.File // by exhaust: a file that nobody knows may be closed

// TestShortOfDescriptors: a replica whose process has too few descriptors, at any moment of a job. All hear whose limit
// that is, and nobody is called lost but for it.
func TestShortOfDescriptors(t *testing.T) {
	const size = 5
	for _, test := range []struct {
		name   string
		victim int
		how    string // when:keeps
		hears  string // of the process that is short, by number
	}{
		{"joining", 2, "join:4", "a job of 5 replicas wants %d more, and its limit is 256"},
		{"joining, unable to listen", 2, "join:1", "no file descriptor is left in process"},
		{"joining, at replica 0", 0, "join:5", "no file descriptor is left in process"},
		{"accepting", size - 1, "run:0", "no file descriptor is left in process"},
		{"dialing", 0, "run:0", "no file descriptor is left in process"},
	} {
		for _, network := range []Network{TCP, Unix, Shm} {
			hears := test.hears
			if network == Shm && strings.HasPrefix(test.how, "run:") {
				continue // memory that a lane comes to use takes no descriptor
			}
			if strings.Contains(hears, "%d") {
				hears = fmt.Sprintf(hears, map[Network]int{TCP: 12, Unix: 12, Shm: 16}[network])
			}
			t.Run(fmt.Sprintf("%s/network=%s", test.name, network), func(t *testing.T) {
				t.Parallel()
				runtime.LockOSThread() // Pdeathsig is about the thread
				defer runtime.UnlockOSThread()
				where := places(t)["unix"]
				var replicas sync.WaitGroup
				var mu sync.Mutex // guards said
				said := make([]string, size)
				var victim int
				for rank := range size {
					c := exec.Command(os.Args[0], "-test.run=^TestShortReplica$", "-test.v")
					how := "never:0"
					if rank == test.victim {
						how = test.how
					}
					c.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s %s %s", shortVariable, rank, size, where,
						network, how))
					c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
					c.Stderr = os.Stderr
					out, err := c.StdoutPipe()
					if err == nil {
						err = c.Start()
					}
					if err != nil {
						t.Fatal(err)
					}
					if rank == test.victim {
						victim = c.Process.Pid
					}
					replicas.Go(func() {
						lines := bufio.NewScanner(out)
						for lines.Scan() {
							if text, ok := strings.CutPrefix(lines.Text(), "REPLICA "); ok {
								mu.Lock()
								said[rank] = text
								mu.Unlock()
							}
						}
						c.Wait()
					})
				}
				replicas.Wait()
				for rank, text := range said {
					for _, want := range []string{hears, fmt.Sprintf("process %d ", victim), "ulimit -n"} {
						if !strings.Contains(text, want) {
							t.Errorf("replica %d says %q, want %q", rank, text, want)
						}
					}
					if strings.Contains(text, "is lost") &&
						!strings.Contains(text, fmt.Sprintf("replica %d (pid %d on ", test.victim, victim)) {
						t.Errorf("replica %d blames a healthy one: %q", rank, text)
					}
				}
			})
		}
	}
}

// TestShortReplica is a replica of TestShortOfDescriptors.
func TestShortReplica(t *testing.T) {
	text, ok := os.LookupEnv(shortVariable)
	if !ok {
		t.Skip("TestShortOfDescriptors starts it")
	}
	var c Config
	var where, how string
	if _, err := fmt.Sscan(text, &c.Rank, &c.Size, &where, &c.Network, &how); err != nil {
		t.Fatal(err)
	}
	when, few, _ := strings.Cut(how, ":")
	c.Job = "short"
	fmt.Println("REPLICA", strings.ReplaceAll(fmt.Sprint(runShort(c, where, when, int(few[0]-'0'))), "\n", " "))
}

// runShort joins, carries out a round, and on a lane of its own as many as nobody ends without all others.
func runShort(c Config, where, when string, few int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if when == "join" {
		// The network poller's descriptors are there before.
		if l, err := Listen(c); err == nil {
			l.Close()
		}
		if err := exhaust(few); err != nil {
			return err
		}
	}
	e, err := Join(ctx, c, Meeting{Where: where})
	if err != nil {
		return err
	}
	defer e.Close()
	if err := ringRound(ctx, e, 0, 100); err != nil {
		return err
	}
	lane, err := e.Dup(ctx)
	if err != nil {
		return err
	}
	if when == "run" {
		if err := exhaust(few); err != nil {
			return err
		}
	}
	for _, e := range []transport.Endpoint{e, lane} { // nobody begins with lane before all are here
		for k := range c.Size {
			if err := ringRound(ctx, e, k, 100); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestNoNewConnections: a replica that says that it is there, and takes no connection for six times Silence, is lost.
func TestNoNewConnections(t *testing.T) { synctest.Test(t, noNewConnections) }

func noNewConnections(t *testing.T) {
	c := inMemory(Config{Silence: 2 * time.Second})
	listeners, addresses, front, behind := fronted(t, c)
	// It passes the control connection on, and leaves others unaccepted.
	go func() {
		in, err := front.Accept()
		if err != nil {
			return
		}
		out, err := c.from.Dial(t.Context(), "tcp", behind)
		if err != nil {
			in.Close()
			return
		}
		go io.Copy(in, out)
		io.Copy(out, in)
		in.Close()
		out.Close()
	}()
	ends, err := connectAll(listeners, addresses)
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for _, e := range ends {
		go func() {
			err := ringRound(t.Context(), e, 0, 100)
			e.Close()
			errs <- err
		}()
	}
	for range ends {
		err := <-errs
		lost, ok := errors.AsType[*transport.LostError](err)
		if !ok || lost.Replica != 1 || !strings.Contains(err.Error(), "it has taken no connection for 12s") {
			t.Errorf("got %v", err)
		}
	}
}
