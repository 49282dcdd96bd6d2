package ir_test

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// heap is the bytes that are in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestHostCopies counts the copies of a variable on the host, and compares them with the heap: one of what it begins
// with, for all sessions, and one of each session that has exited after a run.
func TestHostCopies(t *testing.T) {
	const replicas, bytes = 2, 8 << 20
	for _, c := range []struct {
		options []ir.VariableOption
		first   []int // shape of what it begins with
		copies  int   // that Exit downloads
	}{
		{nil, []int{bytes / 4}, 1},
		{[]ir.VariableOption{ir.AllReplicas()}, []int{bytes / 4}, replicas},
		{[]ir.VariableOption{ir.VariableGroups(commgroup.Group{Type: commgroup.Consecutive, Size: 1})}, []int{replicas, bytes / 4}, replicas},
	} {
		p := ir.New(replicas)
		empty := heap()
		v := p.Variable(zeros(f32(c.first...)), c.options...)
		addTo(v.Tensor, p.Main().Constant(zeros(f32(bytes/4))))
		first := v.Spec().Bytes()
		for _, n := range c.first[:len(c.first)-1] {
			first *= n
		}
		var sessions []*ir.Session
		check := func(what string, s *ir.Session, host, downloaded int) {
			t.Helper()
			if got := s.Report().Host; got != host {
				t.Errorf("%v, %s: %d bytes on the host, want %d", c.first, what, got, host)
			}
			want := bytes + first + len(sessions)*replicas*bytes + downloaded // the constant first
			// other tests' garbage may go meanwhile
			if got := heap() - empty; got < want-bytes/4 || got > want+bytes/4 {
				t.Errorf("%v, %s: %d bytes of heap, want %d", c.first, what, got, want)
			}
			runtime.KeepAlive(p)
		}
		for range 2 { // the second begins with what the first began with
			s, err := ir.NewSession(p)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			before := len(sessions) * c.copies * bytes
			sessions = append(sessions, s)
			check("made", s, first, before)
			if err := s.Enter(); err != nil {
				t.Fatal(err)
			}
			if err := s.RunTo(context.Background(), nil, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Read(v); err != nil {
				t.Fatal(err)
			}
			check("entered", s, first, before)
			if err := s.Exit(); err != nil {
				t.Fatal(err)
			}
			check("exited", s, first+c.copies*bytes, before+c.copies*bytes)
		}
		runtime.KeepAlive(sessions)
	}
}

// TestHostKeeps has a second session begin with what the first began with, and a variable be what it was at Enter after
// a run that has failed, whatever was read since.
func TestHostKeeps(t *testing.T) {
	p := ir.New(2)
	in := p.HostToDevice("fails", ir.Spec{DType: tensor.Bool})
	v := p.Variable(tensor.Scalar(float32(5)))
	addTo(v.Tensor, number(p.Main(), 1))
	fails := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor { ir.Apply(failOp{}, g); return nil })
	passes := p.CreateGraph(func(*ir.Graph, []*ir.Tensor) []*ir.Tensor { return nil })
	p.Main().If(p.Main().HostLoad(in), ir.Branch{Graph: fails}, ir.Branch{Graph: passes})
	for range 2 {
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var got []float32
		read := func() {
			t.Helper()
			x, err := s.Read(v)
			if err != nil {
				t.Fatal(err)
			}
			values, err := tensor.Of[float32](x)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, values...)
		}
		run := func(fail bool) error {
			given, err := tensor.FromSlice([]bool{fail, fail})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: given})
			return err
		}
		read()
		if err := run(false); err != nil {
			t.Fatal(err)
		}
		read()
		if err := s.Enter(); err != nil {
			t.Fatal(err)
		}
		if err := run(false); err != nil {
			t.Fatal(err)
		}
		read()
		if run(true) == nil {
			t.Fatal("a run that fails has no error")
		}
		if err := s.Exit(); err != nil {
			t.Fatal(err)
		}
		read()
		if want := []float32{5, 6, 7, 6}; !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
	}
}
