package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/internal/freeport"
	"gogcl.dev/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var secret = []byte("0123456789abcdef")

// sites are the three kinds of places. Each makes one that is free, and what tells that nothing is left there.
var sites = []struct {
	name string
	make func(t testing.TB) (where string, left func() error)
}{
	{"tcp", func(t testing.TB) (string, func() error) {
		address, err := freeport.Address()
		if err != nil {
			t.Fatal(err)
		}
		return address, func() error {
			l, err := net.Listen("tcp", address)
			if err == nil {
				l.Close()
			}
			return err
		}
	}},
	{"unix", func(t testing.TB) (string, func() error) {
		if runtime.GOOS != "linux" {
			t.Skip("no abstract sockets")
		}
		name := fmt.Sprintf("@gogcl-test-%d-%d", os.Getpid(), unixes.Add(1))
		return "unix:" + name, func() error {
			l, err := net.Listen("unix", name)
			if err == nil {
				l.Close()
			}
			return err
		}
	}},
	{"dir", func(t testing.TB) (string, func() error) {
		path := t.TempDir()
		return "dir:" + path, func() error {
			entries, err := os.ReadDir(path)
			if len(entries) > 0 {
				err = fmt.Errorf("%v is left", entries)
			}
			return err
		}
	}},
}

var unixes atomic.Int64

// result is what Meet returned at one replica.
type result struct {
	Met
	err error
}

// config is that of a test's replica.
func config(rank, size int, where string) Config {
	return Config{
		Rank: rank, Size: size, Job: "job", Secret: secret, Where: where,
		Blob:     func(netip.Addr) []byte { return fmt.Appendf(nil, "blob of %d", rank) },
		patience: 50 * time.Millisecond,
	}
}

// meet runs Meet for each configuration at once.
func meet(ctx context.Context, configs ...Config) []result {
	results := make([]result, len(configs))
	var all sync.WaitGroup
	for i, c := range configs {
		all.Go(func() { results[i].Met, results[i].err = Meet(ctx, c) })
	}
	all.Wait()
	return results
}

