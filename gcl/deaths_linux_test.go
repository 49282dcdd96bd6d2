package gcl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gogcl.dev/gcl"
)

// mortal is what a process of TestDeaths is told, in the environment variable mortalVariable.
type mortal struct {
	Rank, Victim     int
	Where, Transport string
	How              string
	Large            bool // the all-reduces are of 16 MiB
}

const mortalVariable = "GCL_TEST_MORTAL"

// ending is how the replica of such a process ended.
type ending struct {
	Error                  string
	Peer                   int // of a *gcl.PeerError, or -1
	Aborted, Own, Panicked bool
}

func init() { asReplica = append(asReplica, mortals) }

// mortals is a process of TestDeaths: all-reduces without end, until one replica ends before its seventeenth.
func mortals() (isReplica bool) {
	text, ok := os.LookupEnv(mortalVariable)
	if !ok {
		return false
	}
	var m mortal
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(err)
	}
	cfg := gcl.JoinConfig{Rank: m.Rank, Size: 3, Rendezvous: m.Where, Transport: m.Transport, Job: "deaths",
		Timeout: 30 * time.Second}
	if m.How == "stop" {
		cfg.Silence = time.Second
	}
	own := errors.New("its own end")
	err := gcl.RunProcess(context.Background(), cfg, func(ctx context.Context, c *gcl.Comm) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		data := make([]float32, 1000)
		if m.Large {
			data = make([]float32, 4<<20)
		}
		for k := 1; ; k++ {
			if k == 17 && m.Rank == m.Victim {
				switch m.How {
				case "kill":
					syscall.Kill(os.Getpid(), syscall.SIGKILL)
				case "stop":
					syscall.Kill(os.Getpid(), syscall.SIGSTOP)
					time.Sleep(50 * time.Millisecond) // the stop may come some time later
				case "exit":
					os.Exit(0)
				case "crash":
					go func() { panic(own) }()
					select {}
				case "abort":
					c.Abort(own)
				case "cancel":
					cancel(own)
				case "error":
					return own
				case "panic":
					panic(own)
				}
			}
			if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil {
				return err
			}
		}
	})
	e := ending{Peer: -1, Error: fmt.Sprint(err), Aborted: errors.Is(err, gcl.ErrAborted), Own: errors.Is(err, own)}
	if peer, ok := errors.AsType[*gcl.PeerError](err); ok {
		e.Peer = peer.Replica
	}
	var panicked *gcl.PanicError
	e.Panicked = errors.As(err, &panicked)
	if err := json.NewEncoder(os.Stdout).Encode(e); err != nil {
		panic(err)
	}
	return true
}

// TestDeaths: whatever ends one of three processes, the others get an error that says what, and in which call they
// were.
func TestDeaths(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inCall := regexp.MustCompile(`all-reduce #1[67](: | on replica \d, round 0, had waited )`)
	for _, transport := range []string{"unix", "tcp", "shm"} {
		for i, name := range []string{
			"kill", "exit", "crash", "stop", "abort", "cancel", "error", "panic", "kill, large", "stop, large",
		} {
			how, _, large := strings.Cut(name, ",")
			t.Run("transport="+transport+"/"+name, func(t *testing.T) {
				if underRace && transport == "tcp" {
					t.Skip("the same as over unix sockets; without the race detector it runs")
				}
				if large && transport != "shm" {
					t.Skip("what is on its way makes a difference in shared memory only")
				}
				ctx, stop := context.WithTimeout(context.Background(), patience)
				defer stop()
				victim := i % 3
				var endings [3]*ending
				var states [3]string
				var victimProcess *os.Process
				var others, all sync.WaitGroup
				for rank := range 3 {
					order, err := json.Marshal(mortal{Rank: rank, Victim: victim, How: how, Large: large,
						Transport: transport,
						Where:     fmt.Sprintf("unix:@gcl-deaths-%d-%s-%d", os.Getpid(), transport, i)})
					if err != nil {
						t.Fatal(err)
					}
					var stdout, stderr bytes.Buffer
					cmd := exec.CommandContext(ctx, self)
					cmd.Env = append(os.Environ(), mortalVariable+"="+string(order))
					cmd.Stdout, cmd.Stderr = &stdout, &stderr
					cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					if rank == victim {
						victimProcess = cmd.Process
					} else {
						others.Add(1)
					}
					all.Go(func() {
						_ = cmd.Wait() // the state says it
						states[rank] = cmd.ProcessState.String()
						e := new(ending)
						if json.Unmarshal(stdout.Bytes(), e) == nil {
							endings[rank] = e
						}
						if rank != victim {
							others.Done()
						}
					})
				}
				others.Wait()
				victimProcess.Signal(syscall.SIGCONT)
				all.Wait()
				for rank, e := range endings {
					dead := how == "kill" || how == "exit" || how == "crash"
					switch {
					case rank == victim && dead:
						want := map[string]string{
							"kill": "signal: killed", "exit": "exit status 0", "crash": "exit status 2",
						}[how]
						if e != nil || states[rank] != want {
							t.Errorf("the victim: %s, %+v, want %s", states[rank], e, want)
						}
					case e == nil:
						t.Errorf("replica %d: no report: %s", rank, states[rank])
					case rank == victim && how == "stop": // it finds the others gone
						if !e.Aborted && e.Peer < 0 {
							t.Errorf("the victim: %+v", e)
						}
					case rank == victim:
						if !e.Own || how == "panic" && !e.Panicked {
							t.Errorf("the victim: %+v, want its own error", e)
						}
					case !inCall.MatchString(e.Error):
						t.Errorf("replica %d: %s: it does not say in which call", rank, e.Error)
					case dead || how == "stop":
						if e.Peer != victim {
							t.Errorf("replica %d: %+v, want a *PeerError that names %d", rank, e, victim)
						}
					case !e.Aborted || !strings.Contains(e.Error, "its own end"):
						t.Errorf("replica %d: %+v, want ErrAborted with the cause", rank, e)
					}
				}
			})
		}
	}
}
