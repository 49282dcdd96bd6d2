package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/agree"
	"gogcl.dev/transport/internal/handshake"
)

// TestNewcomers: replicas die, the others rejoin, and newcomers come in their place, one with each rejoining.
func TestNewcomers(t *testing.T) {
	for _, network := range []Network{TCP, Unix, Shm} {
		t.Run(string(network), func(t *testing.T) {
			leaktest.Check(t)
			const n = 3
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			c := Config{Size: n, Most: n, Network: network, Job: "newcomers", Secret: make([]byte, 32), form: smallForm}
			meeting := Meeting{Where: "unix:@gogcl-newcomers-" + string(network)}
			var all sync.WaitGroup
			var mu sync.Mutex
			var sizes []string
			// stay goes on until the job has been whole again twice.
			stay := func(name string, e transport.Endpoint) error {
				whole := 0
				for {
					if err := ringRound(ctx, e, 0, 10); err != nil && ctx.Err() != nil {
						return err
					}
					next, err := e.(transport.Rejoiner).Rejoin(ctx, 7)
					if err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
					e.Close()
					e = next.Endpoint
					if len(next.Came) > 0 {
						whole++
					}
					mu.Lock()
					sizes = append(sizes, fmt.Sprintf("%s: generation %d of %d", name, next.Generation, e.Size()))
					mu.Unlock()
					if whole == 2 {
						err := ringRound(ctx, e, 0, 10)
						e.Close()
						return err
					}
				}
			}
			for r := range n {
				all.Go(func() {
					own := c
					own.Rank = r
					e, err := Join(ctx, own, meeting)
					if err != nil {
						t.Error(err)
						return
					}
					if r == 0 { // the desk goes with it
						e.Close()
						return
					}
					if err := stay(fmt.Sprint("replica ", r), e); err != nil {
						t.Error(err)
					}
				})
			}
			all.Go(func() {
				for range 2 {
					joined, err := Come(ctx, c, meeting)
					if err != nil {
						t.Error("newcomer: ", err)
						return
					}
					e := joined.Endpoint
					if e.Rank() != n-1 || e.Size() != n {
						t.Errorf("a newcomer is %d of %d", e.Rank(), e.Size())
					}
					_ = ringRound(ctx, e, 0, 10) // the others may rejoin
					e.Close()
				}
			})
			all.Wait()
			t.Log(sizes[max(0, len(sizes)-8):])
		})
	}
}

// newcomerJob is a job of two with room for a third, and how it is joined.
type newcomerJob struct {
	config  Config
	meeting Meeting
}

