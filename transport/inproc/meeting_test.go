package inproc_test

import (
	"runtime"
	"testing"
	"unsafe"

	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/transporttest"
)

// Every replica has a processor, or is led to believe so: all look at all the others' seats, and nobody combines for
// others.
func TestPeerMemoryRoomy(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	transporttest.RunPeerMemory(t, func(t testing.TB, n int) []transport.Endpoint {
		return plainly(t)(inproc.NewRoomy(n))
	}, transporttest.NoAlloc, transporttest.NamesDeadlocks, transporttest.KeepsCauses)
}

// Nobody has: the last to arrive looks for all.
func TestPeerMemoryCrowded(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	transporttest.RunPeerMemory(t, open, transporttest.NoAlloc, transporttest.NamesDeadlocks, transporttest.KeepsCauses)
}

// A notice fills a cache line and starts at one, and no two members' views share one.
func TestSeatLayout(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("laid out for 64 bits")
	}
	notice, seat, visit := inproc.MeetingSizes()
	if notice != 64 || seat%64 != 0 || seat > 512 || visit%64 != 0 {
		t.Errorf("a notice has %d bytes, a seat %d, a visit %d", notice, seat, visit)
	}
	for range 100 {
		if at := inproc.NewSeat(); at%64 != 0 {
			t.Fatalf("a seat at %#x", at)
		}
	}
}
