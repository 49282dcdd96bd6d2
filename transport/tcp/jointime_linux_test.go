package tcp

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var doomed = flag.Int("doomed", 8, "how many jobs TestJoinWithoutOne begins, in each of which a replica dies or stops")

// joinerVariable tells a process of TestJoinWithoutOne what it is: rank, size, where, network, time limit, what it does
// to itself and after how long.
const joinerVariable = "GCL_TEST_JOINER"

// TestJoinWithoutOne: a replica is killed, or stops, at some moment of the joining. All others end it, by an error or
// because all had joined before. It prints the errors, and by how much each replica that took longer than its time
// limit did so.
func TestJoinWithoutOne(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // guards what follows
	ends := map[string]int{}
	var beyond []time.Duration
	tickets := make(chan int)
	var jobs sync.WaitGroup
	for w := range 4 {
		random := rand.New(rand.NewPCG(27, uint64(w)))
		jobs.Go(func() {
			runtime.LockOSThread() // Pdeathsig is about the thread
			defer runtime.UnlockOSThread()
			for range tickets {
				network := []Network{TCP, Unix, Auto}[random.IntN(3)]
				where := places(t)[[]string{"loopback", "unix", "dir"}[random.IntN(3)]]
				limit := time.Duration(1+random.IntN(3)) * time.Second
				size := 2 + random.IntN(7)
				victim, how := random.IntN(size), []string{"kill", "stop"}[random.IntN(2)]
				after := time.Duration(random.ExpFloat64() * float64(20*time.Millisecond))
				kind := fmt.Sprintf("%s of replica %d", how, min(victim, 1))
				children, lines := make([]*exec.Cmd, size), make(chan string)
				for rank := range size {
					c := exec.Command(os.Args[0], "-test.run=^TestJoiner$", "-test.v")
					doom := "none"
					if rank == victim {
						doom = how
					}
					c.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s %s %v %s %v", joinerVariable, rank, size,
						where, network, limit, doom, after))
					c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
					c.Stderr = os.Stderr
					out, err := c.StdoutPipe()
					if err == nil {
						err = c.Start()
					}
					if err != nil {
						t.Error(err)
						return
					}
					children[rank] = c
					if rank != victim {
						go func() {
							said := bufio.NewScanner(out)
							for said.Scan() {
								if text, ok := strings.CutPrefix(said.Text(), "JOINER "); ok {
									lines <- text
									return
								}
							}
							lines <- "0s said nothing"
						}()
					}
				}
				for range size - 1 {
					took, end, _ := strings.Cut(<-lines, " ")
					d, err := time.ParseDuration(took)
					if err != nil || end == "said nothing" {
						t.Errorf("%s: %s %s", kind, took, end)
					}
					mu.Lock()
					ends[kind+"\t"+end]++
					beyond = append(beyond, d-limit)
					mu.Unlock()
				}
				children[victim].Process.Kill()
				for _, c := range children {
					c.Wait()
				}
			}
		})
	}
	for k := range *doomed {
		tickets <- k
	}
	close(tickets)
	jobs.Wait()
	var text strings.Builder
	for _, end := range slices.SortedFunc(maps.Keys(ends), cmp.Compare) {
		fmt.Fprintf(&text, "\n%6d %s", ends[end], end)
	}
	late := slices.DeleteFunc(slices.Sorted(slices.Values(beyond)), func(d time.Duration) bool { return d <= 0 })
	at := func(q float64) time.Duration {
		if len(late) == 0 {
			return 0
		}
		return late[int(q*float64(len(late)-1))].Round(time.Millisecond)
	}
	t.Logf("%d of %d replicas took longer than their time limit, by %v (median), %v (p90), %v (p99), %v (most):%s",
		len(late), len(beyond), at(0.5), at(0.9), at(0.99), at(1), &text)
}

var anyNumber = regexp.MustCompile(`@gogcl[-\w]*|/[^ ]*/\d+|\d+(\.\d+)*`)

// TestJoiner is a replica of TestJoinWithoutOne.
func TestJoiner(t *testing.T) {
	text, ok := os.LookupEnv(joinerVariable)
	if !ok {
		t.Skip("TestJoinWithoutOne starts it")
	}
	var c Config
	var where, limit, doom, after string
	if _, err := fmt.Sscan(text, &c.Rank, &c.Size, &where, &c.Network, &limit, &doom, &after); err != nil {
		t.Fatal(err)
	}
	if pause, err := time.ParseDuration(after); err == nil && doom != "none" {
		signal := map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP}[doom]
		time.AfterFunc(pause, func() { syscall.Kill(os.Getpid(), signal) })
	}
	most, err := time.ParseDuration(limit)
	if err != nil {
		t.Fatal(err)
	}
	c.Job, c.Silence = "joiners", 2*time.Second
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	began := time.Now()
	e, err := Join(ctx, c, Meeting{Where: where})
	took := time.Since(began)
	end := "joined"
	if err != nil {
		end = anyNumber.ReplaceAllString(err.Error(), "N")
	}
	fmt.Printf("JOINER %v %.150s\n", took, strings.ReplaceAll(end, "\n", " "))
	if e != nil {
		e.Close()
	}
}
