package tcp

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/segment"
	"gogcl.dev/transport/transporttest"
)

// childEnv has the test binary be a replica of a test with processes: child.
const childEnv = "GOGCL_TCP_TEST_CHILD"

var child func()

// waiting is how many tests run in parallel, unless -parallel says so: tests that wait for real time and load no
// processor meanwhile. None of them counts goroutines or descriptors. Main looks for what they leave behind.
const waiting = "16"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", waiting); err != nil {
			panic(err)
		}
	}
	leaktest.Main(m)
}

func open(t testing.TB, n int, c Config) []transport.Endpoint {
	t.Helper()
	if c.form == (segment.Form{}) {
		c.form = smallForm // n replicas in a process map n times n segments
	}
	eps, err := newAll(n, c)
	if err != nil {
		t.Fatal(err)
	}
	return eps
}

// together runs body for each endpoint, and aborts with its error.
func together[E transport.Endpoint](t testing.TB, eps []transport.Endpoint, body func(e E) error) {
	t.Helper()
	var working sync.WaitGroup
	for _, e := range eps {
		working.Go(func() {
			if err := body(e.(E)); err != nil {
				t.Errorf("replica %d: %v", e.Rank(), err)
				e.Abort(err)
			}
		})
	}
	working.Wait()
}

// closeTogether closes endpoints.
func closeTogether(t testing.TB, eps []transport.Endpoint) {
	t.Helper()
	together(t, eps, transport.Endpoint.Close)
}

// smallForm has rings that most messages of tests fill.
var smallForm = segment.Form{Bytes: 96 << 20, Ring: 16 << 10, Pages: 32 << 20}

var full = flag.Bool("full", false, "repeat as often as inproc's TestConformance, and have 2, 3 and 5 processes on "+
	"every network")

// brief are the options of a run of the conformance suite: inproc's TestConformance is the one in full.
func brief(options ...transporttest.Option) []transporttest.Option {
	if *full {
		return options
	}
	return append(options, transporttest.Brief)
}

func TestConformance(t *testing.T) {
	for _, network := range Networks()[1:] {
		t.Run("network="+string(network), func(t *testing.T) {
			transporttest.Run(t, func(t testing.TB, n int) []transport.Endpoint {
				return open(t, n, Config{Network: network})
			}, brief(transporttest.Buffers, transporttest.NoAlloc)...)
		})
	}
}

// roundCall is the k-th call of the tests below.
func roundCall(k int) transport.Call { return transport.Call{Group: 1, Seq: uint64(k + 1)} }

// ringRound passes size bytes on to the next replica and checks those of the one before.
func ringRound(ctx context.Context, e transport.Endpoint, k, size int) error {
	me, n := e.Rank(), e.Size()
	to, from := (me+1)%n, (me+n-1)%n
	made := func(r int) []byte {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(i*i + 31*r + 7*k)
		}
		return b
	}
	got := make([]byte, size)
	err := e.Exchange(ctx, roundCall(k), []transport.Transfer{
		{Kind: transport.Send, Peer: to, Buf: made(me)}, {Kind: transport.Recv, Peer: from, Buf: got}})
	if err == nil && !bytes.Equal(got, made(from)) {
		err = fmt.Errorf("replica %d, round %d: wrong bytes from replica %d", me, k, from)
	}
	return err
}
