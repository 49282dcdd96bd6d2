package gcl_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/hosttest"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// The tests of this file run jobs on the hosts of package hosttest:
//
//	host 0    replicas 0 and 2
//	host 1    replica 1
//	host 2    replica 3

// placement has the host of each replica.
var placement = []int{0, 1, 0, 2}

const hostsReplica = "GCL_TEST_REPLICA"

// stage is where the hosts are.
type stage struct{ *hosttest.Stage }

// TestHosts runs jobs on three hosts.
func TestHosts(t *testing.T) {
	if underRace {
		t.Skip("what races can be over TCP also shows on one host; without the race detector it runs")
	}
	hosttest.Run(t, 3, map[string]int{"node0.test": 0}, func(t *testing.T, s *hosttest.Stage) { stage{s}.test(t) })
}

func (s stage) test(t *testing.T) {
	secret := replicaJob{Secret: []byte("a secret of this test, and only of it")}
	with := func(change func(c *replicaJob)) replicaJob {
		c := secret
		change(&c)
		return c
	}
	at := func(where string) func(*replicaJob) {
		return func(c *replicaJob) { c.Rendezvous = where }
	}
	addresses := func(said []saidBy, within ...string) {
		t.Helper()
		for r, one := range said {
			for _, l := range one.Listens {
				if !slices.ContainsFunc(within, func(p string) bool {
					return netip.MustParsePrefix(p).Contains(l.Addr())
				}) {
					t.Errorf("on the host of replica %d something listens on %v, want %v", r, l, within)
				}
			}
		}
	}
	t.Run("IPv4", func(t *testing.T) {
		addresses(s.run(t, with(at("10.77.0.1:6000")), nil), "10.77.0.0/24")
	})
	t.Run("IPv6", func(t *testing.T) {
		addresses(s.run(t, with(at("[fd00:77::1]:6000")), nil), "fd00:77::/64")
	})
	t.Run("name", func(t *testing.T) {
		addresses(s.run(t, with(at("node0.test:6000")), nil), "10.77.0.0/24")
	})
	t.Run("directory", func(t *testing.T) {
		addresses(s.run(t, with(func(c *replicaJob) {
			c.Rendezvous, c.Interface = "dir:"+t.TempDir(), "eth"
		}), nil), "10.77.0.0/24")
	})
	for _, pick := range []string{"=eth0", "^lo,decoy", "fd00:77::/64", "10.77.0.0/16"} {
		t.Run("interface="+pick, func(t *testing.T) {
			want := "10.77.0.0/24"
			if strings.Contains(pick, ":") {
				want = "fd00:77::/64"
			}
			addresses(s.run(t, with(func(c *replicaJob) {
				c.Rendezvous, c.Interface = "10.77.0.1:6000", pick
			}), nil), "10.77.0.1/32", want) // the rendezvous itself is where it was asked for
		})
	}
	t.Run("ports", func(t *testing.T) {
		for r, one := range s.run(t, with(func(c *replicaJob) {
			c.Rendezvous, c.Ports = "10.77.0.1:6000", [2]int{7000, 7001}
		}), nil) {
			for _, l := range one.Listens {
				if l.Port() < 7000 || l.Port() > 7001 {
					t.Errorf("on the host of replica %d something listens on %v, want 7000 or 7001", r, l)
				}
			}
			if want := map[bool]int{true: 2, false: 1}[placement[r] == 0]; len(one.Listens) != want {
				t.Errorf("on the host of replica %d are listeners %v, want %d", r, one.Listens, want)
			}
		}
		said := s.run(t, with(func(c *replicaJob) {
			c.Rendezvous, c.Ports = "10.77.0.1:6000", [2]int{7000, 7000}
		}), func(r int) string { return "no port" })
		for r, one := range said {
			t.Logf("replica %d: %s", r, one.Error)
		}
	})
	t.Run("no secret", func(t *testing.T) {
		for _, where := range []string{"10.77.0.1:6000", "dir:" + t.TempDir()} {
			said := s.run(t, replicaJob{Rendezvous: where, Interface: "eth"},
				func(int) string { return "GCL_SECRET" })
			for r, one := range said {
				for _, l := range one.Listens {
					if !l.Addr().IsLoopback() {
						t.Errorf("replica %d has listened on %v", r, l)
					}
				}
			}
		}
		s.run(t, replicaJob{Rendezvous: "10.77.0.1:6000", Insecure: true}, nil)
	})
	t.Run("another secret", func(t *testing.T) {
		s.run(t, with(func(c *replicaJob) {
			c.Rendezvous, c.Timeout, c.Job = "10.77.0.1:6000", 8*time.Second, "odd"
		}), func(r int) string {
			return map[bool]string{true: "replica 1", false: "secret"}[r != 1]
		})
	})
	t.Run("unix only", func(t *testing.T) {
		s.run(t, with(func(c *replicaJob) { c.Rendezvous, c.Transport = "dir:"+t.TempDir(), "unix" }),
			func(int) string { return "another host" })
	})
	t.Run("silence", func(t *testing.T) { s.silence(t, secret) })
	t.Run("rejoin", func(t *testing.T) { s.parted(t, secret) })
	t.Run("newcomer", func(t *testing.T) { s.grown(t, secret) })
}

