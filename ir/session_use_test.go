package ir_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// gate is an operation that says when it runs, and then waits for the test or for the end of the run.
type gate struct {
	entered, open chan struct{}
	left          *atomic.Bool // the end of a run has been seen
}

func (gate) Name() string                       { return "gate" }
func (gate) Infer([]ir.Spec) ([]ir.Spec, error) { return nil, nil }
func (o gate) Bind(m *ir.Memory) (func() error, error) {
	return func() error {
		o.entered <- struct{}{}
		select {
		case <-o.open:
			return nil
		case <-m.Context().Done():
			for range 1000 {
				runtime.Gosched()
			}
			o.left.Store(true)
			return context.Cause(m.Context())
		}
	}, nil
}

// gated is a session that adds 1 to a variable and then waits in a gate.
func gated(t *testing.T) (*ir.Session, *ir.Variable, gate) {
	t.Helper()
	p := ir.New(1)
	w := p.Variable(f32s(t, []float32{1}, 1), ir.VariableName("w"))
	o := gate{make(chan struct{}), make(chan struct{}), new(atomic.Bool)}
	p.Main().InSequence(func() {
		addTo(w.Tensor, w.Tensor)
		ir.Apply(o, p.Main())
	})
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, w, o
}

// TestSessionInUse: while a run is in progress the other methods return an error, and the run is none the worse.
func TestSessionInUse(t *testing.T) {
	s, w, o := gated(t)
	profile(t, s, true)
	if err := s.Enter(); err != nil {
		t.Fatal(err)
	}
	first := make(chan error)
	go func() { first <- s.RunTo(t.Context(), nil, nil) }()
	<-o.entered
	var all sync.WaitGroup
	for name, call := range map[string]func() error{
		"Run":    func() error { _, err := s.Run(t.Context(), nil); return err },
		"RunTo":  func() error { return s.RunTo(t.Context(), nil, nil) },
		"Enter":  s.Enter,
		"Exit":   s.Exit,
		"Within": func() error { return s.Within(func() error { return nil }) },
		"Read":   func() error { _, err := s.Read(w); return err },
		"Write":  func() error { return s.Write(w, f32s(t, []float32{7}, 1)) },

		"CheckFinite":  func() error { return s.CheckFinite(true) },
		"SetProfiling": func() error { return s.SetProfiling(true) },
	} {
		all.Go(func() {
			if err := call(); err == nil ||
				!strings.Contains(err.Error(), "another call of the session is in progress") {
				t.Errorf("%s beside a run: %v", name, err)
			}
		})
	}
	all.Go(func() {
		if got := s.Profile(); got.Runs != 0 || got.Replicas != nil {
			t.Errorf("the profile beside a run is %v", got)
		}
	})
	all.Wait()
	close(o.open)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if got := s.Profile(); got.Runs != 1 || len(got.Replicas) != 1 {
		t.Errorf("the profile after the run is %v", got)
	}
	got, err := s.Read(w)
	if err != nil || !got.Equal(f32s(t, []float32{2}, 1)) {
		t.Errorf("after the run w is %v, %v", got, err)
	}
	if err := s.Exit(); err != nil {
		t.Error(err)
	}
}

// TestSessionsOfManyGoroutines: of runs that begin at any time each is done or refused.
func TestSessionsOfManyGoroutines(t *testing.T) {
	p := ir.New(2)
	w := p.Variable(f32s(t, []float32{0}, 1))
	addTo(w.Tensor, p.Main().Constant(f32s(t, []float32{1}, 1)))
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all sync.WaitGroup
	var mu sync.Mutex
	done := float32(0)
	for range 4 {
		all.Go(func() {
			for range 200 {
				if err := s.RunTo(t.Context(), nil, nil); err == nil {
					mu.Lock()
					done++
					mu.Unlock()
				} else if !strings.Contains(err.Error(), "in progress") {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, err := s.Read(w); err != nil || !got.Equal(f32s(t, []float32{done}, 1)) {
		t.Errorf("after %v runs w is %v, %v", done, got, err)
	}
}

// TestCloseDuringRun: the run ends with an error, the host keeps the variables as they were, and Close returns then.
func TestCloseDuringRun(t *testing.T) {
	s, _, o := gated(t)
	first := make(chan error, 1)
	go func() { first <- s.RunTo(t.Context(), nil, nil) }()
	<-o.entered
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !o.left.Load() {
		t.Error("Close has returned, and the run is still in an operation")
	}
	err := <-first
	if err == nil || !strings.Contains(err.Error(), "gate built at session_use_test.go:") ||
		!strings.Contains(err.Error(), "the session is closed") {
		t.Errorf("the run returns %v", err)
	}
	if err := s.RunTo(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "the session is closed") {
		t.Errorf("a run after: %v", err)
	}
	if err := s.SetProfiling(true); err == nil || !strings.Contains(err.Error(), "the session is closed") {
		t.Errorf("SetProfiling after: %v", err)
	}
}

// TestCloseWaits: after Close no goroutine of the session is there, which would keep its memory.
func TestCloseWaits(t *testing.T) {
	serving := func() int {
		stacks := make([]byte, 1<<22)
		all := string(stacks[:runtime.Stack(stacks, true)])
		return strings.Count(all, "ir.(*replica).serve(") + strings.Count(all, "ir.(*companion).serve(")
	}
	before := serving() // of other tests' sessions
	p := ir.New(64)
	started := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{number(g, 1)} })
	p.Main().Start(started).Wait()
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RunTo(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if n := serving() - before; n != 2*64 {
		t.Errorf("%d goroutines serve the session, want 128", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := serving() - before; n > 0 {
		t.Errorf("%d goroutines serve the session after Close", n)
	}
}

// TestBuiltAfterSession: what a session does not have is an error of its runs, with its line.
func TestBuiltAfterSession(t *testing.T) {
	p := ir.New(1)
	in, out := p.HostToDevice("in", f32(2)), p.DeviceToHost("out", f32(2))
	x := p.Main().HostLoad(in)
	p.Main().HostStore(out, x)
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	feed := map[*ir.Stream]*tensor.Tensor{in: f32s(t, []float32{1, 2}, 2)}
	if _, err := s.Run(t.Context(), feed); err != nil {
		t.Fatal(err)
	}
	p.Main().HostStore(out, ops.Add(x, x))
	_, err = s.Run(t.Context(), feed)
	var built *ir.BuildError
	if !errors.As(err, &built) || built.Op != "add" || !strings.Contains(err.Error(), "session_use_test.go:") {
		t.Errorf("a run after something was built: %v", err)
	}
	if err := s.Enter(); !errors.As(err, &built) {
		t.Errorf("Enter after something was built: %v", err)
	}
}

// TestTransfersOfLoops: loops in loops that move more tensors than the host can have are an error when the session is
// made.
func TestTransfersOfLoops(t *testing.T) {
	const half = 1 << (strconv.IntSize / 2)
	for _, turns := range [][2]int{{half, half}, {math.MaxInt, math.MaxInt}, {2, math.MaxInt}, {math.MaxInt, 2},
		{math.MaxInt, 1}, {1, math.MaxInt}} {
		p := ir.New(2)
		in := p.HostToDevice("in", f32(2))
		body := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
			g.HostLoad(in)
			return nil
		})
		outer := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
			g.Repeat(body, turns[1])
			return nil
		})
		p.Main().Repeat(outer, turns[0])
		s, err := ir.NewSession(p)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), `ir: repeat at session_use_test.go:`) ||
			!strings.Contains(err.Error(), `host to device "in" moves more than`) {
			t.Errorf("%d turns of %d: %v", turns[0], turns[1], err)
		}
	}
}
