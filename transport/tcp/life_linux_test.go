package tcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/segment"
)

// TestCloseAfterSend has a replica close right after its last send, with bytes in its own receive buffer that it has
// not read. Nothing is lost.
func TestCloseAfterSend(t *testing.T) {
	leaktest.Check(t)
	for _, network := range Networks()[1:] {
		t.Run(string(network), func(t *testing.T) {
			t.Parallel()
			eps := open(t, 2, Config{Network: network, form: segment.Form{Bytes: 64 << 20, Ring: 512 << 10}})
			data := bytes.Repeat([]byte("0123456789abcde"), 5000)
			ctx := context.Background()
			// Replica 1 sends what replica 0 never reads: the buffer of the socket takes it.
			if err := eps[1].Exchange(ctx, transport.Call{}, []transport.Transfer{
				{Kind: transport.Send, Peer: 0, Buf: make([]byte, 1000)}}); err != nil {
				t.Fatal(err)
			}
			if err := eps[0].Exchange(ctx, transport.Call{}, []transport.Transfer{
				{Kind: transport.Send, Peer: 1, Buf: data}}); err != nil {
				t.Fatal(err)
			}
			eps[0].Close()
			got := make([]byte, len(data))
			if err := eps[1].Exchange(ctx, transport.Call{}, []transport.Transfer{
				{Kind: transport.Recv, Peer: 0, Buf: got}}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, data) {
				t.Error("wrong bytes")
			}
			eps[1].Close()
		})
	}
}

// TestSlowReader has a replica read nothing for longer than Silence while more is on its way than links take. It is not
// silent.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	t.Run("links", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { slowReader(t, inMemory(Config{}), 8<<20) })
	})
	t.Run("shm", func(t *testing.T) {
		t.Parallel()
		slowReader(t, Config{Network: Shm}, 64<<20)
	})
}

