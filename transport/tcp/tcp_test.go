package tcp

import (
	"os"
	"testing"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/segment"
	"gogcl.dev/transport/transporttest"
)

// childEnv has the test binary be a replica of a test with processes: child.
const childEnv = "GOGCL_TCP_TEST_CHILD"

var child func()

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
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

// smallForm has rings that most messages of tests fill.
var smallForm = segment.Form{Bytes: 96 << 20, Ring: 16 << 10, Pages: 32 << 20}

func TestConformance(t *testing.T) {
	for _, network := range Networks()[1:] {
		t.Run("network="+string(network), func(t *testing.T) {
			transporttest.Run(t, func(t testing.TB, n int) []transport.Endpoint {
				return open(t, n, Config{Network: network})
			}, transporttest.Buffers, transporttest.NoAlloc, transporttest.Brief)
		})
	}
}
