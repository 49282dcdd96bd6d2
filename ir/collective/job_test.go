package collective_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// inJob calls body for each replica of a job of n, with a Comm as processes have it, and returns their errors.
func inJob(t *testing.T, n int, body func(ctx context.Context, c *gcl.Comm) error) []error {
	t.Helper()
	cfg := gcl.JoinConfig{Size: n, Job: "test", Rendezvous: "dir:" + t.TempDir(), Timeout: time.Minute}
	errs := make([]error, n)
	var all sync.WaitGroup
	for rank := range n {
		all.Go(func() {
			cfg := cfg
			cfg.Rank = rank
			errs[rank] = gcl.RunProcess(t.Context(), cfg, body)
		})
	}
	all.Wait()
	return errs
}

// jobProgram has collectives of groups, beside the replica and in a choice, and variables of groups.
type jobProgram struct {
	*ir.Program
	in        *ir.Stream
	out       []*ir.Stream
	variables []*ir.Variable
}

func newJobProgram(n int) *jobProgram {
	p := &jobProgram{Program: ir.New(n)}
	m := p.Main()
	p.in = p.HostToDevice("in", spec(tensor.F32, 4))
	store := func(t *ir.Tensor) {
		s := p.DeviceToHost(fmt.Sprint("out", len(p.out)), t.Spec())
		m.HostStore(s, t)
		p.out = append(p.out, s)
	}
	x := m.HostLoad(p.in)
	store(collective.Comm{}.AllReduce(x, gcl.Mean))
	store(collective.Comm{Group: group(commgroup.Consecutive, 2, 2)}.AllGather(x))
	scatter := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{collective.Comm{}.ReduceScatter(in[0], gcl.Add)}
	}, x.Spec())
	beside := m.Start(scatter, x)
	store(collective.Comm{}.AllToAll(x))
	sum := beside.Wait()[0]
	store(sum)
	positive := ops.Greater(collective.Comm{}.AllReduce(ops.ReduceSum(x), gcl.Max),
		m.Constant(tensor.Scalar(float32(0))))
	branch := ir.Branch{Graph: scatter, In: []*ir.Tensor{x}}
	store(m.If(positive, branch, branch)[0])
	data := must(tensor.FromSlice([]float32{1, 2}, 2, 1))
	for _, all := range []ir.VariableOption{nil, ir.AllReplicas()} {
		v := p.Variable(data, all, ir.VariableGroups(group(commgroup.Consecutive, 2, 0)))
		ops.Accumulate(v.Tensor, sum)
		p.variables = append(p.variables, v)
	}
	return p
}

// row is the part of a tensor of all replicas, or of so many groups, that one has.
func row(t *tensor.Tensor, of, k int) string {
	n := t.Len() / of
	return fmt.Sprint(must(tensor.Of[float32](t))[k*n : (k+1)*n])
}

