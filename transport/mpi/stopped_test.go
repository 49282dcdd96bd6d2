//go:build mpi

package mpi

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// stoppedVariable tells a process of TestStopped what it is.
const stoppedVariable = "GCL_TEST_STOPPED"

// TestStopped: a replica that is stopped is lost, for those who wait for it and for those who compute. It prints how
// long that took.
func TestStopped(t *testing.T) {
	const n = 3
	mpirun := launcher(t).Command(n, []string{os.Args[0], "-test.run=^TestStoppedReplica$", "-test.v"})
	mpirun.Env = append(os.Environ(), stoppedVariable+"=1")
	out, err := mpirun.StdoutPipe()
	if err == nil {
		err = mpirun.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	heard := map[string]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		who, how, ok := strings.Cut(lines.Text(), " REPLICA ")
		if !ok {
			continue
		}
		t.Log(who, how)
		heard[who] = true
		if len(heard) == n-1 {
			mpirun.Process.Signal(syscall.SIGTERM)
		}
		if !strings.Contains(how, "replica 2 is lost: it has said nothing for 2s: it is stopped") {
			t.Errorf("%s says %s", who, how)
		}
	}
	mpirun.Wait() // an error: it was ended
	if len(heard) != n-1 {
		t.Errorf("%v have heard, want replicas 0 and 1", heard)
	}
}

// TestSilenceOfBeats: a word counts for all of Silence after it, wherever between two beats it came. So the beat at
// which it is found does not count, and it takes as many more as Silence has.
func TestSilenceOfBeats(t *testing.T) {
	quiet := 0
	for turn := range 3 {
		if isOver(&quiet, true) {
			t.Fatalf("turn %d: silent with a word", turn)
		}
		for k := 1; k < beats; k++ {
			if isOver(&quiet, false) {
				t.Errorf("turn %d: silent %d beats after a word, want %d", turn, k, beats)
			}
		}
	}
	if !isOver(&quiet, false) {
		t.Errorf("not silent %d beats after a word", beats)
	}
}

// TestStoppedReplica is a replica of TestStopped.
func TestStoppedReplica(t *testing.T) {
	if os.Getenv(stoppedVariable) == "" {
		t.Skip("TestStopped starts it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := Join(ctx, Config{Silence: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	switch e.Rank() {
	case 0: // waits
		call := transport.Call{Seq: 1}
		err = e.Exchange(ctx, call, []transport.Transfer{{Kind: transport.Recv, Peer: 2, Buf: make([]byte, 8)}})
	case 1: // computes
		<-e.Done()
		err = e.Err()
	case 2:
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	if e.Rank() < 2 {
		fmt.Printf("%d REPLICA after %v: %v\n", e.Rank(), time.Since(began).Round(10*time.Millisecond), err)
	}
	<-ctx.Done() // mpirun ends all others as soon as one ends: TestStopped does that when it has heard all
}
