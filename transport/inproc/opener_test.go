package inproc_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/meeting"
	"gogcl.dev/transport/transporttest"
)

// faultVariable names what is wrong with an opener, for TestOpenerFaults.
const faultVariable = "OPENER_FAULT"

// TestPeerMemoryOpener: the suite lays open only what lies in pages that the endpoint has opened. Sends are buffered.
func TestPeerMemoryOpener(t *testing.T) {
	features := transporttest.NoAlloc | transporttest.Buffers
	fault := os.Getenv(faultVariable)
	if fault == "sends end late" {
		features = transporttest.NoAlloc
	}
	transporttest.RunPeerMemory(t, func(t testing.TB, n int) []transport.Endpoint {
		eps := open(t, n)
		for i, e := range eps {
			eps[i] = &opener{memory: e.(memory), pages: &pages{open: map[*byte]int{}}, fault: fault}
		}
		return eps
	}, again(features)...)
}

// TestOpenerFaults: the suite sees what may be wrong with an opener, each fault in the test that is about it.
func TestOpenerFaults(t *testing.T) {
	if os.Getenv(faultVariable) != "" {
		t.Skip("this process has a fault")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ fault, test string }{
		{"hides alone", "NotShared"},
		{"touches all the same", "NotShared"},
		{"aborts", "NotShared"},
		{"remembers", "NotShared"},
		{"scratch is not looked at", "NotShared"},
		{"lists begin well", "NotShared"},
		{"begins are not looked at", "NotShared/memory=begins_outside"},
		{"ends are not looked at", "NotShared/memory=ends_outside"},
		{"shuts nothing", "NotShared/memory=shut"},
		{"shuts nothing", "OpenedAnew"},
		{"no zeros", "OpenedAnew"},
		{"no bytes are hidden", "NoBytes"},
		{"pages of a lane", "OpenOnLanes"},
		{"opens when closed", "OpenAfterClose"},
		{"sends end late", "Elsewhere"},
	} {
		t.Run(x.fault+"/"+x.test, func(t *testing.T) {
			const test = "TestPeerMemoryOpener"
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+test+"$/^(Offered|"+
				strings.Replace(x.test, "/", ")$/^(", 1)+")$", "-test.timeout=1m")
			cmd.Env = append(os.Environ(), faultVariable+"="+x.fault)
			output, _ := cmd.CombinedOutput()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 ||
				!bytes.Contains(output, []byte("--- FAIL: "+test+"/"+x.test)) {
				t.Errorf("%s passes:\n%s", x.test, output)
			}
		})
	}
}

// opener is an endpoint of which the others reach open pages, and no other memory. The members tell each other by a
// Gather before each Share. A batch of sends alone is taken into memory of the endpoint, and sent with the next call.
type opener struct {
	memory
	pages  *pages // of the replica
	fault  string // what is wrong with it, or nothing
	flag   [1]byte
	sends  []transport.Transfer // to be sent, in the call
	call   transport.Call
	closed atomic.Bool
}

// pages are the open ones of a replica: how many bytes there are from where on.
type pages struct {
	mu   sync.Mutex // guards open
	open map[*byte]int
}

// OpenPages implements transport.Opener.
func (o *opener) OpenPages(pages []byte) error {
	page := os.Getpagesize()
	if o.closed.Load() && o.fault != "opens when closed" {
		return errors.New("the endpoint is closed")
	}
	if len(pages) == 0 || len(pages)%page != 0 || uintptr(unsafe.Pointer(&pages[0]))%uintptr(page) != 0 {
		return errors.New("these are no pages")
	}
	o.pages.mu.Lock()
	defer o.pages.mu.Unlock()
	if o.pages.overlap(pages) {
		return errors.New("these are open")
	}
	if o.fault != "no zeros" {
		clear(pages)
	}
	o.pages.open[&pages[0]] = len(pages)
	return nil
}

// ShutPages implements transport.Opener.
func (o *opener) ShutPages(pages []byte) {
	clear(pages)
	if o.fault == "shuts nothing" {
		return
	}
	o.pages.mu.Lock()
	defer o.pages.mu.Unlock()
	delete(o.pages.open, &pages[0])
}

// overlap reports whether some of these are open. The caller holds p.mu.
func (p *pages) overlap(b []byte) bool {
	from := uintptr(unsafe.Pointer(&b[0]))
	for first, n := range p.open {
		if at := uintptr(unsafe.Pointer(first)); from < at+uintptr(n) && at < from+uintptr(len(b)) {
			return true
		}
	}
	return false
}

