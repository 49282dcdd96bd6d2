package remote_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

func i32(shape ...int) ir.Spec { return ir.Spec{DType: tensor.I32, Shape: shape} }

func ints(t testing.TB, values []int32, shape ...int) *tensor.Tensor {
	t.Helper()
	out, err := tensor.FromSlice(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// addOp adds its second input to its first where that lies.
type addOp struct{}

func (addOp) Name() string                          { return "test add" }
func (addOp) Infer(in []ir.Spec) ([]ir.Spec, error) { return in[:1], nil }
func (addOp) Updates() []int                        { return []int{0} }
func (addOp) Bind(m *ir.Memory) (func() error, error) {
	a, err1 := tensor.Of[int32](m.In[0])
	b, err2 := tensor.Of[int32](m.In[1])
	return func() error {
		for i := range a {
			a[i] += b[i%len(b)]
		}
		return nil
	}, errors.Join(err1, err2)
}

func session(t testing.TB, p *ir.Program) *ir.Session {
	t.Helper()
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func run(t testing.TB, s *ir.Session, in map[*ir.Stream]*tensor.Tensor) map[*ir.Stream]*tensor.Tensor {
	t.Helper()
	out, err := s.Run(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Remote x = 1 and y = 2 (int32): load, add y in place, store: output 3, stored 3.
func TestRemoteVariable(t *testing.T) {
	for name, storage := range map[string]remote.Storage{"memory": remote.Memory{}, "files": remote.Dir(t.TempDir())} {
		p := ir.New(1)
		remote.UseStorage(p, storage)
		b := remote.NewBuffer(p, i32(), 1)
		x := remote.NewVariable(p, tensor.Scalar(int64(1)), b, 0, remote.Name("x"))
		y := p.Variable(tensor.Scalar(int32(2)))
		out := p.DeviceToHost("out", i32())
		m := p.Main()
		m.InSequence(func() {
			loaded := ir.Apply1(addOp{}, m, x.Load(m), y.Tensor)
			x.Store(loaded)
			m.HostStore(out, loaded)
		})
		s := session(t, p)
		if before, err := x.Read(s); err != nil || !before.Equal(tensor.Scalar(int32(1))) {
			t.Errorf("%s: before %v, %v", name, before, err)
		}
		if got := run(t, s, nil)[out]; !got.Equal(tensor.Scalar(int32(3))) {
			t.Errorf("%s: output %v", name, got)
		}
		if stored, err := x.Read(s); err != nil || !stored.Equal(tensor.Scalar(int32(3))) {
			t.Errorf("%s: stored %v, %v", name, stored, err)
		}
	}
}

// Every replica has entries of its own; offsets are constant or computed; what was never stored is zeros.
func TestEntriesOfReplicas(t *testing.T) {
	p := ir.New(2)
	b := remote.NewBuffer(p, i32(2), 3)
	in, at := p.HostToDevice("in", i32(2)), p.HostToDevice("at", ir.Spec{DType: tensor.U32})
	loaded, computed, never := p.DeviceToHost("loaded", i32(2)), p.DeviceToHost("computed", i32(2)),
		p.DeviceToHost("never", i32(2))
	m := p.Main()
	m.InSequence(func() {
		offset := m.HostLoad(at)
		x := m.HostLoad(in)
		remote.StoreAt(x, b, offset)
		m.HostStore(loaded, remote.Load(m, b, 1))
		into := m.HostLoad(in)
		m.HostStore(computed, remote.LoadIntoAt(into, b, offset))
		m.HostStore(never, remote.LoadInto(into, b, 0))
	})
	s := session(t, p)
	data := ints(t, []int32{1, 2, 3, 4, 9, 9, 9, 9}, 2, 2, 2)
	offsets, err := tensor.FromSlice([]uint32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, s, map[*ir.Stream]*tensor.Tensor{in: data, at: offsets})
	for stream, want := range map[*ir.Stream][]int32{loaded: {1, 2, 0, 0}, computed: {1, 2, 3, 4},
		never: {0, 0, 0, 0}} {
		if !out[stream].Equal(ints(t, want, 2, 2)) {
			t.Errorf("%s: %v, want %v", stream.Name(), out[stream], want)
		}
	}
	bad, err := tensor.FromSlice([]uint32{1, 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: data, at: bad}); err == nil ||
		!strings.Contains(err.Error(), "replica 1: remote store built at program_test.go:") ||
		!strings.Contains(err.Error(), "buffer 1 has entries 0 to 2, and the offset is 3") {
		t.Errorf("a computed offset that is too large: %v", err)
	}
}

// In files, values outlive the session, and a variable's beginning does not take their place.
func TestFilesOutliveSessions(t *testing.T) {
	dir := t.TempDir()
	for turn := range int32(3) {
		p := ir.New(2)
		remote.UseStorage(p, remote.Dir(dir))
		b := remote.NewBuffer(p, i32(2), 2)
		x := remote.NewVariable(p, ints(t, []int32{5, 6}), b, 1, remote.AllReplicas())
		loaded := ir.Apply1(addOp{}, p.Main(), x.Load(p.Main()), p.Main().Constant(tensor.Scalar(int32(1))))
		x.Store(loaded)
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, nil)
		if got, err := x.Read(s); err != nil ||
			!got.Equal(ints(t, []int32{6 + turn, 7 + turn, 6 + turn, 7 + turn}, 2, 2)) {
			t.Errorf("turn %d: %v, %v", turn, got, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Errorf("files %v, %v", files, err)
	}
}

// A loop stores and loads by a computed offset.
func TestWrite(t *testing.T) {
	p := ir.New(2)
	b := remote.NewBuffer(p, i32(), 1)
	x := remote.NewVariable(p, tensor.Scalar(int32(1)), b, 0, remote.Name("x"), remote.AllReplicas())
	s := session(t, p)
	if err := x.Write(s, tensor.Scalar(int32(7))); err != nil {
		t.Fatal(err)
	}
	if got, err := x.Read(s); err != nil || !got.Equal(ints(t, []int32{7, 7})) {
		t.Errorf("%v, %v", got, err)
	}
	for what, err := range map[string]error{
		`variable "x" is given no value`:               x.Write(s, nil),
		`variable "x" is given int8 (), want int32 ()`: x.Write(s, tensor.Scalar(int8(7))),
		"is of another program":                        x.Write(session(t, ir.New(1)), tensor.Scalar(int32(7))),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q in it", err, what)
		}
	}
}

// A prefetched load gives what was stored before, and allocates nothing.
func TestPrefetch(t *testing.T) {
	p := ir.New(1)
	const entries = 5
	b := remote.NewBuffer(p, i32(3), entries)
	for k := range int32(entries) {
		remote.NewVariable(p, ints(t, []int32{k, 10 * k, 100 * k}), b, int(k))
	}
	out := p.DeviceToHost("out", i32(3))
	m := p.Main()
	m.InSequence(func() {
		sum := remote.Load(m, b, 0)
		next := remote.Prefetch(m, b, 1)
		for k := 1; k < entries; k++ {
			x := next.Wait()
			if k+1 < entries {
				next = remote.PrefetchAt(b, m.Constant(tensor.Scalar(int32(k+1))))
			}
			ir.Apply1(addOp{}, m, sum, x)
		}
		m.HostStore(out, sum)
	})
	s := session(t, p)
	outs := map[*ir.Stream]*tensor.Tensor{out: ints(t, make([]int32, 3))}
	if err := s.Enter(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	again := func() {
		if err := s.RunTo(ctx, outs, nil); err != nil {
			t.Fatal(err)
		}
	}
	again()
	if got := outs[out]; !got.Equal(ints(t, []int32{10, 100, 1000})) {
		t.Errorf("sum %v", got)
	}
	if n := testing.AllocsPerRun(50, again); n > 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// TestBufferProperties: ids count in each program; shape and element type change only as a whole, and not once in use.
func TestBufferProperties(t *testing.T) {
	p := ir.New(1)
	a, b := remote.NewBuffer(p, i32(2)), remote.NewBuffer(p, i32(3), 2)
	if a.ID() != 1 || a.Entries() != 1 || b.ID() != 2 || remote.NewBuffer(ir.New(1), i32(), 1).ID() != 1 ||
		b.Entries() != 2 || !b.Spec().Equal(i32(3)) || b.MetaShape() != nil {
		t.Errorf("ids %d, %d; entries %d, spec %v", a.ID(), b.ID(), b.Entries(), b.Spec())
	}
	if err := errors.Join(b.SetEntries(1), b.Replace(i32(4, 4), 5), b.SetMetaShape(tensor.Shape{8, 4}),
		b.SetMetaShape(tensor.Shape{8, 4}), b.Validate(i32(4, 4), 1), b.Validate(i32(8, 4), 2)); err != nil {
		t.Error(err)
	}
	if !slices.Equal(b.MetaShape(), []int{8, 4}) || b.Entries() != 5 {
		t.Errorf("meta shape %v, entries %d", b.MetaShape(), b.Entries())
	}
	remote.Load(p.Main(), b, 4)
	for what, err := range map[string]error{
		"buffer 2: 0 entries, want at least 1":                        b.SetEntries(0),
		"buffer 2: -1 entries, want at least 1":                       b.Replace(i32(4), -1),
		"buffer 2: invalid dtype":                                     b.Replace(ir.Spec{}, 1),
		"buffer 2 is in use with 5 entries and cannot have 4":         b.SetEntries(4),
		"buffer 2 is in use with int32 (4, 4) and cannot be replaced": b.Replace(i32(4), 1),
		"buffer 2 has the meta shape (8, 4), and cannot have (4, 8)": b.SetMetaShape(tensor.Shape{4,
			8}),
		"buffer 2: meta shape": a.SetMetaShape(nil),
		"buffer 2 has entries of int32 (4, 4), and the tensor is int32 (4,)":           b.Validate(i32(4), 1),
		"buffer 2 has entries of int32 (8, 4), and the tensor is int32 (4, 4)":         b.Validate(i32(4, 4), 2),
		"buffer 2 has entries of int32 (4, 4), and the tensor is float32 (4, 4)":       b.Validate(ir.Spec{DType: tensor.F32, Shape: tensor.Shape{4, 4}}, 1),
		"buffer 1 has no meta shape":                                                   a.Validate(i32(2), 2),
		"0 shards, want 1 or more":                                                     b.Validate(i32(4, 4), 0),
		"buffer 2: meta shape: tensor: negative dimension in shape (-1,) (deliberate)": b.SetMetaShape(tensor.Shape{-1}),
	} {
		if strings.HasSuffix(what, "meta shape") {
			continue // a scalar is a shape
		}
		what = strings.TrimSuffix(what, ": tensor: negative dimension in shape (-1,) (deliberate)")
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q in it", err, what)
		}
	}
	if err := b.SetEntries(9); err != nil { // growing is always right
		t.Error(err)
	}
}

// What cannot be built is an error of the program.
func TestBuildErrors(t *testing.T) {
	for i, c := range []struct {
		build func(p *ir.Program, b *remote.Buffer)
		want  string
	}{
		{func(p *ir.Program, b *remote.Buffer) { remote.NewBuffer(p, i32(), 0) }, "remote buffer at program_test.go:*: 0 entries, want at least 1"},
		{func(p *ir.Program, b *remote.Buffer) { remote.NewBuffer(p, ir.Spec{}, 1) }, "invalid dtype"},
		{func(p *ir.Program, b *remote.Buffer) { remote.NewBuffer(p, i32(), 1, 2) }, "2 numbers of entries, want one or none"},
		{func(p *ir.Program, b *remote.Buffer) { remote.UseStorage(p, nil) }, "no storage"},
		{func(p *ir.Program, b *remote.Buffer) { remote.Load(p.Main(), b, 2) }, "remote load at program_test.go:*: buffer 1 has entries 0 to 1, and the offset is 2"},
		{func(p *ir.Program, b *remote.Buffer) { remote.Load(p.Main(), b, -1) }, "the offset is -1"},
		{func(p *ir.Program, b *remote.Buffer) { remote.Load(p.Main(), nil, 0) }, "no buffer"},
		{func(p *ir.Program, b *remote.Buffer) { remote.Store(nil, b, 0) }, "remote store at program_test.go:*: neither a graph nor a tensor of one"},
		{func(p *ir.Program, b *remote.Buffer) { remote.Load(nil, b, 0) }, "neither a graph nor a tensor of one"},
		{func(p *ir.Program, b *remote.Buffer) {
			remote.NewVariable(p, ints(t, []int32{1, 2}), b, 1, remote.Name("x"))
			remote.NewVariable(p, ints(t, []int32{1, 2}), b, 1, remote.Name("y"))
		}, `"y": entry 1 of buffer 1 has variable "x" already`},
		{func(p *ir.Program, b *remote.Buffer) {
			remote.NewVariable(p, ints(t, []int32{1, 2}), b, 1, remote.DType(200))
		}, "does not exist"},
		{func(p *ir.Program, b *remote.Buffer) {
			remote.NewVariable(p, tensor.Scalar(uint64(1)<<63), b, 1, remote.DType(tensor.I64))
		}, "is no int64"},
		{func(p *ir.Program, b *remote.Buffer) {
			remote.Load(ir.New(1).Main(), b, 0)
			remote.Load(p.Main(), nil, 0)
		}, "no buffer"},
		{func(p *ir.Program, b *remote.Buffer) { remote.Load(p.Main(), remote.NewBuffer(ir.New(1), i32(), 1), 0) }, "buffer 1 is of another program"},
		{func(p *ir.Program, b *remote.Buffer) { remote.Store(p.Main().Constant(tensor.Scalar(int32(1))), b, 0) }, "remote store at program_test.go:*: remote: buffer 1 has entries of int32 (2,), and the tensor is int32 ()"},
		{func(p *ir.Program, b *remote.Buffer) {
			remote.LoadInto(p.Main().Constant(tensor.Scalar(int32(1))), b, 0)
		}, "and the tensor is int32 ()"},
		{func(p *ir.Program, b *remote.Buffer) { remote.LoadAt(b, p.Main().Constant(tensor.Scalar(float32(1)))) }, "the offset must be a scalar of int32, int64 or uint32"},
		{func(p *ir.Program, b *remote.Buffer) { remote.NewVariable(p, nil, b, 0, remote.Name("x")) }, `remote variable at program_test.go:*: "x": no data`},
		{func(p *ir.Program, b *remote.Buffer) { remote.NewVariable(p, tensor.Scalar(int32(1)), nil, 0) }, "no buffer"},
		{func(p *ir.Program, b *remote.Buffer) { remote.NewVariable(p, tensor.Scalar(int32(1)), b, 0) }, "has entries of int32 (2,), and the tensor is int32 ()"},
		{func(p *ir.Program, b *remote.Buffer) { remote.NewVariable(p, ints(t, []int32{1, 2}), b, 2) }, "the offset is 2"},
		{func(p *ir.Program, b *remote.Buffer) { remote.NewVariable(p, tensor.Scalar(int64(1)<<40), b, 0) }, "is no int32"},
		{func(p *ir.Program, b *remote.Buffer) {
			remote.NewVariable(p, tensor.Scalar(1.5), b, 0, remote.DType(tensor.I32))
		}, "data of float64: tensor: element 0, 1.5, is no int32"},
		{func(p *ir.Program, b *remote.Buffer) {
			remote.NewVariable(p, tensor.Scalar(2), b, 0, remote.DType(tensor.Bool))
		}, "is no bool"},
		{func(p *ir.Program, b *remote.Buffer) {
			remote.NewVariable(p, tensor.Scalar(int64(1)), b, 0, remote.KeepWide())
		}, "and the tensor is int64 ()"},
	} {
		p := ir.New(1)
		b := remote.NewBuffer(p, i32(2), 2)
		c.build(p, b)
		_, err := ir.NewSession(p)
		before, after, _ := strings.Cut(c.want, "*")
		if err == nil || !strings.Contains(err.Error(), before) ||
			!strings.Contains(err.Error(), strings.TrimPrefix(after, ":")) {
			t.Errorf("case %d: error %v, want %q in it", i, err, c.want)
		}
	}
}

// A storage that refuses is an error of the session, and what was opened before is closed.
func TestStorageRefuses(t *testing.T) {
	dir := t.TempDir()
	session := func(spec ir.Spec) error {
		p := ir.New(2)
		remote.UseStorage(p, remote.Dir(dir))
		remote.Load(p.Main(), remote.NewBuffer(p, spec, 1), 0)
		s, err := ir.NewSession(p)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	for _, c := range []struct {
		spec ir.Spec
		want string
	}{{i32(2), ""}, {i32(3), "(2,)"}, {i32(2), ""}} {
		err := session(c.spec)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v", c.spec, err)
		}
	}
}

// With files, a buffer may have more entries than in the session before, and says which it has lost.
func TestFilesGrowBetweenSessions(t *testing.T) {
	dir := t.TempDir()
	for turn := range 3 {
		p := ir.New(2)
		remote.UseStorage(p, remote.Dir(dir))
		b := remote.NewBuffer(p, i32(), 1+turn)
		x := remote.NewVariable(p, tensor.Scalar(int32(7+turn)), b, 0) // which begins so in the first turn only
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.Read(s); err != nil || !got.Equal(tensor.Scalar(int32(7))) {
			t.Errorf("turn %d: %v, %v", turn, got, err)
		}
		if lost, err := b.Lost(s, 1); err != nil || len(lost) != 0 {
			t.Errorf("turn %d: lost %v, %v", turn, lost, err)
		}
		if _, err := b.Lost(s, 2); err == nil {
			t.Error("a replica that does not exist has lost nothing")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// slowOp computes for about as long as a load takes.
type slowOp struct{}

func (slowOp) Name() string                          { return "test slow" }
func (slowOp) Infer(in []ir.Spec) ([]ir.Spec, error) { return []ir.Spec{{DType: tensor.F32}}, nil }
func (slowOp) Bind(m *ir.Memory) (func() error, error) {
	x, err1 := tensor.Of[float32](m.In[0])
	out, err2 := tensor.Of[float32](m.Out[0])
	return func() error {
		var sum [8]float32
		for i := 0; i+8 <= len(x)*3/10; i += 8 { // so much as takes as long as a load (two-core EPYC)
			for k, v := range x[i : i+8] {
				sum[k] += v
			}
		}
		out[0] = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7]
		return nil
	}, errors.Join(err1, err2)
}

// BenchmarkPrefetch runs over 16 entries of 4 MiB, with a computation of about the same length on each: prefetched, the
// loads run beside it.
func BenchmarkPrefetch(b *testing.B) {
	const entries, elements = 16, 1 << 20
	for _, part := range []string{"load", "compute", "both", "prefetched"} {
		b.Run(fmt.Sprintf("part=%s", part), func(b *testing.B) {
			p := ir.New(1)
			buffer := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{elements}}, entries)
			data, err := tensor.New(tensor.F32, elements)
			if err != nil {
				b.Fatal(err)
			}
			for k := range entries {
				remote.NewVariable(p, data, buffer, k)
			}
			m := p.Main()
			m.InSequence(func() {
				x := remote.Load(m, buffer, 0)
				next := (*remote.Pending)(nil)
				for k := range entries {
					switch {
					case part == "prefetched":
						if next != nil {
							x = next.Wait()
						}
						if k+1 < entries {
							next = remote.Prefetch(m, buffer, k+1)
						}
					case part != "compute" && k > 0:
						x = remote.Load(m, buffer, k)
					}
					if part != "load" {
						ir.Apply1(slowOp{}, m, x)
					}
				}
			})
			s := session(b, p)
			if err := s.Enter(); err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			for b.Loop() {
				if err := s.RunTo(ctx, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Growing keeps what is stored, in a session too.
func TestGrowing(t *testing.T) {
	for name, storage := range map[string]remote.Storage{"memory": remote.Memory{}, "files": remote.Dir(t.TempDir())} {
		p := ir.New(2)
		remote.UseStorage(p, storage)
		b := remote.NewBuffer(p, i32(), 1)
		remote.NewVariable(p, tensor.Scalar(int32(5)), b, 0)
		at, out := p.HostToDevice("at", i32()), p.DeviceToHost("out", i32())
		p.Main().HostStore(out, remote.LoadAt(b, p.Main().HostLoad(at)))
		s := session(t, p)
		in := map[*ir.Stream]*tensor.Tensor{at: ints(t, []int32{0, 2})}
		if err := errors.Join(b.SetEntries(2), b.SetEntries(3)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := run(t, s, in)[out]; !got.Equal(ints(t, []int32{5, 0})) {
			t.Errorf("%s: %v", name, got)
		}
		if err := b.SetEntries(1); err == nil || b.Entries() != 3 {
			t.Errorf("%s: fewer entries: %v", name, err)
		}
	}
}
