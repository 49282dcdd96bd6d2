package tcp

import (
	"testing"

	"gogcl.dev/internal/leaktest"
)

// TestConnectAllFails has replica 0 refuse its configuration. The others, which wait for it to dial, end with it, and
// the error is its own.
func TestConnectAllFails(t *testing.T) {
	leaktest.Check(t)
	listeners, addresses, err := listenAll(Config{Size: 3})
	if err != nil {
		t.Fatal(err)
	}
	listeners[0].config.Size = 4
	ends, err := connectAll(listeners, addresses)
	if want := "tcp: 3 addresses of 4 replicas"; ends != nil || err == nil || err.Error() != want {
		t.Errorf("endpoints %v, error %v, want %s", ends, err, want)
	}
}