// TestWithComm: a job of processes computes what one process computes.
func TestWithComm(t *testing.T) {
	const n, runs = 4, 3
	input := func(run, first, rows int) *tensor.Tensor {
		data := make([]float32, 4*rows)
		for i := range data {
			data[i] = float32((run + 1) * (4*first + i) * (4*first + i))
		}
		if rows == 1 {
			return must(tensor.FromSlice(data, 4))
		}
		return must(tensor.FromSlice(data, rows, 4))
	}
	alone := newJobProgram(n)
	s, err := ir.NewSession(alone.Program)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var want [runs]map[*ir.Stream]*tensor.Tensor
	var values []*tensor.Tensor
	if err := s.Within(func() error {
		for run := range runs {
			var err error
			in := map[*ir.Stream]*tensor.Tensor{alone.in: input(run, 0, n)}
			if want[run], err = s.Run(t.Context(), in); err != nil {
				return err
			}
		}
		for _, v := range alone.variables {
			values = append(values, must(s.Read(v)))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for r, err := range inJob(t, n, func(ctx context.Context, c *gcl.Comm) error {
		p := newJobProgram(n)
		s, err := ir.NewSession(p.Program, collective.WithComm(ctx, c))
		if err != nil {
			return err
		}
		defer s.Close()
		r := c.Replica()
		if _, job := s.Job(); len(s.Own()) != 1 || s.Own()[0] != r || job == nil {
			return fmt.Errorf("replicas %d, want %d", s.Own(), r)
		}
		if err := s.Enter(); err != nil {
			return err
		}
		for run := range runs {
			got, err := s.Run(ctx, map[*ir.Stream]*tensor.Tensor{p.in: input(run, r, 1)})
			if err != nil {
				return err
			}
			for k, stream := range p.out {
				if got, want := row(got[stream], 1, 0), row(want[run][alone.out[k]], n, r); got != want {
					return fmt.Errorf("run %d: output %d is %s, want %s", run, k, got, want)
				}
			}
		}
		for k, v := range p.variables {
			of, at := 2, r/2 // groups
			if k == 1 {
				of, at = n, r
			}
			got, err := s.Read(v)
			if err != nil {
				return err
			}
			if got, want := row(got, 1, 0), row(values[k], of, at); got != want &&
				(k == 1 || r%2 == 0) { // of a group the first is read
				return fmt.Errorf("variable %d is %s, want %s", k, got, want)
			}
			// The value of all groups, and that of this process's replica.
			for _, given := range [][]float32{{5, 6}, {7}} {
				shape := []int{len(given), 1}[2-len(given):]
				if err := s.Write(v, must(tensor.FromSlice(given, shape...))); err != nil {
					return err
				}
				want := fmt.Sprint(given[min(r/2, len(given)-1):][:1])
				if got := row(must(s.Read(v)), 1, 0); got != want {
					return fmt.Errorf("variable %d is %s after a write, want %s", k, got, want)
				}
			}
		}
		return s.Exit()
	}) {
		if err != nil {
			t.Errorf("replica %d: %v", r, err)
		}
	}
}

// TestWithCommErrors: an error of one process is an error on all.
func TestWithCommErrors(t *testing.T) {
	boom := errors.New("boom")
	session := func(ctx context.Context, c *gcl.Comm, p *ir.Program) (*ir.Session, error) {
		return ir.NewSession(p, collective.WithComm(ctx, c))
	}
	for _, tt := range []struct {
		name string
		body func(ctx context.Context, c *gcl.Comm) error // the odd one is replica 1
		want string                                       // in every error
	}{
		{"size", func(ctx context.Context, c *gcl.Comm) error {
			_, err := session(ctx, c, ir.New(5))
			return err
		}, "the program has 5 replicas, and the job has 4"},
		{"program", func(ctx context.Context, c *gcl.Comm) error {
			p := newJobProgram(4).Program
			if c.Replica() == 1 {
				p.Main().Constant(tensor.Scalar(float32(1)))
			}
			_, err := session(ctx, c, p)
			return err
		}, "replica 1 has built another program than replica 0"},
		{"building", func(ctx context.Context, c *gcl.Comm) error {
			p := ir.New(4)
			if c.Replica() == 1 {
				p.Fail("build", boom)
			}
			_, err := session(ctx, c, p)
			return err
		}, "boom"},
		{"binding", func(ctx context.Context, c *gcl.Comm) error {
			p := ir.New(4)
			ir.Apply(failing{bind: func(replica int) error { return failFor(replica == 1, boom) }}, p.Main())
			_, err := session(ctx, c, p)
			return err
		}, "boom"},
		{"run", func(ctx context.Context, c *gcl.Comm) error {
			p := ir.New(4)
			x := p.Main().Constant(tensor.Scalar(float32(1)))
			ir.Apply(failing{run: func(replica int) error { return failFor(replica == 1, boom) }}, p.Main())
			collective.Comm{}.AllReduceInPlace(ops.AddScalar(x, 1), gcl.Add)
			s, err := session(ctx, c, p)
			if err != nil {
				return err
			}
			defer s.Close()
			for err == nil { // one that has run to its end hears of it in the next run
				err = s.RunTo(ctx, nil, nil)
			}
			if again := s.RunTo(ctx, nil, nil); again == nil {
				return errors.New("a run after it has no error")
			}
			return err
		}, "boom"},
		{"transport", func(ctx context.Context, c *gcl.Comm) error {
			p := newJobProgram(4).Program
			collective.UseTransport(p, nil)
			_, err := session(ctx, c, p)
			return err
		}, "no function that connects"},
		{"context", func(_ context.Context, c *gcl.Comm) error {
			_, err := session(nil, c, newJobProgram(4).Program)
			return err
		}, "need a context"},
		{"context of one", func(ctx context.Context, c *gcl.Comm) error {
			if c.Replica() == 1 {
				ctx = nil
			}
			_, err := session(ctx, c, newJobProgram(4).Program)
			return err
		}, "need a context"},
		{"a group", func(ctx context.Context, c *gcl.Comm) error {
			half, err := c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 2})
			if err != nil {
				return err
			}
			_, err = session(ctx, half, newJobProgram(4).Program)
			return err
		}, "a job by a Comm of 2 of 4 replicas, want one of all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for r, err := range inJob(t, 4, tt.body) {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("replica %d: %v does not say %q", r, err, tt.want)
				}
				if r == 1 && tt.want == "boom" && !errors.Is(err, boom) {
					t.Errorf("replica 1: %v is not its own error", err)
				}
			}
		})
	}
}

func failFor(fail bool, err error) error {
	if fail {
		return err
	}
	return nil
}

// failing is an operation that fails on a replica.
type failing struct{ bind, run func(replica int) error }

func (failing) Name() string                       { return "failing" }
func (failing) Infer([]ir.Spec) ([]ir.Spec, error) { return nil, nil }
func (o failing) Bind(m *ir.Memory) (func() error, error) {
	if o.bind != nil {
		return nil, o.bind(m.Replica)
	}
	return func() error { return o.run(m.Replica) }, nil
}

// TestWithCommLate: a process that does not come to a session is named when the context ends.
func TestWithCommLate(t *testing.T) {
	for r, err := range inJob(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 2 {
			<-ctx.Done()
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err := ir.NewSession(ir.New(3), collective.WithComm(ctx, c))
		return err
	}) {
		if r < 2 && (err == nil || !strings.Contains(err.Error(), "deadline")) {
			t.Errorf("replica %d: %v", r, err)
		}
	}
}
