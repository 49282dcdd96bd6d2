package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

const hugePage = 2 << 20

// alone runs body on a replica without others.
func alone(t testing.TB, body func(context.Context, *gcl.Comm) error) { replicas(t, 1, body) }

func TestAlloc(t *testing.T) {
	alone(t, func(_ context.Context, c *gcl.Comm) error {
		return errors.Join(checkAlloc[bool](c), checkAlloc[int8](c), checkAlloc[tensor.BFloat16](c),
			checkAlloc[float32](c), checkAlloc[uint64](c))
	})
}

// checkAlloc looks at length, place and content of memory, and at whether pieces are apart.
func checkAlloc[T tensor.Element](c *gcl.Comm) error {
	size := tensor.DTypeOf[T]().Size()
	small, huge := os.Getpagesize()/size, hugePage/size
	var zero T
	var blocks [][]byte
	for _, n := range []int{0, 1, 7, small - 1, small, small + 1, huge - 1, huge, huge + 1, 3*huge - 1} {
		s, err := gcl.Alloc[T](c, n)
		if err != nil {
			return err
		}
		if s == nil || len(s) != n || cap(s) != n {
			return fmt.Errorf("%T: length %d, capacity %d, want %d", s, len(s), cap(s), n)
		}
		align := os.Getpagesize()
		if n >= huge {
			align = hugePage
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(s))); at%uintptr(align) != 0 {
			return fmt.Errorf("%T: %d elements at %#x, want a multiple of %d", s, n, at, align)
		}
		if i := slices.IndexFunc(s, func(v T) bool { return v != zero }); i >= 0 {
			return fmt.Errorf("%T: element %d of %d is not zero", s, i, n)
		}
		b := tensor.Bytes(s)
		for i := range b {
			b[i] = byte(len(blocks))
		}
		blocks = append(blocks, b)
		if n%2 == 0 {
			if err := gcl.Free(c, s); err != nil { // and the memory remains the caller's
				return err
			}
		}
	}
	runtime.GC()
	for i, b := range blocks {
		if j := slices.IndexFunc(b, func(v byte) bool { return v != byte(i) }); j >= 0 {
			return fmt.Errorf("byte %d of block %d has been overwritten", j, i)
		}
	}
	return nil
}

func TestAllocErrors(t *testing.T) {
	alone(t, func(_ context.Context, c *gcl.Comm) error {
		counts := []int{-1, math.MinInt, math.MaxInt, math.MaxInt / 8}
		if strconv.IntSize == 64 { // what a machine of 32 bits may have
			counts = append(counts, math.MaxInt/8-2*hugePage, math.MaxInt/16)
		}
		for _, n := range counts {
			want := fmt.Sprintf("gcl: alloc: %d elements of 8 bytes, want ", n)
			if n < 0 {
				want = fmt.Sprintf("gcl: alloc: %d elements", n)
			}
			if s, err := gcl.Alloc[float64](c, n); err == nil || !strings.HasPrefix(err.Error(), want) || s != nil {
				return fmt.Errorf("%d elements: %d, error %v, want %s", n, len(s), err, want)
			}
		}
		if strconv.IntSize == 64 {
			_, err := gcl.Alloc[float64](c, math.MaxInt&(1<<41))
			const want = "gcl: alloc: 2199023255552 elements of 8 bytes, want 2199022731264 at most: 17592186044416 " +
				"bytes with room to begin with a page"
			if err == nil || err.Error() != want {
				return fmt.Errorf("error %v, want %s", err, want)
			}
		}
		if _, err := gcl.Alloc[int8](nil, 1); err == nil {
			return errors.New("nil Comm: no error")
		}
		return nil
	})
}

func TestFree(t *testing.T) {
	notOurs := func(what string, err error) error {
		if err == nil || !strings.Contains(err.Error(), "not from Alloc") {
			return fmt.Errorf("%s: error %v, want one that the slice is not from Alloc", what, err)
		}
		return nil
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		s, err := gcl.Alloc[int32](c, 100)
		if err != nil {
			return err
		}
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		empty, err := gcl.Alloc[int32](dup, 0)
		if err != nil {
			return err
		}
		return errors.Join(
			notOurs("made", gcl.Free(c, make([]int32, 100))),
			notOurs("nil", gcl.Free[int32](c, nil)),
			notOurs("a part", gcl.Free(c, s[1:])),
			gcl.Free(dup, s[:10]), // begins where s does
			notOurs("freed already", gcl.Free(c, s)),
			gcl.Free(c, empty),
			notOurs("freed already, empty", gcl.Free(dup, empty)),
			dup.Close(),
		)
	})
	alone(t, func(_ context.Context, c *gcl.Comm) error {
		s, err := gcl.Alloc[int32](c, 1)
		if err != nil {
			return err
		}
		alone(t, func(_ context.Context, other *gcl.Comm) error {
			return notOurs("another connection's", gcl.Free(other, s))
		})
		if gcl.Free[int32](nil, s) == nil {
			return errors.New("nil Comm: no error")
		}
		return gcl.Free(c, s)
	})
}

