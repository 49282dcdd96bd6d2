package remote_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

func consecutive(size int) commgroup.Group {
	return commgroup.Group{Type: commgroup.Consecutive, Size: size}
}

func listed(groups ...[]int) commgroup.Group { return must(commgroup.Lists(groups)) }

func orthogonal(size int) commgroup.Group {
	return commgroup.Group{Type: commgroup.Orthogonal, Size: size}
}

// counted is a tensor of 1, 2, 3, ...
func counted(t testing.TB, shape ...int) *tensor.Tensor {
	t.Helper()
	out := must(tensor.New(tensor.I32, shape...))
	for i, v := 0, must(tensor.Of[int32](out)); i < len(v); i++ {
		v[i] = int32(i + 1)
	}
	return out
}

// TestSharded: what each replica holds, and what the host reads and writes, in every arrangement of groups.
func TestSharded(t *testing.T) {
	pairs, alone := consecutive(2), consecutive(1)
	for _, c := range []struct {
		replicas       int
		data           []int // shape
		groups, gather commgroup.Group
		plain          bool
		want           [][]int32 // by replica
		all            []int     // shape of what AllReplicas reads
	}{
		// [1, 2] on four replicas, sharded over two of them.
		{4, []int{2}, commgroup.Group{}, pairs, false, [][]int32{{1}, {2}, {1}, {2}}, []int{2, 2}},
		{4, []int{2}, commgroup.Group{}, commgroup.Group{}, false, [][]int32{{1}, {2}, {0}, {0}}, []int{2}},
		{4, []int{5}, commgroup.Group{}, commgroup.Group{}, false, [][]int32{{1, 2}, {3, 4}, {5, 0}, {0, 0}}, []int{5}},
		{2, []int{3}, commgroup.Group{}, commgroup.Group{}, false, [][]int32{{1, 2}, {3, 0}}, []int{3}},
		{4, []int{3}, commgroup.Group{}, pairs, false, [][]int32{{1, 2}, {3, 0}, {1, 2}, {3, 0}}, []int{2, 3}},
		{4, []int{1, 3}, commgroup.Group{}, orthogonal(2), false, [][]int32{{1, 2}, {1, 2}, {3, 0}, {3, 0}}, []int{2, 1, 3}},
		{4, []int{}, commgroup.Group{}, pairs, false, [][]int32{{1}, {0}, {1}, {0}}, []int{2}},
		{2, []int{0, 3}, commgroup.Group{}, commgroup.Group{}, false, [][]int32{{}, {}}, []int{0, 3}},
		{4, []int{2, 3}, pairs, pairs, false, [][]int32{{1, 2}, {3, 0}, {4, 5}, {6, 0}}, []int{2, 3}},
		{4, []int{2, 3}, orthogonal(2), orthogonal(2), false, [][]int32{{1, 2}, {4, 5}, {3, 0}, {6, 0}}, []int{2, 3}},
		{8, []int{2, 2}, consecutive(4), pairs, false, [][]int32{{1}, {2}, {1}, {2}, {3}, {4}, {3}, {4}}, []int{4, 2}},
		{8, []int{2, 2}, consecutive(4), commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 2}, false,
			[][]int32{{1}, {1}, {2}, {2}, {3}, {3}, {4}, {4}}, []int{4, 2}},
		{2, []int{2}, commgroup.Group{}, alone, false, [][]int32{{1, 2}, {1, 2}}, []int{2, 2}},
		{4, []int{3}, commgroup.Group{}, listed([]int{0, 3}, []int{1, 2}), false, [][]int32{{1, 2}, {1, 2}, {3, 0}, {3, 0}},
			[]int{2, 3}},
		{6, []int{2, 2}, listed([]int{0, 1, 4, 5}, []int{2, 3}), pairs, false, [][]int32{{1}, {2}, {3}, {4}, {1}, {2}},
			[]int{3, 2}},
		// Not sharded.
		{2, []int{2}, commgroup.Group{}, alone, true, [][]int32{{1, 2}, {1, 2}}, []int{2, 2}},
		{4, []int{2, 2}, pairs, alone, true, [][]int32{{1, 2}, {1, 2}, {3, 4}, {3, 4}}, []int{4, 2}},
		{4, []int{2, 2}, orthogonal(2), alone, true, [][]int32{{1, 2}, {3, 4}, {1, 2}, {3, 4}}, []int{4, 2}},
		{2, []int{2, 1}, alone, alone, true, [][]int32{{1}, {2}}, []int{2, 1}},
		{1, []int{2}, commgroup.Group{}, alone, true, [][]int32{{1, 2}}, []int{2}},
		{5, []int{2, 2}, listed([]int{0, 3}, []int{1, 2, 4}), alone, true, [][]int32{{1, 2}, {3, 4}, {3, 4}, {1, 2}, {3, 4}},
			[]int{5, 2}},
	} {
		for _, all := range []bool{false, true} {
			t.Run(fmt.Sprintf("n=%d/shape=%v/groups=%v/gather=%v/plain=%v/all=%v",
				c.replicas, c.data, c.groups, c.gather, c.plain, all), func(t *testing.T) {
				p := ir.New(c.replicas)
				data := counted(t, c.data...)
				options := []remote.VariableOption{remote.Name("x"), remote.Groups(c.groups)}
				entry := i32(len(c.want[0]))
				if c.plain {
					entry = i32(c.data[len(c.data)-1]) // one dimension in all of these
				} else {
					options = append(options, remote.Sharded(c.gather))
				}
				if all {
					options = append(options, remote.AllReplicas())
				}
				b := remote.NewBuffer(p, entry, 2)
				x := remote.NewVariable(p, data, b, 1, options...)
				if err := p.Err(); err != nil {
					t.Fatal(err)
				}
				full := c.data
				if layout, err := c.groups.Resolve(c.replicas); err != nil || layout.Groups() > 1 {
					full = full[1:]
				}
				if got := b.MetaShape(); c.plain != (got == nil) || !c.plain && !got.Equal(full) {
					t.Errorf("meta shape %v, want %v", got, full)
				}
				s := session(t, p)
				for r, want := range c.want {
					if got, err := b.Read(s, r, 1); err != nil || !got.Equal(ints(t, want, len(want))) {
						t.Errorf("replica %d begins with %v, %v, want %v", r, got, err, want)
					}
				}
				want := data
				if all {
					want = must(tensor.New(tensor.I32, c.all...))
					layout := must(c.gather.Resolve(c.replicas))
					value := want.Len() / layout.Groups()
					for g := range layout.Groups() {
						var joined []int32
						for _, r := range layout.Members(g) {
							joined = append(joined, c.want[r]...)
						}
						copy(must(tensor.Of[int32](want))[g*value:], joined[:value])
					}
				}
				if got, err := x.Read(s); err != nil || !got.Equal(want) {
					t.Errorf("read %v, %v, want %v", got, err, want)
				}
				zeros, err := tensor.New(tensor.I32, c.data...)
				if err := errors.Join(err, x.Write(s, zeros)); err != nil {
					t.Fatal(err)
				}
				if all {
					each := counted(t, c.all...)
					if err := x.Write(s, each); err != nil {
						t.Error(err)
					}
					if got, err := x.Read(s); err != nil || !got.Equal(each) {
						t.Errorf("wrote %v, read %v, %v", each, got, err)
					}
				} else if got, err := x.Read(s); err != nil || !got.Equal(zeros) {
					t.Errorf("wrote %v, read %v, %v", zeros, got, err)
				}
				// The shards of what is written are those of what it began with, padding too.
				for r, want := range c.want {
					if err := b.Write(s, r, 1, counted(t, len(want))); err != nil {
						t.Fatal(err)
					}
				}
				if err := x.Write(s, data); err != nil {
					t.Fatal(err)
				}
				for r, want := range c.want {
					if got, err := b.Read(s, r, 1); err != nil || !got.Equal(ints(t, want, len(want))) {
						t.Errorf("replica %d is written %v, %v, want %v", r, got, err, want)
					}
					if got, err := b.Read(s, r, 0); err != nil ||
						strings.Trim(fmt.Sprint(must(tensor.Of[int32](got))), "[0 ]") != "" {
						t.Errorf("entry 0 of replica %d: %v, %v", r, got, err)
					}
				}
			})
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestShardedShapes: 8 replicas and (3,3) in groups of 1 and 2 are (8,3,3) and (4,3,3) on the host.
func TestShardedShapes(t *testing.T) {
	for size, lead := range map[int]int{1: 8, 2: 4} {
		for _, sharded := range []bool{false, true} {
			p := ir.New(8)
			b, options := remote.NewBuffer(p, i32(3, 3)), []remote.VariableOption{remote.Groups(consecutive(size))}
			if sharded {
				b, options = remote.NewBuffer(p, i32((9+size-1)/size)),
					append(options, remote.Sharded(consecutive(size)))
			}
			data := counted(t, lead, 3, 3)
			x := remote.NewVariable(p, data, b, 0, options...)
			if p.Err() != nil {
				t.Fatal(p.Err())
			}
			if got, err := x.Read(session(t, p)); err != nil || !got.Equal(data) {
				t.Errorf("groups of %d, sharded %v: %v, %v", size, sharded, got, err)
			}
		}
	}
}

// When replicas no longer agree, the first gather group of each group is read, or with AllReplicas all.
func TestShardedReadsFirst(t *testing.T) {
	for _, c := range []struct {
		options []remote.VariableOption
		entry   ir.Spec
		data    []int
		want    *tensor.Tensor
	}{
		{[]remote.VariableOption{remote.Sharded(consecutive(2))}, i32(1), []int{2}, ints(t, []int32{1, 2})},
		{[]remote.VariableOption{remote.Sharded(orthogonal(2))}, i32(1), []int{2}, ints(t, []int32{1, 3})},
		{[]remote.VariableOption{remote.Sharded(consecutive(2)), remote.AllReplicas()}, i32(1), []int{2}, ints(t, []int32{1, 2, 3, 4}, 2, 2)},
		{[]remote.VariableOption{remote.Sharded(consecutive(1)), remote.Groups(orthogonal(2))}, i32(1), []int{2, 1}, ints(t, []int32{1, 2}, 2, 1)},
		{nil, i32(), nil, tensor.Scalar(int32(1))},
		{[]remote.VariableOption{remote.Groups(consecutive(2))}, i32(), []int{2}, ints(t, []int32{1, 3})},
	} {
		p := ir.New(4)
		b := remote.NewBuffer(p, c.entry)
		x := remote.NewVariable(p, counted(t, c.data...), b, 0, c.options...)
		s := session(t, p)
		for r := range 4 {
			if err := b.Write(s, r, 0, must(ints(t, []int32{int32(r + 1)}).Reshape(c.entry.Shape...))); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := x.Read(s); err != nil || !got.Equal(c.want) {
			t.Errorf("%v, %v, want %v", got, err, c.want)
		}
	}
}

// Loads and stores are of shards; 64 bits become 32, as without sharding.
func TestShardedInProgram(t *testing.T) {
	for name, storage := range map[string]remote.Storage{"memory": remote.Memory{}, "files": remote.Dir(t.TempDir())} {
		p := ir.New(2)
		remote.UseStorage(p, storage)
		data, err := tensor.FromSlice([]int64{1, 2, 3}, 3)
		if err != nil {
			t.Fatal(err)
		}
		x := remote.NewVariable(p, data, remote.NewBuffer(p, i32(2)), 0, remote.Sharded(commgroup.Group{}))
		m := p.Main()
		loaded := x.Load(m)
		x.Store(ir.Apply1(addOp{}, m, loaded, m.Constant(tensor.Scalar(int32(10)))))
		s := session(t, p)
		run(t, s, nil)
		if got, err := x.Read(s); err != nil || !got.Equal(ints(t, []int32{11, 12, 13}, 3)) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestShardedErrors: what cannot be sharded, or written, is an error.
func TestShardedErrors(t *testing.T) {
	sharded := func(gather, groups commgroup.Group, entry ir.Spec, shape ...int) func(p *ir.Program) {
		return func(p *ir.Program) {
			remote.NewVariable(p, counted(t, shape...), remote.NewBuffer(p, entry, 2), 0, remote.Name("x"),
				remote.Sharded(gather), remote.Groups(groups))
		}
	}
	var all commgroup.Group
	for _, c := range []struct {
		replicas int
		build    func(p *ir.Program)
		want     string
	}{
		{1, sharded(all, all, i32(4), 4), `remote variable at sharded_test.go:*: "x": 1 replica, want 2 or more to shard over`},
		{4, sharded(consecutive(3), all, i32(4), 4), `"x": gather group: commgroup: 4 replicas are not a multiple of size 3: want a size of 1, 2 or 4`},
		{4, sharded(all, consecutive(3), i32(4), 4), `"x": commgroup: 4 replicas are not a multiple of size 3: want a size of 1, 2 or 4`},
		{4, sharded(all, consecutive(2), i32(1), 2, 4), "replicas 0 and 2 of one gather group ALL do not begin with the same value, in groups CONSECUTIVE(2)"},
		{4, sharded(orthogonal(2), consecutive(2), i32(2), 2, 4), "replicas 0 and 2 of one gather group ORTHOGONAL(2) do not begin with the same value, in groups CONSECUTIVE(2)"},
		{5, sharded(listed([]int{0, 3}, []int{1, 2, 4}), all, i32(2), 4), "gather group LISTS({0 3} {1 2 4}) has groups of different sizes, and all shards are of one shape: want groups of equal size"},
		{5, sharded(all, listed([]int{0, 3}, []int{1, 2}), i32(1), 4), "replica 4 is in no group of LISTS({0 3} {1 2})"},
		{4, sharded(consecutive(2), consecutive(2), i32(2), 4), "data of shape (4,) for 2 groups, which must be its first dimension"},
		{4, sharded(consecutive(2), consecutive(2), i32(2)), "data of shape () for 2 groups"},
		{4, sharded(consecutive(2), all, i32(4), 4), "buffer 1 has entries of int32 (4,), and a shard of int32 (4,) over 2 replicas is int32 (2,)"},
		{4, sharded(consecutive(2), all, i32(2, 1), 4), "buffer 1 has entries of int32 (2, 1), and a shard of"},
		{4, sharded(consecutive(2), all, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2}}, 4), "buffer 1 has entries of float32 (2,), and a shard of int32 (4,)"},
		{4, func(p *ir.Program) { // the meta shape is fixed by the first use
			b := remote.NewBuffer(p, i32(2), 2)
			remote.NewVariable(p, counted(t, 4, 2), b, 0, remote.Sharded(all))
			remote.NewVariable(p, counted(t, 2, 4), b, 1, remote.Name("y"), remote.Sharded(all))
		}, `"y": remote: buffer 1 has the meta shape (4, 2), and cannot have (2, 4)`},
		{4, func(p *ir.Program) {
			remote.NewVariable(p, counted(t, 2), remote.NewBuffer(p, i32(2), 2), 0, remote.Groups(consecutive(2)))
		}, "buffer 1 has entries of int32 (2,), and the tensor is int32 ()"},
		{4, func(p *ir.Program) {
			remote.NewVariable(p, counted(t, 3, 2), remote.NewBuffer(p, i32(2), 2), 0, remote.Groups(consecutive(2)))
		}, "data of shape (3, 2) for 2 groups, which must be its first dimension"},
		{4, func(p *ir.Program) { // their number changes after that
			b := remote.NewBuffer(p, i32(2), 2)
			remote.Load(p.Main(), b, 0)
			remote.NewVariable(p, counted(t, 8), b, 0, remote.Name("x"), remote.Sharded(all))
			if err := p.SetReplicas(2); err != nil {
				t.Error(err)
			}
		}, `remote: variable "x": buffer 1 has entries of int32 (2,), and a shard of int32 (8,) over 2 replicas is int32 (4,)`},
	} {
		p := ir.New(c.replicas)
		c.build(p)
		s, err := ir.NewSession(p)
		before, after, _ := strings.Cut(c.want, "*")
		if err == nil || !strings.Contains(err.Error(), before) ||
			!strings.Contains(err.Error(), strings.TrimPrefix(after, ":")) {
			t.Errorf("error %v, want %q in it", err, c.want)
		}
		if err == nil {
			s.Close()
		}
	}

	p := ir.New(4)
	b := remote.NewBuffer(p, i32(2), 2)
	x := remote.NewVariable(p, counted(t, 2, 3), b, 0, remote.Name("x"), remote.Sharded(consecutive(2)),
		remote.Groups(consecutive(2)))
	y := remote.NewVariable(p, counted(t, 3), b, 1, remote.Name("y"), remote.Sharded(consecutive(2)),
		remote.AllReplicas())
	s := session(t, p)
	other := session(t, ir.New(4))
	read := func(r, offset int, s *ir.Session) error { _, err := b.Read(s, r, offset); return err }
	_, none := remote.NewVariable(nil, counted(t, 1), b, 0).Read(s)
	_, stranger := x.Read(other)
	if _, err := x.Read(s); err != nil { // opens the buffers
		t.Error(err)
	}
	late := remote.NewBuffer(p, i32(2))
	_, lateRead := late.Read(s, 0, 0)
	_, lateLost := late.Lost(s, 0)
	for _, c := range []struct {
		want string
		err  error
	}{
		{`variable "x" is given no value, want int32 (2, 3)`, x.Write(s, nil)},
		{`variable "x" is given int32 (3,), want int32 (2, 3)`, x.Write(s, counted(t, 3))},
		{`variable "x" is given float32 (2, 3), want int32 (2, 3)`, x.Write(s, must(tensor.New(tensor.F32, 2, 3)))},
		{`variable "y" is given int32 (4, 3), want int32 (3,)`, y.Write(s, counted(t, 4, 3))},
		{`variable "x" is of another program than the session`, stranger},
		{"remote: the variable at entry 0 of buffer 1 (made without remote.Name) is of another program than the session", none},
		{"remote: buffer 1 has entries 0 to 1, and the offset is 2", read(0, 2, s)},
		{"remote: buffer 1 has entries 0 to 1, and the offset is -1", b.Write(s, 0, -1, counted(t, 2))},
		{"remote: replica 4 of 4", read(4, 0, s)},
		{"remote: replica -1 of 4", b.Write(s, -1, 0, counted(t, 2))},
		{"buffer 1 is of another program than the session", read(0, 0, other)},
		{"remote: buffer 1 has entries 0 to 1, and the offset is 2", b.ReadTo(s, 0, 2, counted(t, 2))},
		{"remote: buffer 1 is given no tensor to read to, want int32 (2,)", b.ReadTo(s, 0, 0, nil)},
		{"buffer 1 has entries of int32 (2,), and the tensor is int32 (3,)", b.ReadTo(s, 0, 0, counted(t, 3))},
		{"buffer 1 is of another program than the session", b.Write(nil, 0, 0, counted(t, 2))},
		{"buffer 1 is given no value, want int32 (2,)", b.Write(s, 0, 0, nil)},
		{"buffer 1 has entries of int32 (2,), and the tensor is int32 (3,)", b.Write(s, 0, 0, counted(t, 3))},
		{"buffer 1 has entries of int32 (2,), and the tensor is float32 (2,)", b.Write(s, 0, 0, must(tensor.New(tensor.F32, 2)))},
		{"buffer 2: a session of the program has its buffers open", lateRead},
		{"buffer 2: a session of the program has its buffers open", late.Write(s, 0, 0, counted(t, 2))},
		{"buffer 2: a session of the program has its buffers open", lateLost},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want %q in it", c.err, c.want)
		}
	}
}

// What a storage holds already stays, shard by shard.
func TestShardedFilesOutliveSessions(t *testing.T) {
	dir := t.TempDir()
	for turn := range int32(3) {
		p := ir.New(4)
		remote.UseStorage(p, remote.Dir(dir))
		x := remote.NewVariable(p, counted(t, 5), remote.NewBuffer(p, i32(3)), 0, remote.Sharded(consecutive(2)))
		m := p.Main()
		x.Store(ir.Apply1(addOp{}, m, x.Load(m), m.Constant(tensor.Scalar(int32(1)))))
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		if got, err := x.Read(s); err != nil ||
			!got.Equal(ints(t, []int32{2 + turn, 3 + turn, 4 + turn, 5 + turn, 6 + turn}, 5)) {
			t.Errorf("turn %d: %v, %v", turn, got, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
