//go:build amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64

package segment_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"gogcl.dev/gcl"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/internal/segment"
)

// near is what an endpoint of package inproc offers.
type near interface {
	transport.PeerMemory
	transport.Boards
}

// opener is an endpoint of package inproc with a segment, as another process maps it too.
type opener struct {
	near
	own  *segment.Segment
	peer *segment.Peer
}

func (o *opener) OpenPages(pages []byte) error { return o.own.OpenPages(pages) }
func (o *opener) ShutPages(pages []byte)       { o.own.ShutPages(pages) }

// theirs are the bytes of s where another process has them; nil if s is not open.
func (o *opener) theirs(s []float32) []byte {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 4*len(s))
	if at, ok := o.own.Offset(b); ok {
		there, _ := o.peer.Bytes(at, uint64(len(b)))
		return there
	}
	return nil
}

// replicas runs body on n replicas, each of which has a segment.
func replicas(t *testing.T, n int, body func(context.Context, *gcl.Comm, *opener) error) {
	t.Helper()
	form := segment.Form{Bytes: 260 << 20, Ring: 16 << 10, Pages: 256 << 20}
	ends, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*opener, n)
	for i := range ends {
		s, err := segment.Make(i, form)
		if err != nil {
			t.Fatal(err)
		}
		p, err := segment.Open(s.FD(), i, form)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = &opener{near: ends[i].(near), own: s, peer: p}
		ends[i] = all[i]
	}
	err = gcl.Run(t.Context(), n, func(ctx context.Context, c *gcl.Comm) error {
		return body(ctx, c, all[c.Rank()])
	}, gcl.WithEndpoints(ends))
	for _, o := range all { // before what Alloc gave out is collected
		err = errors.Join(err, o.own.Close(), o.peer.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// of is what element i of a buffer holds that rank 0 of two has filled, after an all-reduce.
func of(i int) float32 { return float32(2*(i%100) + 1) }

// round gets memory, checks that it is zeros and another process's too, and all-reduces in it.
func round(ctx context.Context, c *gcl.Comm, o *opener, size int) ([]float32, error) {
	a, err := gcl.Alloc[float32](c, size)
	if err != nil {
		return nil, err
	}
	for i := range a {
		if a[i] != 0 {
			return nil, fmt.Errorf("element %d of %d is %v, want 0", i, size, a[i])
		}
		a[i] = float32(i%100 + c.Rank())
	}
	there := o.theirs(a)
	if there == nil {
		return nil, fmt.Errorf("%d elements are not open", size)
	}
	if there := unsafe.Slice((*float32)(unsafe.Pointer(&there[0])), size); there[size-1] != a[size-1] {
		return nil, fmt.Errorf("another process has %v, want %v", there[size-1], a[size-1])
	}
	return a, errors.Join(gcl.AllReduceInPlace(ctx, c, a, gcl.Add), check(a))
}

// check looks at what a buffer of round holds.
func check(a []float32) error {
	for i := range a {
		if a[i] != of(i) {
			return fmt.Errorf("element %d of %d is %v, want %v", i, len(a), a[i], of(i))
		}
	}
	return nil
}

// TestAlloc has memory come and go beside other memory of the heap, while the collector runs and memory goes back to
// the system: what is kept stays as it is, and what is new is zeros. Under a limit that the heap touches too.
func TestAlloc(t *testing.T) {
	for _, limit := range []int64{0, 64 << 20} {
		t.Run(fmt.Sprintf("limit=%d", limit), func(t *testing.T) {
			if limit > 0 {
				defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
			}
			rounds := 40
			if testing.Short() {
				rounds = 10
			}
			replicas(t, 2, func(ctx context.Context, c *gcl.Comm, o *opener) error {
				var kept [][]float32
				for k := range rounds {
					for _, size := range []int{10, 5000, 100_000, 800_000} {
						a, err := round(ctx, c, o, size)
						if err == nil && k%3 > 0 { // else the connection keeps it until the end
							err = gcl.Free(c, a)
						}
						if err != nil {
							return fmt.Errorf("round %d: %w", k, err)
						}
						if k%7 == 1 {
							kept = append(kept, a)
						}
					}
					garbage := make([]byte, 1<<20) // which the collector hands out again
					for i := range garbage {
						garbage[i] = 7
					}
					runtime.GC()
					if k%5 == 0 {
						debug.FreeOSMemory()
					}
					for _, a := range kept {
						if err := check(a); err != nil {
							return fmt.Errorf("round %d: kept: %w", k, err)
						}
					}
				}
				return nil
			})
		})
	}
	for range 5 { // what is left is shut after its segment was closed
		runtime.GC()
	}
}

// TestAllocChildren starts other programs, one after the other, while calls run on shared memory: neither sees the
// other. Between fork and exec a child has the same memory as its parent, which waits.
func TestAllocChildren(t *testing.T) {
	children := 40
	if testing.Short() {
		children = 10
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm, o *opener) error {
		a, err := round(ctx, c, o, 300_000)
		if err != nil {
			return err
		}
		there := o.theirs(a)
		done := make(chan error, 1)
		go func() {
			for range children {
				command := exec.Command(os.Args[0], "-test.run=^$")
				command.Env = append(os.Environ(), fmt.Sprintf("RANK=%d", c.Rank()))
				if out, err := command.CombinedOutput(); err != nil {
					done <- fmt.Errorf("%w: %s", err, out)
					return
				}
			}
			done <- nil
		}()
		over := []float32{0}
		for k := 0; over[0] == 0; k++ {
			for i := range a {
				a[i] = float32(k)
			}
			if err := c.Barrier(ctx); err != nil {
				return err
			}
			for _, i := range []int{0, 1000, len(a) - 1} {
				if got := *(*float32)(unsafe.Pointer(&there[4*i])); got != float32(k) {
					return fmt.Errorf("round %d: another process has %v", k, got)
				}
			}
			if err := gcl.AllReduceInPlace(ctx, c, a, gcl.Add); err != nil {
				return err
			}
			for i := range a {
				if a[i] != float32(2*k) {
					return fmt.Errorf("round %d: element %d is %v", k, i, a[i])
				}
			}
			// All go on until the children of all have ended.
			mine := float32(0)
			select {
			case err := <-done:
				if err != nil {
					return err
				}
				mine, done = 1, closedDone
			default:
			}
			over[0] = mine
			if err := gcl.AllReduceInPlace(ctx, c, over, gcl.Min); err != nil {
				return err
			}
		}
		return nil
	})
}

// closedDone gives no error, at any time.
var closedDone = func() chan error {
	c := make(chan error)
	close(c)
	return c
}()

// rssShmem is how many KiB of shared memory this process has mapped.
func rssShmem(t *testing.T) (kib int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "RssShmem:") {
			if _, err := fmt.Sscanf(line, "RssShmem: %d kB", &kib); err != nil {
				t.Fatal(line, err)
			}
		}
	}
	return kib
}

// TestAllocDropped: memory that the program drops after Free takes no shared memory for long, however often.
func TestAllocDropped(t *testing.T) {
	rounds := 10_000
	if testing.Short() {
		rounds = 1000
	}
	replicas(t, 1, func(_ context.Context, c *gcl.Comm, o *opener) error {
		before, most := rssShmem(t), 0
		for k := range rounds {
			a, err := gcl.Alloc[float32](c, 1000*(1+k%20))
			if err == nil {
				err = gcl.Free(c, a)
			}
			if err != nil {
				return err
			}
			if k%200 == 0 {
				runtime.GC()
				most = max(most, rssShmem(t))
			}
		}
		end := 0
		for range 100 {
			runtime.GC()
			runtime.Gosched()
			if end = rssShmem(t); end <= before+100 {
				break
			}
		}
		t.Logf("RssShmem is %d KiB before, at most %d, and %d at the end", before, most, end)
		if end > before+1000 {
			t.Errorf("RssShmem is %d KiB, before %d", end, before)
		}
		return nil
	})
}
