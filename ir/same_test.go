package ir_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// testJob is a replica's end of a job of goroutines.
type testJob struct {
	replica int
	to      [][]chan []byte // by sender and receiver
	done    chan struct{}
	alloc   func(bytes int) ([]byte, error) // nil: make
}

func (j *testJob) Replica() int          { return j.replica }
func (j *testJob) Replicas() int         { return len(j.to) }
func (j *testJob) Done() <-chan struct{} { return j.done }
func (j *testJob) Err() error            { return nil }
func (j *testJob) Abort(error)           {}

func (j *testJob) Alloc(bytes int) ([]byte, error) {
	if j.alloc == nil {
		return make([]byte, bytes), nil
	}
	return j.alloc(bytes)
}

func (j *testJob) Gather(_ context.Context, _ commgroup.Group, dst, src []byte) error {
	for r := range j.to {
		j.to[j.replica][r] <- bytes.Clone(src)
	}
	for r := range j.to {
		from := <-j.to[r][j.replica]
		if len(from) != len(src) {
			return errors.New("a gather of several lengths")
		}
		copy(dst[r*len(src):], from)
	}
	return nil
}

// sessionsOf makes a session of the program of each replica, side by side, and returns their errors.
func sessionsOf(n int, build func(replica int) *ir.Program) []error { return sessionsIn(nil, n, build) }

// sessionsIn is sessionsOf in a job that gives memory by alloc.
func sessionsIn(alloc func(bytes int) ([]byte, error), n int, build func(replica int) *ir.Program) []error {
	to := make([][]chan []byte, n)
	for r := range to {
		for range n {
			to[r] = append(to[r], make(chan []byte, 1))
		}
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			job := &testJob{replica: r, to: to, done: make(chan struct{}), alloc: alloc}
			s, err := ir.NewSession(build(r), ir.WithJob(context.Background(), job))
			if err == nil {
				err = s.Close()
			}
			errs[r] = err
		})
	}
	all.Wait()
	return errs
}

// TestJobData: what the data of one process of a job differs in from that of replica 0 is an error on all, which names
// the constant or the variable, and the replicas.
func TestJobData(t *testing.T) {
	const n = 4
	hundred := func(odd bool, at int) *tensor.Tensor {
		v := make([]float32, 100)
		if odd {
			v[at] = math.Float32frombits(1)
		}
		return f32s(t, v, 100)
	}
	number := func(odd bool) *tensor.Tensor {
		if odd {
			return tensor.Scalar(float32(math.Copysign(0, -1)))
		}
		return tensor.Scalar(float32(0))
	}
	for _, c := range []struct {
		name, want string
		odd        []int
		build      func(p *ir.Program, odd bool)
	}{
		{"nothing", "", []int{1}, func(p *ir.Program, _ bool) { p.Main().Constant(hundred(false, 0)) }},
		{"a constant", "in graph main, has other elements on replica 2 than on replica 0: in a job all processes build the " +
			"same program, with the same data", []int{2},
			func(p *ir.Program, odd bool) { p.Main().Constant(hundred(odd, 99)) }},
		{"a small constant", "in graph main, has other elements on replicas 1, 3 than", []int{1, 3}, func(p *ir.Program, odd bool) { p.Main().Constant(number(odd)).Named("x") }},
		{"a constant of another graph", "in graph inner, has other elements on replica 1 ", []int{1},
			func(p *ir.Program, odd bool) {
				p.Main().Call(p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
					g.Named("inner")
					return []*ir.Tensor{g.Constant(hundred(odd, 0))}
				}))
			}},
		{"a constant with a name", "ir: constant %0.x, built at same_test.go:", []int{2},
			func(p *ir.Program, odd bool) { p.Main().Constant(hundred(odd, 1)).Named("x") }},
		{"replica 0", "has other elements on replicas 1, 2, 3 than", []int{0},
			func(p *ir.Program, odd bool) { p.Main().Constant(hundred(odd, 7)) }},
		{"a variable", `ir: variable "w" begins with other data on replica 3 than on replica 0`, []int{3},
			func(p *ir.Program, odd bool) {
				p.Main().Constant(hundred(false, 0))
				p.Variable(hundred(false, 0), ir.VariableName("v"))
				p.Variable(hundred(odd, 50), ir.VariableName("w"))
			}},
		{"the last of many", "has other elements on replica 2 than on replica 0", []int{2},
			func(p *ir.Program, odd bool) {
				for range 4096 {
					p.Main().Constant(number(false))
				}
				p.Main().Constant(number(odd))
			}},
		{"what a package keeps", "table 7 begins with other data on replica 1 ", []int{1},
			func(p *ir.Program, odd bool) {
				p.Attached("tables", func() any { return keptData{hundred(odd, 3)} })
			}},
		{"the number of what a package keeps", "replica 1 has built another program than replica 0", []int{1},
			func(p *ir.Program, odd bool) {
				if odd {
					p.Attached("tables", func() any { return keptData{hundred(odd, 3)} })
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for r, err := range sessionsOf(n, func(r int) *ir.Program {
				p := ir.New(n)
				odd := false
				for _, o := range c.odd {
					odd = odd || o == r
				}
				c.build(p, odd)
				return p
			}) {
				if c.want == "" && err != nil ||
					c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("replica %d: error %v, want %q", r, err, c.want)
				}
			}
		})
	}
}

// keptData is what a package keeps with a program.
type keptData struct{ data *tensor.Tensor }

func (k keptData) Initial(data func(what string, bytes []byte)) { data("table 7", k.data.Bytes()) }

// BenchmarkSumOf hashes data, as NewSession does with that of a program of a job.
func BenchmarkSumOf(b *testing.B) {
	data := make([]byte, 64<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		ir.SumOf(data)
	}
}

// TestJobMemory: a session asks the job for its variables and tensors, and never for nothing. Another length, and an
// error, are errors of NewSession.
func TestJobMemory(t *testing.T) {
	build := func(int) *ir.Program {
		p := ir.New(1)
		v := p.Variable(tensor.Scalar(float32(1)))
		p.Main().HostStore(p.DeviceToHost("out", v.Spec()), v.Tensor)
		in := p.HostToDevice("in", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{100}})
		p.Main().HostStore(p.DeviceToHost("same", in.Spec()), p.Main().HostLoad(in))
		return p
	}
	full := errors.New("full")
	var asked []int
	for want, alloc := range map[string]func(bytes int) ([]byte, error){
		"": func(bytes int) ([]byte, error) {
			asked = append(asked, bytes)
			return make([]byte, bytes), nil
		},
		"ir: the memory of a replica: full": func(int) ([]byte, error) { return nil, full },
		"ir: the memory of a replica: the job's Alloc returned 3 bytes, want ": func(int) ([]byte, error) {
			return make([]byte, 3), nil
		},
	} {
		err := sessionsIn(alloc, 1, build)[0]
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if slices.Sort(asked); len(asked) != 2 || asked[0] < 4 || asked[1] < 400 {
		t.Errorf("asked for %d bytes, want some for a variable of 4 and a tensor of 400", asked)
	}
}
