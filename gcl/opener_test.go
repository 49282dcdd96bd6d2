package gcl_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// opener is an endpoint of package inproc to which pages are opened. It counts, and refuses if err is not nil.
type opener struct {
	near
	err error

	mu   sync.Mutex      // guards what follows
	open map[uintptr]int // bytes by address
	shut int
	bad  string // what was wrong with a call
}

func (o *opener) OpenPages(pages []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := uintptr(unsafe.Pointer(unsafe.SliceData(pages)))
	page := os.Getpagesize()
	switch _, open := o.open[at]; {
	case len(pages) == 0 || len(pages)%page != 0 || at%uintptr(page) != 0 || cap(pages) < len(pages):
		o.bad = "not whole pages"
	case open:
		o.bad = "opened twice: the memory was used again before it was shut"
	case o.err != nil:
		return o.err
	}
	o.open[at] = len(pages)
	return nil
}

func (o *opener) ShutPages(pages []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := uintptr(unsafe.Pointer(unsafe.SliceData(pages)))
	if o.open[at] != len(pages) || len(pages) == 0 {
		o.bad = "shut what was not opened"
	}
	delete(o.open, at)
	o.shut++
	clear(pages) // as ordinary memory is from then on
}

// state is how many blocks are open and have been shut.
func (o *opener) state(t testing.TB) (open, shut int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bad != "" {
		t.Error(o.bad)
		o.bad = ""
	}
	return len(o.open), o.shut
}

// collect collects until no more than so many blocks are open, or many times.
func (o *opener) collect(t testing.TB, want int) (open int) {
	t.Helper()
	for range 200 {
		runtime.GC()
		runtime.Gosched() // finalizers run on a goroutine of their own
		if open, _ = o.state(t); open <= want {
			break
		}
	}
	return open
}

// withOpener makes an endpoint of a replica without others.
func withOpener(t testing.TB, err error) (*opener, gcl.CommOption) {
	t.Helper()
	ends, failed := inproc.New(1)
	if failed != nil {
		t.Fatal(failed)
	}
	o := &opener{near: ends[0].(near), err: err, open: map[uintptr]int{}}
	return o, gcl.WithEndpoints([]transport.Endpoint{o})
}

// TestAllocOpensPages: what Alloc returns is opened, of a Dup by the first connection too. It is shut when the program
// and the connection have let it go: not by Free alone.
func TestAllocOpensPages(t *testing.T) {
	o, with := withOpener(t, nil)
	var kept []int32
	replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		for i, n := range []int{0, 1, 1023, 1024, 1025, 300_000, hugePage/4 - 1, hugePage / 4, hugePage} {
			from := c
			if i%2 == 1 {
				from = dup
			}
			s, err := gcl.Alloc[int32](from, n)
			if err != nil {
				return err
			}
			if open, _ := o.state(t); open != 1 {
				t.Errorf("%d elements: %d blocks are open, want 1", n, open)
			}
			if runtime.GC(); o.collect(t, 1) != 1 {
				t.Errorf("%d elements: shut before Free", n)
			}
			if err := gcl.Free(from, s); err != nil {
				return err
			}
			if len(s) > 0 {
				if runtime.GC(); s[0] != 0 {
					t.Error("not zero")
				}
				if open, _ := o.state(t); open != 1 {
					t.Errorf("%d elements: shut while the program has them", n)
				}
			}
			runtime.KeepAlive(s)
			s = nil
			if open := o.collect(t, 0); open != 0 {
				t.Errorf("%d elements: %d blocks are open after Free", n, open)
			}
		}
		kept, err = gcl.Alloc[int32](c, 5000)
		return errors.Join(err, dup.Close())
	}, with)
	kept[0], kept[4999] = 1, 2
	runtime.GC()
	if open := o.collect(t, 1); open != 1 || kept[0] != 1 || kept[4999] != 2 {
		t.Errorf("after Close %d blocks are open, want 1 with what it held", open)
	}
	kept = nil
	if open := o.collect(t, 0); open != 0 {
		t.Error("not shut after Close")
	}
}

// TestAllocWithoutOpener: memory that cannot be opened, or is not to be, is ordinary.
func TestAllocWithoutOpener(t *testing.T) {
	for name, x := range map[string]struct {
		err     error
		options gcl.Options
	}{"full": {errors.New("full"), gcl.Options{}}, "an option": {nil, gcl.Options{PrivateAlloc: true}}} {
		t.Run(name, func(t *testing.T) {
			o, with := withOpener(t, x.err)
			replicas(t, 1, func(_ context.Context, c *gcl.Comm) error {
				c = withOptions(c, x.options)
				for _, n := range []int{1, hugePage} {
					s, err := gcl.Alloc[byte](c, n)
					if err != nil {
						return err
					}
					if len(s) != n || slices.ContainsFunc(s, func(b byte) bool { return b != 0 }) {
						t.Errorf("%d bytes are not %d zeros", len(s), n)
					}
					if err := gcl.Free(c, s); err != nil {
						return err
					}
				}
				runtime.GC()
				o.collect(t, 0)
				if open, shut := o.state(t); open != 0 || shut != 0 {
					t.Errorf("%d blocks are open, %d were shut", open, shut)
				}
				return nil
			}, with)
		})
	}
}

// TestOpenedMemoryBeforeRules: a rule for messages takes a call from one pass over memory that is shared whatever it
// is, and not over memory that is shared if it is opened.
func TestOpenedMemoryBeforeRules(t *testing.T) {
	rules, err := methods.ParseRules([]byte("all-reduce 2 0 clockwise_ring/Syncless\n"))
	if err != nil {
		t.Fatal(err)
	}
	for opened, want := range map[bool]gcl.Path{false: gcl.PathMessages, true: gcl.PathMemory} {
		ends, err := inproc.New(2)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range ends {
			if opened {
				ends[i] = &opener{near: e.(near), open: map[uintptr]int{}}
			}
		}
		replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			path := gcl.PathUnknown
			c, err := c.With(gcl.Options{Tuning: rules, Trace: &gcl.Trace{
				MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) { path = c.Path }}})
			if err != nil {
				return err
			}
			data := make([]float32, 64<<10)
			if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil {
				return err
			}
			if path != want {
				t.Errorf("opened: %v: %v, want %v", opened, path, want)
			}
			return nil
		}, gcl.WithEndpoints(ends))
	}
}