// saidBy is what a replica of a job has said.
type saidBy struct {
	Error   string
	IsPeer  bool             // the error is a *gcl.PeerError
	Listens []netip.AddrPort // what listens on its host, once it has joined or failed
	Classes []string         // of its links to the other replicas, "host " before those on its own

	Left []int     // who is left, after Rejoin, or in a *transport.MinorityError
	Went time.Time // when a collective of those has succeeded; zero: there is none
}

// replicaJob is what a replica is told: the fields of JoinConfig that can be written as text.
type replicaJob struct {
	Rank, Size                            int
	Job, Rendezvous, Transport, Interface string
	Ports                                 [2]int
	Timeout, Silence                      time.Duration
	Secret                                []byte
	Insecure                              bool

	Loop    bool // collectives until one fails
	Rejoins bool // those that are left go on then

	Grows, Newcomer bool // see grown
}

func (j *replicaJob) config() gcl.JoinConfig {
	return gcl.JoinConfig{
		Rank: j.Rank, Size: j.Size, Job: j.Job, Rendezvous: j.Rendezvous, Transport: j.Transport,
		Interface: j.Interface, Ports: j.Ports, Timeout: j.Timeout, Silence: j.Silence, Secret: j.Secret,
		Insecure: j.Insecure, Newcomer: j.Newcomer,
	}
}

// run runs a job of one replica for each of placement and returns what they have said. fails is what the error of a
// replica says; nil: there is none, and links are as the hosts are.
func (s stage) run(t *testing.T, config replicaJob, fails func(rank int) string) []saidBy {
	t.Helper()
	said := s.start(t, config, nil)
	for r, one := range said {
		switch {
		case fails != nil && !strings.Contains(one.Error, fails(r)):
			t.Errorf("replica %d: %q does not say %q", r, one.Error, fails(r))
		case fails == nil && one.Error != "":
			t.Errorf("replica %d: %s", r, one.Error)
		case fails == nil:
			for peer, class := range one.Classes {
				want := "network link"
				if placement[r] == placement[peer] {
					want = "host socket link"
				}
				if peer != r && class != want {
					t.Errorf("replica %d to %d: link %q, want %q", r, peer, class, want)
				}
			}
		}
	}
	return said
}

// start starts a job. once is called when all replicas have joined.
func (s stage) start(t *testing.T, job replicaJob, once func()) []saidBy {
	t.Helper()
	said := make([]saidBy, len(placement))
	var all, joined sync.WaitGroup
	for r, host := range placement {
		job := job
		job.Rank, job.Size = r, len(placement)
		if job.Job == "odd" && r == 1 {
			job.Secret = []byte("another")
		}
		joined.Add(1)
		all.Go(s.replica(t, host, job, &said[r], joined.Done))
	}
	if once != nil {
		joined.Wait()
		once()
	}
	all.Wait()
	return said
}

// replica starts one replica of a job. What it returns waits for its end, and calls joined once, when it has joined or
// has ended.
func (s stage) replica(t *testing.T, host int, job replicaJob, said *saidBy, joined func()) (wait func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if job.Timeout == 0 {
		job.Timeout = time.Minute
	}
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	replica := exec.Command(self, "-test.run=^TestHostsReplica$", "-test.timeout=2m")
	replica.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GCL_") })
	replica.Env = append(replica.Env, hostsReplica+"="+string(text))
	var complaints strings.Builder
	replica.Stderr = &complaints
	out, err := replica.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(host, replica); err != nil {
		t.Fatal(err)
	}
	return func() {
		here := sync.OnceFunc(joined)
		defer here()
		var rest strings.Builder
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			line := lines.Text()
			if line == "JOINED" {
				here()
			} else if result, ok := strings.CutPrefix(line, "SAID "); ok {
				if err := json.Unmarshal([]byte(result), said); err != nil {
					t.Error(err)
				}
			} else {
				fmt.Fprintln(&rest, line)
			}
		}
		if err := replica.Wait(); err != nil {
			t.Errorf("replica %d: %v\n%s%s", job.Rank, err, rest.String(), complaints.String())
		}
	}
}