func slowReader(t *testing.T, c Config, length int) {
	c.Silence = 2 * time.Second
	eps := open(t, 2, c)
	exchange := func(kind transport.Kind, from int) error {
		return eps[from].Exchange(t.Context(), transport.Call{Group: 1, Seq: 1},
			[]transport.Transfer{{Kind: kind, Peer: 1 - from, Buf: make([]byte, length)}})
	}
	sent := make(chan error, 1)
	go func() { sent <- exchange(transport.Send, 0) }()
	time.Sleep(2 * c.Silence)
	if err := exchange(transport.Recv, 1); err != nil {
		t.Error(err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	for _, e := range eps {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMeetFails has replica 0 never come. The others say so, and one that fails early is not waited for.
func TestMeetFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := Config{Size: 3, dialled: func(rank int) {
		if rank == 1 { // it has replica 2, and misses 0 only
			cancel()
		}
	}}
	listeners, addresses, err := listenAll(c)
	if err != nil {
		t.Fatal(err)
	}
	defer listeners[0].Close()
	long, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var all sync.WaitGroup
	for i, ctx := range map[int]context.Context{1: ctx, 2: long} {
		all.Go(func() {
			_, err := listeners[i].Connect(ctx, addresses)
			t.Logf("replica %d: %v", i, err)
			if err == nil || !strings.Contains(err.Error(), "replicas [0] have not come") {
				t.Errorf("replica %d: %v", i, err)
			}
		})
	}
	all.Wait()
	if long.Err() != nil {
		t.Error("replica 2 has waited in vain")
	}
}

// TestMeetFailureTold: a replica that cannot reach another one is there for those who come later, who hear why. They
// would else name it.
func TestMeetFailureTold(t *testing.T) {
	t.Parallel()
	met := make(chan *mesh, 1)
	c := Config{Size: 4, word: time.Hour}
	c.meets = func(m *mesh) {
		if m.config.Rank == 2 {
			met <- m
		}
	}
	listeners, addresses, err := listenAll(c)
	if err != nil {
		t.Fatal(err)
	}
	listeners[3].Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	connect := func(rank int) {
		all.Go(func() {
			_, err := listeners[rank].Connect(ctx, addresses)
			if err == nil || !strings.Contains(err.Error(), "replica 3: ") {
				t.Errorf("replica %d: %v, want that replica 3 cannot be reached", rank, err)
			}
		})
	}
	connect(2)
	<-(<-met).now.Load().node.Done()
	connect(1)
	connect(0)
	all.Wait()
	if ctx.Err() != nil {
		t.Error("they have waited until the end")
	}
}

// endedProcess is a process that has ended.
func endedProcess() *process { return &process{os.Getpid(), "never"} }

// TestMeetsTheDead: a replica ends its joining when the process of one that has not come has ended. It names that one
// although it is still dialling another, and gives the reason of a failure of which it has heard before.
func TestMeetsTheDead(t *testing.T) {
	t.Parallel()
	for _, heard := range []bool{false, true} {
		t.Run(fmt.Sprintf("heard=%t", heard), func(t *testing.T) {
			t.Parallel()
			const why = "the reason of replica 2"
			all := make([]*mesh, 3)
			met := make(chan *mesh, 1)
			c := Config{Size: 3}
			c.meets = func(m *mesh) {
				all[m.config.Rank] = m
				switch rank := m.config.Rank; {
				case rank == 1 && !heard:
					m.at(0).process = endedProcess()
				case rank == 2:
					met <- m
				}
			}
			c.dialled = func(rank int) {
				if rank == 1 {
					(<-met).now.Load().node.Abort(errors.New(why))
					<-all[1].now.Load().node.Done()
					all[1].at(0).process = endedProcess()
				}
			}
			listeners, addresses, err := listenAll(c)
			if err != nil {
				t.Fatal(err)
			}
			defer listeners[0].Close()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var two sync.WaitGroup
			if heard {
				two.Go(func() { listeners[2].Connect(ctx, addresses) })
			} else {
				defer listeners[2].Close() // which answers nobody who dials it
			}
			_, err = listeners[1].Connect(ctx, addresses)
			want := "replica 0 has not come: its process has ended"
			if heard {
				want = why
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			two.Wait()
		})
	}
}

// TestAllTheDeadAreNamed: one may have ended for another.
func TestAllTheDeadAreNamed(t *testing.T) {
	m := quietMesh(3, 4)
	for r := range 3 {
		m.at(r).process = endedProcess()
	}
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	if err := m.at(1).reserve(here, 1<<attemptBits); err != nil {
		t.Fatal(err)
	}
	for want, missing := range map[string]map[int]bool{
		"replicas [0 2] have not come: their processes have ended": {2: true, 1: true, 0: true},
		"replica 2 has not come: its process has ended":            {2: true, 1: true},
	} {
		if got := endedError(m.ended(missing)).Error(); got != want {
			t.Errorf("of %v %s, want %s", missing, got, want)
		}
	}
	if got := m.ended(map[int]bool{1: true}); got != nil {
		t.Errorf("%v have ended, and are about to come", got)
	}
}

// connected connects c.Size replicas and returns their listeners too.
func connected(t testing.TB, c Config) ([]*Listener, []transport.Endpoint) {
	t.Helper()
	listeners, addresses, err := listenAll(c)
	if err != nil {
		t.Fatal(err)
	}
	ends, err := connectAll(listeners, addresses)
	if err != nil {
		t.Fatal(err)
	}
	return listeners, ends
}

// TestSecondProcess has another process come with a rank that is taken, and the secret. It is refused, and the job goes
// on.
func TestSecondProcess(t *testing.T) { synctest.Test(t, secondProcess) }

func secondProcess(t *testing.T) {
	const n = 3
	c := inMemory(Config{Size: n})
	listeners, eps := connected(t, c)
	addresses := make([]Address, n)
	for i, l := range listeners {
		addresses[i] = l.Address()
	}
	for rank := range n {
		c.Rank = rank
		l, err := Listen(c)
		if err != nil {
			t.Fatal(err)
		}
		limit := time.Minute // it ends by itself, when it is refused
		if rank == n-1 {
			limit = time.Second
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		_, err = l.Connect(ctx, addresses)
		cancel()
		t.Logf("another replica %d: %v", rank, err)
		want := fmt.Sprintf("replica %d is here already: another process has its rank", rank)
		if rank == n-1 { // it dials nobody
			want = "replicas [0 1] have not come"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("another replica %d: %v, want %q", rank, err, want)
		}
		together(t, eps, func(e transport.Endpoint) error { return ringRound(context.Background(), e, rank, 1000) })
	}
	closeTogether(t, eps)
}

// fronted makes two replicas that listen in memory, and a listener between them, which replica 0 dials for the address
// behind.
func fronted(t *testing.T, c Config) (listeners []*Listener, addresses []Address, front net.Listener, behind string) {
	t.Helper()
	c.Size = 2
	listeners, addresses, err := listenAll(c)
	if err != nil {
		t.Fatal(err)
	}
	if front, err = c.from.Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { front.Close() })
	behind = addresses[1].TCP
	addresses[1].TCP = front.Addr().String()
	return listeners, addresses, front, behind
}

// TestDialerComesAgain: a dialer whose time for a control connection is over when it has been admitted already comes
// again and is taken. The first connection gives way, whenever its end is seen.
func TestDialerComesAgain(t *testing.T) { synctest.Test(t, dialerComesAgain) }

func dialerComesAgain(t *testing.T) {
	c := inMemory(Config{})
	listeners, addresses, front, behind := fronted(t, c)
	// It passes everything on, but for the verdict of the first connection, whose other end stays.
	var passing sync.WaitGroup
	defer passing.Wait()
	passing.Go(func() {
		for first := true; ; first = false {
			in, err := front.Accept()
			if err != nil {
				return
			}
			out, err := c.from.Dial(t.Context(), "tcp", behind)
			if err != nil {
				in.Close()
				return
			}
			if first {
				defer out.Close()
				go func() { io.Copy(out, in) }()
				go io.CopyN(in, out, 10+32+32) // magic and version, nonce, HMAC
				continue
			}
			passing.Go(func() {
				io.Copy(out, in)
				out.(interface{ CloseWrite() error }).CloseWrite()
			})
			passing.Go(func() {
				io.Copy(in, out)
				in.(interface{ CloseWrite() error }).CloseWrite()
			})
		}
	})
	defer front.Close()
	ends, err := connectAll(listeners, addresses)
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, len(ends))
	for _, e := range ends {
		go func() {
			err := ringRound(t.Context(), e, 0, 100)
			errs <- errors.Join(err, e.Close())
		}()
	}
	for range ends {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestShakeEndsWithItsContext: a handshake with one who says nothing takes no time after its context is done.
func TestShakeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		go io.Copy(io.Discard, there)
		why := errors.New("for the test")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		began := time.Now()
		_, err := quietMesh(0, 2).shake(ctx, here, handshake.Hello{Peer: 1, Role: handshake.Data})
		// The clock is the bubble's, which waits for nobody.
		if took := time.Since(began); err != why || took != time.Second {
			t.Errorf("%v after %v, want what ended the context, at once", err, took)
		}
		there.Close()
	})
}

// TestCloseWhileDialling has a lane's link be dialled to a process that accepts and says nothing. The Exchange ends
// with its context, and after Close nothing is left of the dial.
func TestCloseWhileDialling(t *testing.T) {
	leaktest.Check(t)
	c := Config{Size: 2, Network: TCP}
	listeners, eps := connected(t, c)
	listeners[1].Close()
	silent, err := net.Listen("tcp", listeners[1].Address().TCP)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := ringRound(ctx, eps[0], 0, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	eps[0].Close()
	eps[1].Close()
}

func init() { child = runReplica }

// replicaConfig is what a process of TestLostProcess or TestFaults is told.
type replicaConfig struct {
	Rank, Size int
	Network    Network
	Silence    time.Duration
	Fault      *fault // nil: TestLostProcess
}

// runReplica is a process of TestLostProcess: it reads a replicaConfig, says its address, reads those of all, and
// carries out rounds until one fails. One of TestFaults goes on by runFault.
func runReplica() {
	var c replicaConfig
	in := bufio.NewReader(os.Stdin)
	line, _ := in.ReadBytes('\n')
	if err := json.Unmarshal(line, &c); err != nil {
		panic(err)
	}
	config := Config{Rank: c.Rank, Size: c.Size, Network: c.Network, Silence: c.Silence, Crowded: true}
	if c.Fault != nil {
		c.Fault.in, c.Fault.me = in, c.Rank
		config.meets = c.Fault.meets
	}
	l, err := Listen(config)
	if err != nil {
		panic(err)
	}
	json.NewEncoder(os.Stdout).Encode(l.Address())
	var addresses []Address
	line, _ = in.ReadBytes('\n')
	if err := json.Unmarshal(line, &addresses); err != nil {
		panic(err)
	}
	if c.Fault != nil {
		c.Fault.run(l, addresses)
		return
	}
	e, err := l.Connect(context.Background(), addresses)
	if err != nil {
		panic(err)
	}
	for k := 0; ; k++ {
		if err := ringRound(context.Background(), e, k, 100000); err != nil {
			replica := -1
			if lost, ok := errors.AsType[*transport.LostError](err); ok {
				replica = lost.Replica
			}
			e.Close()
			fmt.Printf("%d %v\n", replica, err)
			return
		}
		if k == 100 {
			fmt.Println("running")
		}
	}
}

// TestLostProcess kills one of three processes in the middle of their rounds, or stops it. The others name it: one
// that is killed by the end of its connections, one that is stopped by its silence. -v prints how long that takes.
func TestLostProcess(t *testing.T) {
	for _, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		for _, network := range Networks()[1:] {
			// Three jobs at a time: their replicas load the processors.
			t.Run(fmt.Sprintf("%v/%v", how, network), func(t *testing.T) {
				for victim := range 3 {
					t.Run(fmt.Sprintf("victim=%d", victim), func(t *testing.T) {
						t.Parallel()
						testLostProcess(t, how, network, victim)
					})
				}
			})
		}
	}
}

// replicas are processes that are each told a replicaConfig.
type replicas struct {
	children []*exec.Cmd
	ins      []io.Writer
	outs     []*bufio.Reader
}

// startReplicas starts processes and tells them the addresses of all. They end with the test.
func startReplicas(t *testing.T, n int, config func(rank int) replicaConfig) *replicas {
	t.Helper()
	children, ins, outs := make([]*exec.Cmd, n), make([]io.Writer, n), make([]*bufio.Reader, n)
	addresses := make([]Address, n)
	for i := range n {
		children[i] = exec.Command(os.Args[0])
		children[i].Env = append(os.Environ(), childEnv+"=1")
		children[i].Stderr = os.Stderr
		in, err := children[i].StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := children[i].StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		ins[i], outs[i] = in, bufio.NewReader(out)
		if err := children[i].Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			children[i].Process.Kill()
			children[i].Wait()
		})
		json.NewEncoder(in).Encode(config(i))
		line, _ := outs[i].ReadBytes('\n')
		if err := json.Unmarshal(line, &addresses[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		json.NewEncoder(ins[i]).Encode(addresses)
	}
	return &replicas{children, ins, outs}
}

func testLostProcess(t *testing.T, how syscall.Signal, network Network, victim int) {
	const n = 3
	silence := 2 * time.Second
	all := startReplicas(t, n, func(i int) replicaConfig {
		return replicaConfig{Rank: i, Size: n, Network: network, Silence: silence}
	})
	children, outs := all.children, all.outs
	for i := range n {
		if line, err := outs[i].ReadString('\n'); line != "running\n" {
			t.Fatalf("replica %d: %q, %v", i, line, err)
		}
	}
	began := time.Now()
	if err := children[victim].Process.Signal(how); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if i == victim {
			continue
		}
		line, err := outs[i].ReadString('\n')
		t.Logf("replica %d, after %v: %s", i, time.Since(began).Round(time.Millisecond), line)
		if err != nil || !strings.HasPrefix(line, fmt.Sprint(victim, " ")) {
			t.Errorf("replica %d: %q, %v", i, line, err)
		}
		who := fmt.Sprintf("replica %d (pid %d on ", victim, children[victim].Process.Pid)
		if !strings.Contains(line, who) {
			t.Errorf("replica %d: %q does not say %s", i, line, who)
		}
		silent := strings.Contains(line, fmt.Sprintf("it has said nothing for %v", silence))
		if silent != (how == syscall.SIGSTOP) {
			t.Errorf("replica %d after %v: %q", i, how, line)
		}
	}
}

// TestWakeUps has replicas that park at once pass messages on, short ones and some that fill the buffers of a socket:
// one lost wake-up, and it hangs.
func TestWakeUps(t *testing.T) {
	for _, network := range Networks()[1:] {
		t.Run(string(network), func(t *testing.T) {
			leaktest.Check(t)
			eps := open(t, 3, Config{Network: network, parks: true, Checksum: ChecksumOn})
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			times := 3000
			if testing.Short() {
				times = 500
			}
			var all sync.WaitGroup
			for _, e := range eps {
				all.Go(func() {
					me := e.Rank()
					for k := range times {
						size := 8 + k%200
						if k%100 == 0 {
							size = 3 << 20
						}
						buf := make([]byte, size)
						recv := []transport.Transfer{{Kind: transport.Recv, Peer: (me + 2) % 3, Buf: buf}}
						send := []transport.Transfer{{Kind: transport.Send, Peer: (me + 1) % 3, Buf: buf}}
						first, second := recv, send
						if me == 0 { // one after the other, and all at a time
							first, second = send, recv
							for i := range buf {
								buf[i] = byte(k + i)
							}
						}
						call := roundCall(2 * k)
						err := errors.Join(e.Exchange(ctx, call, first), e.Exchange(ctx, call, second))
						for i := range buf {
							if err == nil && buf[i] != byte(k+i) {
								err = fmt.Errorf("byte %d is wrong", i)
							}
						}
						if err == nil {
							err = ringRound(ctx, e, 2*k+1, size)
						}
						if err != nil {
							t.Errorf("replica %d, turn %d: %v", me, k, err)
							return
						}
					}
				})
			}
			all.Wait()
			closeTogether(t, eps)
		})
	}
}
