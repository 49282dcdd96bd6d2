package rts_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

const (
	wide  = 256 // each layer of newWide has a parameter of wide x wide
	depth = 6
)

// newWide builds a training of a model of layers alike that is large enough for its memory to be found among all that a
// process has.
func newWide(t testing.TB, replicas int, s rts.Sharding, trainer rts.Trainer) (*ir.Program, *rts.Step) {
	p := ir.New(replicas)
	main := p.Main()
	zeros, err := tensor.New(tensor.F32, wide, wide)
	if err != nil {
		t.Fatal(err)
	}
	shard, err := s.ShardShape(zeros.Shape(), replicas)
	if err != nil {
		t.Fatal(err)
	}
	x, given := main.Constant(zeros), zeros
	if k := trainer.Accumulate; k > 0 {
		if given, err = tensor.New(tensor.F32, k, wide, wide); err != nil {
			t.Fatal(err)
		}
	}
	dense := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.MatMul(in[0], in[1])}
	}, x, x)
	loss := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.ReduceMean(ops.Square(in[0]))}
	}, x)
	b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: shard}, depth)
	var layers []rts.Layer
	for i := range depth {
		layers = append(layers, rts.Layer{Graph: dense,
			Params: []*rts.Variable{rts.RemoteVariable(p, zeros, b, i, s, remote.Name(fmt.Sprint("w", i)))}})
	}
	layers[0].Inputs = []*ir.Tensor{main.Constant(given)}
	layers = append(layers, rts.Layer{Graph: loss})
	step := trainer.Step(layers, main.Constant(tensor.Scalar(float32(1))), main.Constant(tensor.Scalar(int32(1))))
	return p, step
}

// heap is the bytes that are in use, when collections free no more: finalizers may wait for each other. A collection
// only queues them, so one of its own says when they have run.
func heap() int {
	var m runtime.MemStats
	for least, same := uint64(math.MaxUint64), 0; same < 3; {
		ran := make(chan struct{})
		runtime.SetFinalizer(new([64]byte), func(*[64]byte) { close(ran) })
		runtime.GC()
		<-ran
		runtime.GC()
		runtime.ReadMemStats(&m)
		if m.HeapAlloc+10e3 < least {
			least, same = m.HeapAlloc, 0
		} else {
			same++
		}
	}
	return int(m.HeapAlloc)
}

// TestMemory has what a step takes, and compares it with what the process has after a program and a session are made
// that it did not have before.
func TestMemory(t *testing.T) {
	const param = 4 * wide * wide
	// What a process makes once, as tables of methods, is there before.
	once, _ := newWide(t, 1, rts.Sharding{Over: 1}, rts.Trainer{Optimizer: rts.Adam{}})
	if s, err := ir.NewSession(once); err != nil {
		t.Fatal(err)
	} else if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, replicas := range []int{1, 2, 4} {
		for _, over := range []int{1, 2, 4} {
			if over > replicas {
				continue
			}
			for _, c := range []struct {
				trainer  rts.Trainer
				gathered int // parameters that are whole at a time, at most
			}{
				{rts.Trainer{BucketBytes: 1}, 1},
				{rts.Trainer{BucketBytes: 2 * param}, 2},
				{rts.Trainer{BucketBytes: 1, Overlap: true}, 2},
				{rts.Trainer{BucketBytes: 1, Keep: true}, depth - 1}, // no gradient is computed with the first one
				{rts.Trainer{BucketBytes: 1, Accumulate: 1}, 1},
				{rts.Trainer{BucketBytes: 1, Accumulate: 3}, 1},
			} {
				name := fmt.Sprintf("n=%d/over=%d/bucket=%d/overlap=%t/keep=%t/micro=%d", replicas, over,
					c.trainer.BucketBytes, c.trainer.Overlap, c.trainer.Keep, c.trainer.Accumulate)
				t.Run(name, func(t *testing.T) {
					c.trainer.Optimizer = rts.Adam{}
					before := heap()
					p, step := newWide(t, replicas, rts.Sharding{Over: over}, c.trainer)
					s, err := ir.NewSession(p)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					after := heap()
					m, err := step.Memory(s)
					if err != nil {
						t.Fatal(err)
					}
					if want := depth * param / over; m.Parameters != want || m.States != 2*want {
						t.Errorf("parameters take %d bytes and states %d, want %d and %d",
							m.Parameters, m.States, want, 2*want)
					}
					if want := c.gathered * param; m.Gathered != want {
						t.Errorf("gathered parameters take %d bytes, want %d", m.Gathered, want)
					}
					if m.Gradients < param+param/over || m.Arena < m.Gathered ||
						m.Peak < m.Parameters+m.States+m.Arena {
						t.Errorf("no sense in %+v", m)
					}
					sums := (depth + 1) * param // and the gradient of a layer, beside which there are shards of one
					if k := c.trainer.Accumulate; k > 1 && (m.Gradients < sums || m.Gradients > sums+2*param/over) {
						t.Errorf("gradients take %d bytes, want %d and up to two shards", m.Gradients, sums)
					}
					if want := depth * param; m.Host != want { // what the parameters begin with
						t.Errorf("%d bytes on the host, want %d", m.Host, want)
					}
					all := float64(replicas*m.Peak + m.Host + s.Report().Constants)
					if got := float64(after - before); got < 0.97*all || got > 1.03*all+250e3*float64(replicas) {
						t.Errorf("the process took %.0f bytes, and Memory says %.0f", got, all)
					}
					runtime.KeepAlive(p)
				})
			}
		}
	}
}

// TestMemoryOfFiles has what a step takes whose parameters and states are in files: neither they nor what they begin
// with are on the heap.
func TestMemoryOfFiles(t *testing.T) {
	const param = 4 * wide * wide
	for _, replicas := range []int{2, 4} {
		before := heap()
		p, step := newWide(t, replicas, rts.Sharding{}, rts.Trainer{Optimizer: rts.Adam{}, BucketBytes: 1})
		remote.UseStorage(p, remote.Dir(t.TempDir()))
		s := newSession(t, p)
		after := heap()
		m, err := step.Memory(s)
		if err != nil {
			t.Fatal(err)
		}
		if m.Host != 0 || m.Parameters != depth*param/replicas {
			t.Errorf("%d bytes on the host and %d of parameters, want 0 and %d",
				m.Host, m.Parameters, depth*param/replicas)
		}
		all := float64(replicas*(m.Peak-m.Parameters-m.States) + s.Report().Constants)
		if got := float64(after - before); got < 0.97*all || got > 1.03*all+200e3*float64(replicas) {
			t.Errorf("the process took %.0f bytes, and Memory says %.0f", got, all)
		}
		runtime.KeepAlive(p)
	}
}