func newNewcomerJob(t *testing.T, network Network) newcomerJob {
	return newcomerJob{
		Config{Size: 2, Most: 3, Network: network, Job: "job of newcomers", Secret: make([]byte, 32), form: smallForm},
		Meeting{Where: fmt.Sprintf("unix:@gogcl-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))},
	}
}

// join begins the job.
func (j newcomerJob) join(ctx context.Context, t *testing.T) []transport.Endpoint {
	t.Helper()
	out := make([]transport.Endpoint, j.config.Size)
	var all sync.WaitGroup
	for r := range out {
		all.Go(func() {
			own := j.config
			own.Rank = r
			var err error
			if out[r], err = Join(ctx, own, j.meeting); err != nil {
				t.Error(err)
			}
		})
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
	return out
}

// rejoin has all endpoints rejoin, and closes those before.
func rejoin(ctx context.Context, t *testing.T, eps []transport.Endpoint) []*transport.Rejoined {
	t.Helper()
	out := make([]*transport.Rejoined, len(eps))
	var all sync.WaitGroup
	for i, e := range eps {
		all.Go(func() {
			var err error
			if out[i], err = e.(transport.Rejoiner).Rejoin(ctx, 1); err != nil {
				t.Error(err)
			}
			e.Close()
		})
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
	return out
}

// until waits for what comes by itself.
func until(ctx context.Context, t *testing.T, what string, is func() bool) {
	t.Helper()
	for !is() {
		if ctx.Err() != nil {
			t.Fatalf("%s does not come", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestNewcomerGivesUp: one that waits is awaited by all, and by nobody when it has gone. Rejoining takes nobody then.
func TestNewcomerGivesUp(t *testing.T) {
	leaktest.Check(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job := newNewcomerJob(t, Unix)
	eps := job.join(ctx, t)
	awaited := func(by int) func() bool { return eps[by].(transport.Rejoiner).Awaited }
	waits, goes := context.WithCancel(ctx)
	gone := make(chan error)
	go func() {
		_, err := Come(waits, job.config, job.meeting)
		gone <- err
	}()
	until(ctx, t, "a newcomer", awaited(0))
	until(ctx, t, "a newcomer", awaited(1))
	goes()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("a newcomer that gives up: %v", err)
	}
	until(ctx, t, "its end", func() bool { return !awaited(0)() && !awaited(1)() })
	for _, r := range rejoin(ctx, t, eps) {
		if r.Endpoint.Size() != 2 || len(r.Came) > 0 {
			t.Errorf("%+v, want the two that were there", r)
		}
		r.Endpoint.Close()
	}
}

// TestNewcomerHearsOfTheEnd: one that waits for a job which ends is told so.
func TestNewcomerHearsOfTheEnd(t *testing.T) {
	leaktest.Check(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job := newNewcomerJob(t, Unix)
	eps := job.join(ctx, t)
	told := make(chan error)
	go func() {
		_, err := Come(ctx, job.config, job.meeting)
		told <- err
	}()
	for _, e := range eps {
		until(ctx, t, "a newcomer", e.(transport.Rejoiner).Awaited)
	}
	for _, e := range eps {
		e.Close()
	}
	if err := <-told; err != errOver {
		t.Errorf("a newcomer to a job that ends: %v", err)
	}
}

// TestNewcomerThatDoesNotFit: what is wrong is said before it gets a number, so those that come later are not too late.
func TestNewcomerThatDoesNotFit(t *testing.T) {
	leaktest.Check(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job := newNewcomerJob(t, Unix)
	job.meeting.Blob = []byte("the job's")
	eps := job.join(ctx, t)
	job.meeting.Agree = func(blobs [][]byte) error {
		if string(blobs[1]) != "the job's" {
			return fmt.Errorf("%q is not what %q is", blobs[1], blobs[0])
		}
		return nil
	}
	for text, change := range map[string]func(c *Config, m *Meeting){
		"the job has 2 and 3: give it the same":                       func(c *Config, _ *Meeting) { c.Most = 4 },
		"a newcomer: to a job of 1 replicas at first":                 func(c *Config, _ *Meeting) { c.Size = 1 },
		`by network "tcp", and the job goes by "unix": give it the`:   func(c *Config, _ *Meeting) { c.Network = TCP },
		`"own" is not what "the job's" is`:                            func(_ *Config, m *Meeting) { m.Blob = []byte("own") },
		"a newcomer to a job that takes none: want Config.Most as":    func(c *Config, _ *Meeting) { c.Most = 0 },
		"is a directory, and newcomers find a job at a socket: want":  func(_ *Config, m *Meeting) { m.Where = "dir:/tmp" },
		"2 replicas, and 1 at most when newcomers come: want as many": func(c *Config, _ *Meeting) { c.Most = 1 },
	} {
		own, meeting := job.config, job.meeting
		change(&own, &meeting)
		if _, err := Come(ctx, own, meeting); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	came := make(chan int)
	go func() {
		r, err := Come(ctx, job.config, job.meeting)
		if err != nil {
			t.Error(err)
			close(came)
			return
		}
		members := r.Endpoint.(*endpoint).generation.members
		r.Endpoint.Close()
		came <- members[len(members)-1]
	}()
	for _, e := range eps {
		until(ctx, t, "a newcomer", e.(transport.Rejoiner).Awaited)
	}
	for _, r := range rejoin(ctx, t, eps) {
		r.Endpoint.Close()
	}
	if place := <-came; place != 2 {
		t.Errorf("the first that fits has number %d, want 2", place)
	}
}

// TestRunningFits: what a desk answers is looked at before it is used.
func TestRunningFits(t *testing.T) {
	in := func(places ...int) (out []introduction) {
		for _, place := range places {
			out = append(out, introduction{Place: place})
		}
		return out
	}
	for text, r := range map[string]running{
		"a job without replicas": {}, "of a job without replicas": {Members: in(0, -1)},
		"job without replicas": {Members: in(agree.MaxID + 1)},
		"and the job goes by":  {Members: in(0), Size: 2, Most: 2, Network: Shm},
		"":                     {Members: in(0, 7), Size: 2, Most: 2, Network: TCP},
	} {
		err := r.fits(&Config{Size: 2, Most: 2, Network: TCP}, &Meeting{})
		if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q", r, err, text)
		}
	}
	if err := (&running{Members: in(0), Size: 1, Most: 2, Network: Shm}).fits(&Config{Size: 1, Most: 2,
		TLS: new(tls.Config)}, &Meeting{}); err == nil || !strings.Contains(err.Error(), "TLS, which memory has not") {
		t.Errorf("TLS to a job over memory: %v", err)
	}
	// Memory of another host.
	r := running{Members: []introduction{{Address: Address{Host: "elsewhere"}}}, Network: Shm}
	m := Meeting{Where: "127.0.0.1:1"}
	_, err := m.listenAsNewcomer(Config{Size: 1, Most: 2}, prepared{local: true}, &r, 1, netip.Addr{})
	if err == nil || !strings.Contains(err.Error(), "the replicas share memory on host elsewhere: start it there") {
		t.Errorf("memory of another host: %v", err)
	}
}

// TestNewcomerOfAnotherUser: a newcomer takes connections of its own user only where the others do: without a secret.
// That it has the job's key by then makes no difference.
func TestNewcomerOfAnotherUser(t *testing.T) {
	r := running{Members: []introduction{{Address: Address{Host: HostName()}}}, Network: TCP}
	r.Key = make([]byte, keySize)
	m := Meeting{Where: "127.0.0.1:1"}
	for want, secret := range map[bool][]byte{true: nil, false: make([]byte, minSecret)} {
		c := Config{Size: 1, Most: 2, Secret: secret}
		l, err := m.listenAsNewcomer(c, prepared{local: true}, &r, 1, netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		if l.ownUser != want || len(l.config.Secret) != len(secret)+keySize {
			t.Errorf("a secret of %d bytes: its own user only is %v, want %v", len(secret), l.ownUser, want)
		}
		l.Close()
	}
}

// TestNewcomerShortOfDescriptors: before it knows of others it expects nobody, whatever its number is.
func TestNewcomerShortOfDescriptors(t *testing.T) {
	m := &mesh{config: Config{Rank: 5}, listener: new(Listener), arrival: new(arrival)}
	m.controls.Store(new([]*control))
	if _, err := m.begin(0, []int{5}); err != nil {
		t.Fatal(err)
	}
	if m.expects() {
		t.Error("a newcomer expects others to dial")
	}
}

// TestShortForNewcomer: a replica that has no descriptor for a newcomer ends no call. For a member it does.
func TestShortForNewcomer(t *testing.T) {
	m := quietMesh(1, 2)
	m.ctx, m.cancel = context.WithCancel(t.Context())
	defer m.cancel()
	if _, err := m.found(); err != nil {
		t.Fatal(err)
	}
	g := m.now.Load()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	for _, rank := range []int{2, 0} {
		m.refused(a, handshake.Hello{Rank: rank, Peer: 1, Role: handshake.Control},
			&handshake.ShortError{Reason: "none left"})
		if failed := g.lane.Err() != nil; failed != (rank == 0) {
			t.Errorf("without a descriptor for replica %d calls have failed: %v", rank, failed)
		}
	}
}

// TestMachinesOfThoseLeft: links are those of the replicas of a generation.
func TestMachinesOfThoseLeft(t *testing.T) {
	listeners, addresses, err := listenAll(Config{Size: 3, Network: TCP, Job: "machines", Secret: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	for r, machine := range []string{"one", "one", "other"} {
		addresses[r].Machine = machine
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	eps := make([]transport.Endpoint, len(listeners))
	var all sync.WaitGroup
	for r, l := range listeners {
		all.Go(func() {
			e, err := l.Connect(ctx, addresses)
			if err != nil {
				t.Error(err)
			}
			eps[r] = e
		})
	}
	all.Wait()
	machine := func(e transport.Endpoint) string {
		link := e.(transport.Linked).Link(0, 1)
		return link.Machine
	}
	if got := machine(eps[0]); got != "" {
		t.Errorf("machines that differ are called %q", got)
	}
	eps[2].Close()
	for _, r := range rejoin(ctx, t, eps[:2]) {
		if got := machine(r.Endpoint); got != "one" {
			t.Errorf("the machine of those that are left is called %q", got)
		}
		r.Endpoint.Close()
	}
}

// TestMemoryOfTheGone: what a replica that is gone has given of its memory goes with the last generation that it was
// in.
func TestMemoryOfTheGone(t *testing.T) {
	leaktest.Check(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job := newNewcomerJob(t, Shm)
	eps := job.join(ctx, t)
	m := eps[0].(*nearby).endpoint.generation.mesh
	if m.at(1).neighbour() == nil {
		t.Fatal("replica 1 has given nothing of its memory")
	}
	eps[1].Close()
	next, err := eps[0].(transport.Rejoiner).Rejoin(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if m.at(1).neighbour() == nil {
		t.Error("the memory of replica 1 has gone before the endpoint that uses it")
	}
	eps[0].Close()
	if m.at(1).neighbour() != nil {
		t.Error("the memory of replica 1 is still there")
	}
	next.Endpoint.Close()
}

// TestNewcomerLostWhileTaken: a newcomer goes while the others decide to take it in. The endpoint in which it is a
// member hears of it, and no call waits.
func TestNewcomerLostWhileTaken(t *testing.T) {
	leaktest.Check(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job := newNewcomerJob(t, Unix)
	job.config.Size, job.config.Most = 1, 2
	e := job.join(ctx, t)[0]
	m := e.(*endpoint).generation.mesh
	waits, goes := context.WithCancel(ctx)
	gone := make(chan error)
	go func() {
		_, err := Come(waits, job.config, job.meeting)
		gone <- err
	}()
	until(ctx, t, "a newcomer", e.(transport.Rejoiner).Awaited)
	m.life.Lock() // which the end of the newcomer and the decision both wait for, in whichever order they come
	rejoined := make(chan *transport.Rejoined)
	go func() {
		r, err := e.(transport.Rejoiner).Rejoin(ctx, 1)
		if err != nil {
			t.Error(err)
		}
		rejoined <- r
	}()
	time.Sleep(50 * time.Millisecond) // the decision most likely first; the test holds without
	c := m.at(1)
	c.mu.Lock()
	c.conn.Close()
	c.mu.Unlock()
	time.Sleep(10 * time.Millisecond) // and then that end
	m.life.Unlock()
	r := <-rejoined
	if r == nil {
		t.FailNow()
	}
	if r.Endpoint.Size() == 2 {
		if err := ringRound(ctx, r.Endpoint, 0, 10); err == nil || ctx.Err() != nil {
			t.Errorf("a call with a newcomer that is gone: %v", err)
		}
	}
	goes()
	<-gone
	e.Close()
	r.Endpoint.Close()
}
