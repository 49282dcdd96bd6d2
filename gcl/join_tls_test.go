package gcl_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/certificates"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// TestJoinTLS: replicas join over TLS, with a secret and without, and their collectives are right.
func TestJoinTLS(t *testing.T) {
	leaktest.Check(t)
	config := certificates.New(t).Config()
	for _, size := range []int{2, 3} {
		cfg := job(t, size)
		cfg.TLS = config
		if size == 3 {
			cfg.Secret, cfg.Transport = []byte("a secret of this test"), "tcp"
		}
		for rank, err := range inJob(size, func(rank int) error {
			cfg := cfg
			cfg.Rank = rank
			return gcl.RunProcess(context.Background(), cfg, checkSums)
		}) {
			if err != nil {
				t.Errorf("replica %d of %d: %v", rank, size, err)
			}
		}
	}
}

// TestJoinLinks: auto is memory that the processes of a host share, and Explain says what else it is, and why.
func TestJoinLinks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("shared memory between processes needs Linux")
	}
	leaktest.Check(t)
	config := certificates.New(t).Config()
	for want, change := range map[string]func(cfg *gcl.JoinConfig){
		"shm":  func(cfg *gcl.JoinConfig) {},
		"unix": func(cfg *gcl.JoinConfig) { cfg.Transport = "unix" },
		"unix, and no shared memory, since replica 0: it has TLS, which memory has not": func(cfg *gcl.JoinConfig) {
			cfg.TLS = config
		},
	} {
		for rank, err := range inJob(2, func(rank int) error {
			cfg := job(t, 2)
			change(&cfg)
			cfg.Rank = rank
			return gcl.RunProcess(context.Background(), cfg, func(ctx context.Context, c *gcl.Comm) error {
				e, err := c.Explain(schedule.AllReduce, 1<<20, tensor.F32)
				if err == nil && (e.Links != want || !strings.Contains(e.String(), "; by "+want+"\n")) {
					err = fmt.Errorf("links %q, want %q:\n%v", e.Links, want, e)
				}
				return errors.Join(err, checkSums(ctx, c))
			})
		}) {
			if err != nil {
				t.Errorf("replica %d: %v", rank, err)
			}
		}
	}
}

// TestJoinTLSErrors: a configuration that would let strangers in is refused, or one that TLS does not go
// with, before anybody is waited for.
func TestJoinTLSErrors(t *testing.T) {
	good := certificates.New(t).Config()
	for want, change := range map[string]func(c *tls.Config){
		"has no certificate": func(c *tls.Config) { c.Certificates = nil },
		"below 1.3":          func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
		"no RootCAs":         func(c *tls.Config) { c.RootCAs, c.ClientCAs = nil, nil },
		`network "shm" with TLS: memory is not encrypted`: nil,
	} {
		cfg := job(t, 2)
		cfg.TLS, cfg.Timeout = good.Clone(), time.Minute
		if change != nil {
			change(cfg.TLS)
		} else {
			cfg.Transport = "shm"
		}
		if _, err := gcl.Join(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