// reached reports whether the others reach a buffer.
func (o *opener) reached(b []byte) bool {
	if len(b) == 0 {
		return o.fault != "no bytes are hidden" || b == nil
	}
	p := o.pages
	p.mu.Lock()
	defer p.mu.Unlock()
	from := uintptr(unsafe.Pointer(&b[0]))
	for first, n := range p.open {
		at := uintptr(unsafe.Pointer(first))
		begins := from-at < uintptr(n) || o.fault == "begins are not looked at"
		ends := from-at+uintptr(len(b))-1 < uintptr(n) || o.fault == "ends are not looked at"
		if begins && ends {
			return true
		}
	}
	return false
}

// hidden reports whether some buffer is out of the others' reach.
func (o *opener) hidden(m *transport.Memory) bool {
	hides := func(bufs [][]byte) bool {
		if o.fault == "lists begin well" {
			bufs = bufs[:min(1, len(bufs))]
		}
		return slices.ContainsFunc(bufs, func(b []byte) bool { return !o.reached(b) })
	}
	one := [...][]byte{m.In, m.Out, m.Scratch}
	return hides(one[:1]) || hides(one[1:2]) || hides(one[2:]) && o.fault != "scratch is not looked at" ||
		hides(m.Ins) || hides(m.Outs)
}

// Share implements transport.PeerMemory.
func (o *opener) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory, rounds []int,
	w transport.Worker) error {
	if err := meeting.CheckRounds(members, rounds, w); err != nil {
		return err
	}
	if err := o.flush(ctx); err != nil {
		return err
	}
	o.flag[0] = 0
	if o.hidden(&mine) {
		o.flag[0] = 1
	}
	all, _, err := o.memory.Gather(ctx, call, members, o.flag[:], 1, nil)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(hidden []byte) bool { return hidden[0] == 1 }) {
		return o.memory.Share(ctx, call, members, mine, rounds, w)
	}
	switch o.fault {
	case "hides alone":
		if o.flag[0] == 0 {
			return nil
		}
	case "touches all the same":
		if err := o.memory.Share(ctx, call, members, mine, rounds, w); err != nil {
			return err
		}
	case "aborts":
		o.Abort(transport.ErrNotShared)
	case "remembers":
		o.call = call
	}
	return transport.ErrNotShared
}

// flush sends what was taken before.
func (o *opener) flush(ctx context.Context) error {
	batch := o.sends
	if o.sends = nil; batch == nil {
		return nil
	}
	return o.memory.Exchange(ctx, o.call, batch)
}

// Exchange implements transport.Endpoint.
func (o *opener) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	if err := o.flush(ctx); err != nil {
		return err
	}
	if o.fault == "remembers" && o.call.Seq == call.Seq && o.call != call {
		return &transport.MismatchError{Mine: call, Theirs: o.call}
	}
	receives := func(x transport.Transfer) bool { return x.Kind != transport.Send }
	if len(batch) == 0 || slices.ContainsFunc(batch, receives) || o.Err() != nil {
		return o.memory.Exchange(ctx, call, batch)
	}
	o.call = call
	for _, x := range batch {
		x.Buf = bytes.Clone(x.Buf)
		o.sends = append(o.sends, x)
	}
	return nil
}

// Gather implements transport.Boards.
func (o *opener) Gather(ctx context.Context, call transport.Call, members []int, mine []byte, size int,
	c transport.Combiner) ([][]byte, []byte, error) {
	if err := o.flush(ctx); err != nil {
		return nil, nil, err
	}
	return o.memory.Gather(ctx, call, members, mine, size, c)
}

// Broadcast implements transport.Boards.
func (o *opener) Broadcast(ctx context.Context, call transport.Call, members []int, root int, buf []byte) error {
	if err := o.flush(ctx); err != nil {
		return err
	}
	return o.memory.Broadcast(ctx, call, members, root, buf)
}

// Dup implements transport.Endpoint.
func (o *opener) Dup(ctx context.Context) (transport.Endpoint, error) {
	d, err := o.memory.Dup(ctx)
	if err != nil {
		return nil, err
	}
	p := o.pages
	if o.fault == "pages of a lane" {
		p = &pages{open: map[*byte]int{}}
	}
	return &opener{memory: d.(memory), pages: p, fault: o.fault}, nil
}

// Close implements transport.Endpoint.
func (o *opener) Close() error {
	o.closed.Store(true)
	return o.memory.Close()
}
