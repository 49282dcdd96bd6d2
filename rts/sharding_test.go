package rts_test

import (
	"fmt"
	"slices"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// floats is a tensor of one dimension, or of the given shape.
func floats(t testing.TB, values []float32, shape ...int) *tensor.Tensor {
	t.Helper()
	if len(shape) == 0 {
		shape = []int{len(values)}
	}
	x, err := tensor.FromSlice(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// values are the elements of a tensor of float32.
func values(t testing.TB, x *tensor.Tensor) []float32 {
	t.Helper()
	v, err := tensor.Of[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// newSession is a session of a program without errors.
func newSession(t testing.TB, p *ir.Program) *ir.Session {
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

// runOnce runs a program without inputs.
func runOnce(t testing.TB, p *ir.Program) (*ir.Session, map[*ir.Stream]*tensor.Tensor) {
	t.Helper()
	s := newSession(t, p)
	out, err := s.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, out
}

// TestRemoteVariable is the example of SEMANTICS.md: [1,2] + [3,4] = [4,6], loaded and stored by the program.
func TestRemoteVariable(t *testing.T) {
	for _, c := range []struct {
		name  string
		shard func(s rts.Sharding, full *ir.Tensor) *ir.Tensor
		want  []float32
	}{
		{"Shard", rts.Sharding.Shard, []float32{4, 6}},
		{"ReduceToShard MEAN", func(s rts.Sharding, full *ir.Tensor) *ir.Tensor { return s.ReduceToShard(full, gcl.Mean) }, []float32{4, 6}},
		{"ReduceToShard ADD", func(s rts.Sharding, full *ir.Tensor) *ir.Tensor { return s.ReduceToShard(full, gcl.Add) }, []float32{8, 12}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := ir.New(2)
			b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{1}})
			x := rts.RemoteVariable(p, floats(t, []float32{1, 2}), b, 0, rts.Sharding{}, remote.Name("x"))
			y := p.Main().Constant(floats(t, []float32{3, 4}))
			loaded := x.Load(p.Main())
			whole := ops.Accumulate(x.Gather(loaded), y)
			x.Store(c.shard(rts.Sharding{}, whole))
			loadedOut := p.DeviceToHost("loaded", loaded.Spec())
			p.Main().HostStore(loadedOut, loaded)
			s, out := runOnce(t, p)
			if got := values(t, out[loadedOut]); !slices.Equal(got, []float32{1, 2}) {
				t.Errorf("the shards loaded are %v, want 1 and 2", got)
			}
			got, err := x.Read(s)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(values(t, got), c.want) {
				t.Errorf("stored %v, want %v", got, c.want)
			}
			if m := b.MetaShape(); !m.Equal(tensor.Shape{2}) {
				t.Errorf("meta shape %v, want (2)", m)
			}
		})
	}
}

// TestVariable is the same example with a variable that is loaded and stored by itself.
func TestVariable(t *testing.T) {
	p := ir.New(2)
	x, loaded := rts.NewVariable(p, floats(t, []float32{1, 2}), rts.Sharding{}, remote.Name("x"))
	y := rts.Sharding{}.Shard(p.Main().Constant(floats(t, []float32{3, 4})))
	ops.Accumulate(loaded, y)
	s := newSession(t, p)
	for _, want := range [][]float32{{4, 6}, {7, 10}} {
		if _, err := s.Run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		got, err := x.Read(s)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(values(t, got), want) {
			t.Errorf("stored %v, want %v", got, want)
		}
	}
}

// TestShardOver has [1,2] on four replicas, sharded over two.
func TestShardOver(t *testing.T) {
	p := ir.New(4)
	x, shard := rts.NewVariable(p, floats(t, []float32{1, 2}), rts.Sharding{Over: 2}, remote.AllReplicas())
	out := p.DeviceToHost("shard", shard.Spec())
	p.Main().HostStore(out, shard)
	whole := x.Gather(shard)
	wholeOut := p.DeviceToHost("whole", whole.Spec())
	p.Main().HostStore(wholeOut, whole)
	rank := p.Variable(floats(t, []float32{1, 2, 3, 4}, 4, 1),
		ir.VariableGroups(commgroup.Group{Type: commgroup.Consecutive, Size: 1}))
	reduced := rts.Sharding{Over: 2}.ReduceToShard(ops.Mul(whole, rank.Tensor), gcl.Add)
	reducedOut := p.DeviceToHost("reduced", reduced.Spec())
	p.Main().HostStore(reducedOut, reduced)
	s, got := runOnce(t, p)
	for _, c := range []struct {
		what string
		got  *tensor.Tensor
		want []float32
	}{
		{"shards", got[out], []float32{1, 2, 1, 2}},
		{"gathered", got[wholeOut], []float32{1, 2, 1, 2, 1, 2, 1, 2}},
		{"reduced", got[reducedOut], []float32{10, 20, 10, 20}}, // 1+2+3+4 times
	} {
		if v := values(t, c.got); !slices.Equal(v, c.want) {
			t.Errorf("%s: %v, want %v", c.what, v, c.want)
		}
	}
	all, err := x.Read(s)
	if err != nil {
		t.Fatal(err)
	}
	if !all.Shape().Equal(tensor.Shape{2, 2}) || !slices.Equal(values(t, all), []float32{1, 2, 1, 2}) {
		t.Errorf("read with AllReplicas: %v", all)
	}
}

// TestShards has which shard which replica has, for groups, strides and parts of groups, and what the replicas gather
// and reduce: tensors of 7 elements, which none of the numbers divides.
func TestShards(t *testing.T) {
	const n = 7
	for _, c := range []struct {
		replicas int
		sharding rts.Sharding
		want     string // by replica: its value and its shard
	}{
		{2, rts.Sharding{}, "0.0 0.1"},
		{8, rts.Sharding{Over: 4}, "0.0 0.1 0.2 0.3 0.0 0.1 0.2 0.3"},
		{8, rts.Sharding{Group: commgroup.Group{Type: commgroup.Consecutive, Size: 4}}, "0.0 0.1 0.2 0.3 1.0 1.1 1.2 1.3"},
		{8, rts.Sharding{Group: commgroup.Group{Type: commgroup.Orthogonal, Size: 4}, Over: 2}, "0.0 1.0 0.1 1.1 0.0 1.0 0.1 1.1"},
		{8, rts.Sharding{Group: commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 2}}, "0.0 1.0 0.1 1.1 2.0 3.0 2.1 3.1"},
		{4, rts.Sharding{Group: listed([]int{0, 3}, []int{1, 2})}, "0.0 1.0 1.1 0.1"},
		{6, rts.Sharding{Group: listed([]int{0, 1, 4, 5}, []int{2, 3}), Over: 2}, "0.0 0.1 1.0 1.1 0.0 0.1"},
		{6, rts.Sharding{Group: listed([]int{0, 2, 3, 5}, []int{1, 4}), Over: 2}, "0.0 1.0 0.1 0.0 1.1 0.1"},
		{5, rts.Sharding{Group: listed([]int{0, 3}, []int{1, 2, 4}), Over: 1}, "0.0 1.0 1.0 0.0 1.0"},
		{3, rts.Sharding{}, "0.0 0.1 0.2"},
		{3, rts.Sharding{Over: 1}, "0.0 0.0 0.0"},
		{1, rts.Sharding{Over: 1}, "0.0"},
	} {
		t.Run(fmt.Sprint(c.replicas, " ", c.sharding), func(t *testing.T) {
			p := ir.New(c.replicas)
			groups, shards := 0, 1
			var value, shard []int
			var word string
			for rest := c.want; rest != ""; {
				var g, k int
				fmt.Sscanf(rest, "%s", &word)
				fmt.Sscanf(word, "%d.%d", &g, &k)
				value, shard = append(value, g), append(shard, k)
				groups, shards = max(groups, g+1), max(shards, k+1)
				rest = rest[min(len(rest), len(word)+1):]
			}
			data := make([]float32, groups*n)
			for i := range data {
				data[i] = float32(i + 1)
			}
			shape := []int{n}
			if groups > 1 {
				shape = []int{groups, n}
			}
			v, x := rts.NewVariable(p, floats(t, data, shape...), c.sharding)
			per := n
			if shards > 1 {
				per = (n + shards - 1) / shards
			}
			shardOut := p.DeviceToHost("shard", x.Spec())
			p.Main().HostStore(shardOut, x)
			whole := v.Gather(x)
			wholeOut := p.DeviceToHost("whole", whole.Spec())
			p.Main().HostStore(wholeOut, whole)
			own := c.sharding.Shard(whole)
			ownOut := p.DeviceToHost("own", own.Spec())
			p.Main().HostStore(ownOut, own)
			mean := c.sharding.ReduceToShard(whole, gcl.Mean)
			meanOut := p.DeviceToHost("mean", mean.Spec())
			p.Main().HostStore(meanOut, mean)
			s, out := runOnce(t, p)
			var wantShards, wantWhole []float32
			for r := range c.replicas {
				all := data[value[r]*n : (value[r]+1)*n]
				wantWhole = append(wantWhole, all...)
				padded := append(slices.Clone(all), make([]float32, per*shards-n)...)
				wantShards = append(wantShards, padded[shard[r]*per:(shard[r]+1)*per]...)
			}
			for what, stream := range map[string]*ir.Stream{"shard": shardOut, "own": ownOut, "mean": meanOut} {
				if got := values(t, out[stream]); !slices.Equal(got, wantShards) {
					t.Errorf("%s: %v, want %v", what, got, wantShards)
				}
			}
			if got := values(t, out[wholeOut]); !slices.Equal(got, wantWhole) {
				t.Errorf("whole: %v, want %v", got, wantWhole)
			}
			read, err := v.Read(s)
			if err != nil {
				t.Fatal(err)
			}
			if !read.Shape().Equal(shape) || !slices.Equal(values(t, read), data) {
				t.Errorf("read %v, want %v", read, data)
			}
			if got, err := c.sharding.ShardShape(tensor.Shape{n}, c.replicas); err != nil ||
				!got.Equal(tensor.Shape{per}) || v.Shards() != shards {
				t.Errorf("ShardShape %v, %v, want (%d); Shards %d, want %d", got, err, per, v.Shards(), shards)
			}
		})
	}
}