// within makes a context for a test: long where Meet is expected to end by itself.
func within(t testing.TB, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

const long = 60 * time.Second

// deadline is a context that ends as at a deadline, when over is closed.
type deadline struct {
	context.Context
	over chan struct{}
}

func newDeadline() deadline { return deadline{context.Background(), make(chan struct{})} }

func (d deadline) Done() <-chan struct{} { return d.over }

func (d deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// whenCome has a replica 0 call a function when it has taken in as many other replicas as given.
func (c *Config) whenCome(others int, then func()) {
	if others == 0 {
		then()
	}
	c.came = func(rank int) {
		if rank < 0 {
			return
		}
		if others--; others == 0 {
			then()
		}
	}
}

func everyone(size int, where string) []Config {
	configs := make([]Config, size)
	for rank := range configs {
		configs[rank] = config(rank, size, where)
	}
	return configs
}

// check compares the results of a job that has formed.
func check(t *testing.T, results []result) {
	t.Helper()
	var want [][]byte
	for rank := range results {
		want = append(want, fmt.Appendf(nil, "blob of %d", rank))
	}
	for rank, r := range results {
		if r.err != nil {
			t.Errorf("replica %d: %v", rank, r.err)
		} else if !reflect.DeepEqual(r.Blobs, want) {
			t.Errorf("replica %d: %q, want %q", rank, r.Blobs, want)
		}
	}
}

func TestMeet(t *testing.T) {
	for _, site := range sites {
		for _, n := range []int{1, 2, 3, 8, 64} {
			t.Run(fmt.Sprintf("where=%s/n=%d", site.name, n), func(t *testing.T) {
				leaktest.Check(t)
				where, left := site.make(t)
				configs := everyone(n, where)
				locals := make([]netip.Addr, n)
				for rank := range configs {
					blob := configs[rank].Blob
					configs[rank].Blob = func(local netip.Addr) []byte {
						locals[rank] = local
						return blob(local)
					}
				}
				results := meet(within(t, long), configs...)
				check(t, results)
				for rank, r := range results {
					if r.Local != locals[rank] {
						t.Errorf("replica %d: Local %v, Blob was called with %v", rank, r.Local, locals[rank])
					}
					loopback := site.name == "tcp" && n > 1
					if r.Local.IsValid() != loopback || loopback && !r.Local.IsLoopback() {
						t.Errorf("replica %d: Local %v", rank, r.Local)
					}
				}
				if err := left(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestFarDeadline: replicas may have more time than a sheet can say.
func TestFarDeadline(t *testing.T) {
	for _, site := range sites {
		where, left := site.make(t)
		check(t, meet(within(t, 2*maxLeft), everyone(2, where)...))
		if err := left(); err != nil {
			t.Errorf("%s: %v", site.name, err)
		}
	}
}

// TestLargeBlobs: blobs of the greatest size, and empty ones.
func TestLargeBlobs(t *testing.T) {
	for _, site := range sites {
		t.Run("where="+site.name, func(t *testing.T) {
			where, _ := site.make(t)
			configs := everyone(5, where)
			for rank := range configs {
				configs[rank].Blob = func(netip.Addr) []byte {
					return []byte(strings.Repeat(fmt.Sprint(rank), rank%2*MaxBlob))
				}
			}
			configs[4].Blob = nil
			for rank, r := range meet(within(t, long), configs...) {
				if r.err != nil {
					t.Fatalf("replica %d: %v", rank, r.err)
				}
				for of, blob := range r.Blobs {
					if string(blob) != strings.Repeat(fmt.Sprint(of), of%2*MaxBlob) {
						t.Errorf("replica %d: %d bytes of replica %d", rank, len(blob), of)
					}
				}
			}
		})
	}
}

// TestTooLargeBlob: the replica itself says so, and all others hear of it.
func TestTooLargeBlob(t *testing.T) {
	for _, site := range sites {
		for _, rank := range []int{0, 2} {
			t.Run(fmt.Sprintf("where=%s/rank=%d", site.name, rank), func(t *testing.T) {
				t.Parallel()
				where, left := site.make(t)
				configs := everyone(3, where)
				configs[rank].Blob = func(netip.Addr) []byte { return make([]byte, MaxBlob+1) }
				for i := range configs {
					configs[i].patience = long // until all have come
					configs[i].linger = long   // until replica 0 has read it
				}
				for i, r := range meet(within(t, long), configs...) {
					e := errorOf(t, r.err)
					if i == rank && (e.Kind != GaveUp || !strings.Contains(e.Reason, "blob of 65537 bytes")) {
						t.Errorf("replica %d: %v", i, e)
					}
					if i != rank && (e.Kind != GaveUp || !reflect.DeepEqual(e.Replicas, []int{rank})) {
						t.Errorf("replica %d: %v", i, e)
					}
				}
				if err := left(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestListener: replica 0 may bring a listener, which is closed in the end, whatever happens.
func TestListener(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	isClosed := func(l net.Listener) {
		t.Helper()
		if conn, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the listener is open: %v, %v", conn, err)
		}
	}
	l := listen()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	configs := everyone(3, "localhost:"+port)
	configs[0].Listener = l
	results := meet(within(t, long), configs...)
	check(t, results)
	if results[0].Local.IsValid() {
		t.Errorf("replica 0 listens everywhere, and has the address %v", results[0].Local)
	}
	isClosed(l)

	for _, change := range []func(c *Config){
		func(c *Config) { c.Size = 1 },
		func(c *Config) { c.Size = 0 },
		func(c *Config) { c.Rank = 1 },
		func(c *Config) { c.Where = "dir:" + t.TempDir() },
		func(c *Config) { c.Blob = func(netip.Addr) []byte { return make([]byte, MaxBlob+1) } },
	} {
		c := config(0, 2, "localhost:1")
		c.Listener = listen()
		change(&c)
		_, err := Meet(within(t, long), c)
		if (err == nil) != (c.Size == 1) {
			t.Errorf("%+v: %v", c, err)
		}
		isClosed(c.Listener)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, tt := range []struct {
		rank, size int
		where      string
		want       string
	}{
		{0, 0, "h:1", "a job of 0 replicas"},
		{0, MaxSize + 1, "h:1", "the size is from 1 to 16384"},
		{2, 2, "h:1", "replica 2 of 2: the rank is from 0 to 1"},
		{-1, 2, "h:1", "replica -1 of 2"},
		{0, 2, "", "want host:port, unix:@NAME or dir:PATH"},
		{0, 2, "h", "want host:port, unix:@NAME or dir:PATH"},
		{0, 2, "h:", "want a port from 1 to 65535"},
		{0, 2, "h:0", "want a port from 1 to 65535"},
		{0, 2, "h:65536", "want a port from 1 to 65535"},
		{0, 2, "h:http", "want a port from 1 to 65535"},
		{0, 2, ":1", "want the name or an address of replica 0's host"},
		{1, 2, "0.0.0.0:1", "want the name or an address of replica 0's host"},
		{1, 2, "[::]:1", "want the name or an address of replica 0's host"},
		{0, 2, "unix:", "want unix:@NAME"},
		{0, 2, "unix:@", "want unix:@NAME"},
		{0, 2, "unix:/tmp/x", "want unix:@NAME"},
		{1, 2, "unix:@" + strings.Repeat("x", 107), "a name of 108 bytes, want at most 107"},
		{0, 2, "dir:", "want dir:PATH"},
		{0, 2, "dir:/does/not/exist", "make a directory there that all hosts share"},
		{1, 2, "dir:/dev/null", "it is no directory"},
		{0, 2, "192.0.2.1:4242", "192.0.2.1, which is no address of this host"},
	} {
		_, err := Meet(within(t, long), config(tt.rank, tt.size, tt.where))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.where, err, tt.want)
		}
	}
}

// TestAddressInUse: replica 0 waits a little for the address, then says what is wrong.
func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Meet(within(t, long), config(0, 2, l.Addr().String()))
	if e := errorOf(t, err); e.Kind != Stranger || !strings.Contains(e.Reason, "choose another port") {
		t.Errorf("%v", e)
	}
	c := config(0, 2, l.Addr().String())
	c.patience = long
	time.AfterFunc(20*time.Millisecond, func() { l.Close() })
	check(t, meet(within(t, long), c, config(1, 2, c.Where)))
}

// TestTwoJobs: two jobs in one directory do not see each other.
func TestTwoJobs(t *testing.T) {
	where, left := sites[2].make(t)
	first, second := everyone(4, where), everyone(6, where)
	for i := range second {
		second[i].Job = "../job"
		second[i].Secret = nil
	}
	results := meet(within(t, long), append(first, second...)...)
	check(t, results[:4])
	check(t, results[4:])
	if err := left(); err != nil {
		t.Error(err)
	}
}

// TestEarlierRun: the files of a run that was killed, at any moment of it, do not disturb the next one.
func TestEarlierRun(t *testing.T) {
	where, left := sites[2].make(t)
	path := strings.TrimPrefix(where, "dir:")
	var saved atomic.Int64
	keep := t.TempDir()
	stop, stopped := make(chan bool), make(chan bool)
	go func() { // keeps a copy of every file that there ever is
		defer close(stopped)
		for {
			names, _ := filepath.Glob(filepath.Join(path, "*", "*"))
			for _, name := range names {
				copied := filepath.Join(keep, filepath.Base(name))
				if _, err := os.Lstat(copied); err == nil {
					continue
				}
				if content, err := os.ReadFile(name); err == nil && os.WriteFile(copied, content, 0o600) == nil {
					saved.Add(1)
				}
			}
			select {
			case <-stop:
				return
			default:
				runtime.Gosched()
			}
		}
	}()
	for runs := 0; saved.Load() < 4; runs++ { // a file is there for a moment
		if runs == 50 {
			t.Fatalf("only %d files were caught in %d runs", saved.Load(), runs)
		}
		check(t, meet(within(t, long), everyone(4, where)...))
	}
	close(stop)
	<-stopped
	job := filepath.Join(path, jobName("job"))
	if err := os.CopyFS(job, os.DirFS(keep)); err != nil {
		t.Fatal(err)
	}
	check(t, meet(within(t, long), everyone(4, where)...))
	if err := left(); err != nil {
		t.Error(err)
	}
}

// TestHosts: names and addresses of several families.
func TestHosts(t *testing.T) {
	for _, host := range []string{"localhost", "::1", "127.0.0.2"} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Logf("no %s here: %v", host, err)
			continue
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		l.Close()
		results := meet(within(t, long), everyone(3, net.JoinHostPort(host, port))...)
		check(t, results)
		for rank, r := range results {
			if !r.Local.IsLoopback() || r.Local.Is6() != (host == "::1") {
				t.Errorf("%s: replica %d: %v", host, rank, r.Local)
			}
		}
	}
}