// Memory stays good, and its bytes what they were, after Close, which forgets it.
func TestAllocAfterClose(t *testing.T) {
	var kept *gcl.Comm
	var s []int32
	alone(t, func(_ context.Context, c *gcl.Comm) (err error) {
		kept = c
		s, err = gcl.Alloc[int32](c, hugePage)
		s[0], s[hugePage-1] = 1, 2
		return err
	})
	runtime.GC()
	if s[0] != 1 || s[hugePage-1] != 2 {
		t.Error("the memory has changed")
	}
	s[1] = 3
	if err := gcl.Free(kept, s); !errors.Is(err, gcl.ErrClosed) {
		t.Errorf("Free after Close: %v, want ErrClosed", err)
	}
	if _, err := gcl.Alloc[int32](kept, 1); !errors.Is(err, gcl.ErrClosed) {
		t.Errorf("Alloc after Close: %v, want ErrClosed", err)
	}
}

// The connection keeps memory until Free or Close, and no longer: what hangs on the memory is finalized then.
func TestAllocIsCollected(t *testing.T) {
	collected := func(c *gcl.Comm, let func([]byte) error) bool {
		gone := make(chan struct{})
		func() {
			s, err := gcl.Alloc[byte](c, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			runtime.AddCleanup(unsafe.SliceData(s), func(gone chan struct{}) { close(gone) }, gone)
			if err := let(s); err != nil {
				t.Fatal(err)
			}
		}()
		for range 5 {
			runtime.GC()
			runtime.Gosched()
		}
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}
	alone(t, func(_ context.Context, c *gcl.Comm) error {
		if collected(c, func([]byte) error { return nil }) {
			t.Error("collected before Free")
		}
		// A cleanup runs on a goroutine of its own: it may take a moment.
		if !slices.ContainsFunc(make([]bool, 20), func(bool) bool {
			return collected(c, func(s []byte) error { return gcl.Free(c, s) })
		}) {
			t.Error("not collected after Free")
		}
		return nil
	})
}

// Any number of goroutines may allocate and free at once.
func TestAllocByMany(t *testing.T) {
	alone(t, func(_ context.Context, c *gcl.Comm) error {
		var all sync.WaitGroup
		for g := range 4 {
			all.Go(func() {
				for i := range 50 {
					s, err := gcl.Alloc[int16](c, 100*g+i)
					if err == nil {
						err = gcl.Free(c, s)
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		return nil
	})
}

// memories are where the data of BenchmarkAlloc lies. Go's heap keeps pages as they are: compare in processes of their
// own, with -bench 'Alloc/.*/memory=make' and
// -bench 'Alloc/.*/memory=alloc'.
var memories = []struct {
	name string
	get  func(c *gcl.Comm, n int) ([]float32, error)
}{
	{"make", func(_ *gcl.Comm, n int) ([]float32, error) { return make([]float32, n), nil }},
	{"alloc", func(c *gcl.Comm, n int) ([]float32, error) { return gcl.Alloc[float32](c, n) }},
}

// BenchmarkAlloc compares memory in huge pages with what make gives: an all-reduce of 64 MiB in place between two
// replicas, and getting the memory and touching it.
func BenchmarkAlloc(b *testing.B) {
	const bytes = 64 << 20
	for _, memory := range memories {
		for _, i := range []gcl.Implementation{gcl.Syncful, gcl.Syncless} {
			b.Run(fmt.Sprintf("do=allreduce-%v/memory=%s/n=2/size=64MiB", i, memory.name), func(b *testing.B) {
				b.SetBytes(bytes)
				replicas(b, 2, func(ctx context.Context, c *gcl.Comm) error {
					data, err := memory.get(c, bytes/4)
					if err != nil {
						return err
					}
					return reduceAgain(ctx, withOptions(c, gcl.Options{Implementation: i}), data, b)
				})
			})
		}
		b.Run("do=touch/memory="+memory.name+"/size=64MiB", func(b *testing.B) {
			b.SetBytes(bytes)
			alone(b, func(_ context.Context, c *gcl.Comm) error {
				for b.Loop() {
					data, err := memory.get(c, bytes/4)
					if err != nil {
						return err
					}
					for i := 0; i < len(data); i += 1 << 10 {
						data[i] = 1
					}
					if memory.name == "make" {
						continue
					}
					if err := gcl.Free(c, data); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// reduceAgain is one all-reduce to warm up and b.N more.
func reduceAgain(ctx context.Context, c *gcl.Comm, data []float32, b *testing.B) error {
	for i := range data {
		data[i] = 0
	}
	for i := range b.N + 1 {
		if i == 1 && c.Rank() == 0 {
			b.ResetTimer()
		}
		if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil {
			return err
		}
	}
	if c.Rank() == 0 {
		b.StopTimer()
	}
	return nil
}