// silence takes a host off the network in the middle of a loop of collectives. Every replica, those on that host too,
// ends with a *gcl.PeerError.
func (s stage) silence(t *testing.T, config replicaJob) {
	defer s.IP(2, "link set eth0 up")
	config.Rendezvous, config.Silence = "10.77.0.1:6000", 2*time.Second
	config.Loop = true
	for r, one := range s.start(t, config, func() {
		time.Sleep(200 * time.Millisecond) // in the loop; the test holds without
		if err := s.IP(2, "link set eth0 down"); err != nil {
			t.Error(err)
		}
	}) {
		if !one.IsPeer {
			t.Errorf("replica %d: %q is no *gcl.PeerError", r, one.Error)
		}
		t.Logf("replica %d: %s", r, one.Error)
	}
}

// parted takes a host off the network in the middle of a loop of collectives. The others go on without its replica,
// which gets a *transport.MinorityError.
func (s stage) parted(t *testing.T, config replicaJob) {
	defer s.IP(2, "link set eth0 up")
	config.Rendezvous, config.Silence = "10.77.0.1:6000", 2*time.Second
	config.Loop, config.Rejoins = true, true
	var cut time.Time
	for r, one := range s.start(t, config, func() {
		time.Sleep(200 * time.Millisecond) // in the loop; the test holds without
		cut = time.Now()
		if err := s.IP(2, "link set eth0 down"); err != nil {
			t.Error(err)
		}
	}) {
		goes, left := placement[r] != 2, []int{0, 1, 2}
		if !goes {
			left = []int{3}
		}
		if one.Went.IsZero() == goes || (one.Error == "") != goes || !slices.Equal(one.Left, left) {
			t.Errorf("replica %d: %+v, want that %v are left", r, one, left)
		}
		if goes {
			t.Logf("replica %d goes on %v after the cut, Silence is %v", r, one.Went.Sub(cut), config.Silence)
		}
	}
}

// rejoins goes on with those that are left.
func rejoins(ctx context.Context, c *gcl.Comm, said *saidBy) (err error) {
	c, change, err := gcl.Rejoin(ctx, c)
	if minority, ok := errors.AsType[*transport.MinorityError](err); ok {
		said.Left = minority.Left
	}
	if err != nil {
		return err
	}
	defer func() {
		if closed := c.Close(); err == nil {
			err = closed
		}
	}()
	said.Left = change.Replicas
	sum, err := gcl.AllReduce(ctx, c, []int{1 << change.Replicas[c.Replica()]}, gcl.Add)
	if err != nil || sum[0] != 0b111 {
		return fmt.Errorf("%b among those that are left: %w", sum, err)
	}
	said.Went = time.Now()
	return nil
}

// grown has both replicas of the host where the job has met leave. The others go on, and a newcomer finds them on the
// host of the first of them, at the same port.
func (s stage) grown(t *testing.T, config replicaJob) {
	config.Rendezvous, config.Grows = "10.77.0.1:6000", true
	own := config
	own.Rendezvous, own.Size, own.Newcomer = "10.77.0.2:6000", len(placement), true
	var came saidBy
	wait := s.replica(t, 2, own, &came, func() {})
	said := s.start(t, config, nil)
	wait()
	for r, one := range append(said, came) {
		var left []int
		if placement[r%len(placement)] != 0 || r == len(said) {
			left = []int{0, 1} // the two that are left, and the newcomer after them
		}
		if one.Error != "" || !slices.Equal(one.Left, left) {
			t.Errorf("replica %d: %+v, want that %v are left", r, one, left)
		}
	}
}

// grows is what a replica of grown does, again when the members change.
func grows(ctx context.Context, c *gcl.Comm, said *saidBy) error {
	change, changed := c.Change()
	switch {
	case !changed && placement[c.Replica()] == 0:
		return nil
	case len(change.Came) > 0:
		said.Left = nil
		for r := range c.Size() - len(change.Came) {
			said.Left = append(said.Left, r)
		}
		return c.Barrier(ctx)
	}
	for {
		if _, err := c.Commit(ctx, func() error { return nil }); err != nil {
			return err
		}
	}
}

