package tcp

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/internal/certificates"
	"gogcl.dev/internal/freeport"
	"gogcl.dev/internal/netstack"
	"gogcl.dev/transport"
	"gogcl.dev/transport/transporttest"
)

// TestConformanceTLS: over pumps. Unix sockets differ by nothing then.
func TestConformanceTLS(t *testing.T) {
	config := certificates.New(t).Config()
	transporttest.Run(t, func(t testing.TB, n int) []transport.Endpoint {
		if n > 3 {
			t.Skip("the handshakes of TLS between more than 3 replicas take seconds")
		}
		return open(t, n, Config{Network: TCP, TLS: config})
	}, brief(transporttest.Buffers)...)
}

// joinAll has replicas of this process join a job, each with the configuration that change makes for it.
func joinAll(t *testing.T, n int, where string, change func(c *Config, m *Meeting)) ([]transport.Endpoint, []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	ends, errs := make([]transport.Endpoint, n), make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		c, m := Config{Rank: r, Size: n, Job: t.Name()}, Meeting{Where: where}
		change(&c, &m)
		ctx := ctx
		if c.from != nil {
			ctx = netstack.With(ctx, c.from)
		}
		all.Go(func() { ends[r], errs[r] = Join(ctx, c, m) })
	}
	all.Wait()
	for _, e := range ends {
		if e != nil {
			t.Cleanup(func() { e.Close() })
		}
	}
	return ends, errs
}

var placesMade atomic.Int64

// places are rendezvous of all kinds on this host. No other test has them.
func places(t *testing.T) map[string]string {
	out := map[string]string{"dir": "dir:" + t.TempDir()}
	var err error
	if out["loopback"], err = freeport.Address(); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		out["unix"] = fmt.Sprintf("unix:@gogcl-test-%d-%d", os.Getpid(), placesMade.Add(1))
	}
	return out
}

// TestJoinTLS: with certificates of one authority replicas join, with a secret and without. One without TLS, without
// such a certificate or without TLS 1.3 ends the joining with an error on both sides.
func TestJoinTLS(t *testing.T) {
	t.Parallel()
	ours, others := certificates.New(t), certificates.New(t)
	good := ours.Config()
	for kind, where := range places(t) {
		t.Run(kind, func(t *testing.T) {
			for _, n := range []int{2, 3} {
				_, errs := joinAll(t, n, where, func(c *Config, _ *Meeting) {
					c.TLS = good
					if n == 3 {
						c.Secret = []byte("a secret of this test")
					}
				})
				for r, err := range errs {
					if err != nil {
						t.Errorf("replica %d of %d: %v", r, n, err)
					}
				}
			}
		})
	}
	for _, test := range []struct {
		name string
		odd  *tls.Config // of replica 1
		want [2]string   // in the errors of replicas 0 and 1
		dir  [2]string   // the same, in a directory
	}{
		{"no TLS", nil, [2]string{"other side none", "other side has TLS"},
			[2]string{"replica 1 none", "replica 1 none"}},
		{"another authority", others.Config(), [2]string{"refuses this side's certificate", "certificate is refused"},
			[2]string{"certificate is refused", "refuses this side's certificate"}},
	} {
		for kind, where := range places(t) {
			if kind == "unix" { // the user at the other end is asked for, and has none in memory
				continue
			}
			t.Run(test.name+"/"+kind, func(t *testing.T) {
				var errs []error
				now := time.Now()                     // certificates are not good for the time of a bubble
				synctest.Test(t, func(t *testing.T) { // they try again for seconds
					memory := inMemory(Config{})
					_, errs = joinAll(t, 2, where, func(c *Config, _ *Meeting) {
						c.from, c.Network, c.Secret = memory.from, memory.Network, memory.Secret
						if c.TLS = good; c.Rank == 1 {
							c.TLS = test.odd
						}
						if c.TLS = c.TLS.Clone(); c.TLS != nil {
							c.TLS.Time = func() time.Time { return now }
						}
					})
				})
				want := test.want
				if kind == "dir" {
					want = test.dir
				}
				for r, err := range errs {
					if err == nil || !strings.Contains(err.Error(), want[r]) {
						t.Errorf("replica %d: %v does not say %q", r, err, want[r])
					}
				}
			})
		}
	}
}