// TestHostsReplica is one replica, in a process of its own.
func TestHostsReplica(t *testing.T) {
	text := os.Getenv(hostsReplica)
	if text == "" {
		t.Skip("TestHosts starts it")
	}
	var job replicaJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(90*time.Second, func() { panic("the replica hangs") })
	defer watchdog.Stop()
	var said saidBy
	err := inHost(job, &said)
	if err != nil {
		var lost *gcl.PeerError
		said.Error, said.IsPeer = err.Error(), errors.As(err, &lost)
	}
	out, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nSAID %s\n", out)
}

// inHost is what a replica does.
func inHost(job replicaJob, said *saidBy) (err error) {
	ctx := context.Background()
	if job.Grows {
		body := func(ctx context.Context, c *gcl.Comm) error { return grows(ctx, c, said) }
		return gcl.RunProcess(ctx, job.config(), body, gcl.WithElastic(gcl.Elastic{Min: 1, Max: job.Size}))
	}
	c, err := gcl.Join(ctx, job.config())
	if err != nil {
		said.Listens = listening()
		return err
	}
	defer func() {
		if closed := c.Close(); err == nil {
			err = closed
		}
	}()
	if err := c.Barrier(ctx); err != nil {
		return err
	}
	fmt.Print("\nJOINED\n")
	if err := hostsAreDomains(ctx, c); err != nil {
		return err
	}
	for n := 1; ; n = n*7%300_000 + 1 {
		in := make([]int64, n)
		for i := range in {
			in[i] = int64(i+1) << (8 * c.Replica())
		}
		out, err := gcl.AllReduce(ctx, c, in, gcl.Add)
		if err != nil && job.Rejoins {
			return rejoins(ctx, c, said)
		}
		if err != nil {
			return err
		}
		for i, x := range out {
			if want := int64(i+1) * 0x01010101; x != want {
				return fmt.Errorf("element %d of %d is %#x, want %#x", i, n, x, want)
			}
		}
		if !job.Loop && n > 200_000 {
			break
		}
	}
	said.Listens = listening()
	for peer := range c.Replicas() {
		class, isHost := gcl.LinkOf(c, c.Replica(), peer)
		if isHost {
			class = "host " + class
		}
		said.Classes = append(said.Classes, class)
	}
	return c.Barrier(ctx) // all have looked
}

// hostsAreDomains finds each host a link domain. Hybrid goes where the members of a host follow each other.
func hostsAreDomains(ctx context.Context, c *gcl.Comm) error {
	e, err := c.Explain(schedule.AllReduce, 4096, tensor.F32)
	if err != nil || e.Machine != "clique of 2+1+1 replicas, dealt out" {
		return fmt.Errorf("the topology is %s, error %w", e.Machine, err)
	}
	hybrid := gcl.Options{Implementation: gcl.Hybrid}
	var option *gcl.OptionError
	if _, err := c.With(hybrid); !errors.As(err, &option) {
		return fmt.Errorf("Hybrid among all: %w", err)
	}
	pair, err := c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 2})
	if err != nil {
		return err
	}
	if pair, err = pair.With(hybrid); err != nil {
		return err
	}
	sum, err := gcl.AllReduce(ctx, pair, []int64{1 << c.Replica()}, gcl.Add)
	if want := int64(3) << (c.Replica() &^ 1); err != nil || sum[0] != want {
		return fmt.Errorf("Hybrid in a pair: %d, want %d: %w", sum, want, err)
	}
	return nil
}

// listening are the addresses of this network namespace on which processes listen on TCP.
func listening() (out []netip.AddrPort) {
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		b, _ := os.ReadFile(table)
		for line := range strings.SplitSeq(string(b), "\n") {
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != "0A" {
				continue
			}
			host, port, _ := strings.Cut(f[1], ":")
			var ip []byte
			for ; len(host) >= 8; host = host[8:] {
				word, _ := strconv.ParseUint(host[:8], 16, 32)
				ip = binary.NativeEndian.AppendUint32(ip, uint32(word))
			}
			p, _ := strconv.ParseUint(port, 16, 16)
			addr, _ := netip.AddrFromSlice(ip)
			out = append(out, netip.AddrPortFrom(addr.Unmap(), uint16(p)))
		}
	}
	return out
}
