package remote_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// counting is a fill that writes 1, 2, 3, ... as counted does, and notes which elements it was asked for.
type counting struct {
	t     testing.TB
	asked []int
}

func (c *counting) fill(first int, dst *tensor.Tensor) error {
	v := must(tensor.Of[int32](dst))
	if dst.Rank() != 1 || len(v) == 0 {
		c.t.Errorf("a fill is given shape %v", dst.Shape())
	}
	for i := range v {
		if v[i] != 0 {
			c.t.Errorf("element %d is %d before it is filled", first+i, v[i])
		}
		v[i] = int32(first + i + 1)
		c.asked = append(c.asked, first+i)
	}
	return nil
}

// sharded builds a variable, of data or if that is nil of a FirstValue, on so many replicas.
func sharded(t testing.TB, replicas int, storage remote.Storage, data *tensor.Tensor, gather, groups commgroup.Group,
	options ...remote.VariableOption) (*ir.Program, *remote.Variable) {
	p := ir.New(replicas)
	remote.UseStorage(p, storage)
	options = append([]remote.VariableOption{remote.Name("x"), remote.Groups(groups)}, options...)
	size := must(gather.Resolve(replicas)).Size()
	entry := i32((5 + size - 1) / size)
	if size > 1 {
		options = append(options, remote.Sharded(gather))
	}
	return p, remote.NewVariable(p, data, remote.NewBuffer(p, entry), 0, options...)
}

// TestFirstValue has variables begin with what a function makes, and compares all entries with those of the same data,
// on any number of replicas and in any groups. Each element is made once, and they come in order.
func TestFirstValue(t *testing.T) {
	pairs, all := consecutive(2), commgroup.Group{}
	for _, c := range []struct {
		replicas       int
		gather, groups commgroup.Group
		shape          []int
	}{
		{1, all, all, []int{5}}, {2, all, all, []int{5}}, {3, all, all, []int{5}}, {4, all, all, []int{5}}, {8, all, all, []int{5}},
		{4, pairs, all, []int{5}}, {4, orthogonal(2), all, []int{5}}, {2, consecutive(1), all, []int{5}},
		{4, pairs, pairs, []int{2, 5}}, {4, orthogonal(2), orthogonal(2), []int{2, 5}}, {4, consecutive(1), consecutive(1), []int{4, 5}},
		{8, pairs, consecutive(4), []int{2, 5}},
	} {
		for name, storage := range map[string]func() remote.Storage{
			"memory": func() remote.Storage { return remote.Memory{} },
			"files":  func() remote.Storage { return remote.Dir(t.TempDir()) },
		} {
			t.Run(fmt.Sprintf("n=%d/gather=%v/groups=%v/storage=%s", c.replicas, c.gather, c.groups, name),
				func(t *testing.T) {
					data := counted(t, c.shape...)
					p, x := sharded(t, c.replicas, storage(), data, c.gather, c.groups)
					want := session(t, p)
					fill := &counting{t: t}
					p, y := sharded(t, c.replicas, storage(), nil, c.gather, c.groups,
						remote.FirstValue(ir.SpecOf(data), fill.fill))
					got := session(t, p)
					for r := range c.replicas {
						bx, _ := x.Buffer()
						by, _ := y.Buffer()
						a, errA := bx.Read(want, r, 0)
						b, errB := by.Read(got, r, 0)
						if err := errors.Join(errA, errB); err != nil || !a.Equal(b) {
							t.Errorf("replica %d begins with %v, want %v; %v", r, b, a, err)
						}
					}
					if v, err := y.Read(got); err != nil || !v.Equal(data) {
						t.Errorf("read %v, %v", v, err)
					}
					if len(fill.asked) != data.Len() || !slices.IsSorted(fill.asked) ||
						len(slices.Compact(fill.asked)) != data.Len() {
						t.Errorf("elements %v were made, want each of %d once, in order", fill.asked, data.Len())
					}
					if host := got.Report().Host; host != 0 {
						t.Errorf("%d bytes on the host, want none", host)
					}
					if err := y.Write(got, data); err != nil {
						t.Error(err)
					}
				})
		}
	}
}

// TestFirstValueOfMissing makes what the storage has not: no value of a file that is there, and where a session ended
// before all was made what it had not come to. A file that is gone is an error. Zeros are not stored.
func TestFirstValueOfMissing(t *testing.T) {
	dir := t.TempDir()
	begin := func(fill func(int, *tensor.Tensor) error) (*tensor.Tensor, error) {
		p, x := sharded(t, 4, remote.Dir(dir), nil, commgroup.Group{}, commgroup.Group{},
			remote.FirstValue(i32(5), fill))
		s := must(ir.NewSession(p))
		out, err := x.Read(s)
		return out, errors.Join(err, s.Close())
	}
	open := func(fill func(int, *tensor.Tensor) error) *tensor.Tensor { return must(begin(fill)) }
	if got := open(nil); !got.Equal(ints(t, []int32{0, 0, 0, 0, 0})) {
		t.Errorf("a nil fill makes %v", got)
	}
	cut := &counting{t: t}
	_, err := begin(func(first int, dst *tensor.Tensor) error {
		if first >= 2 {
			return errors.New("cut short")
		}
		return cut.fill(first, dst)
	})
	if err == nil || !strings.Contains(err.Error(), "cut short") || !slices.Equal(cut.asked, []int{0, 1}) {
		t.Fatalf("error %v, elements %v made", err, cut.asked)
	}
	first := &counting{t: t}
	if got := open(first.fill); !got.Equal(counted(t, 5)) || !slices.Equal(first.asked, []int{2, 3, 4}) {
		t.Errorf("after what was cut short: %v, elements %v made, want 2 to 4", got, first.asked)
	}
	second := &counting{t: t}
	if got := open(second.fill); !got.Equal(counted(t, 5)) || len(second.asked) != 0 {
		t.Errorf("from the files: %v, %d elements made", got, len(second.asked))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.1.remote"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of replica 1: %v, %v", files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	third := &counting{t: t}
	_, err = begin(third.fill)
	if err == nil || !strings.Contains(err.Error(), "file "+files[0]+" is missing") || len(third.asked) != 0 {
		t.Errorf("without a file: error %v, elements %v made", err, third.asked)
	}
}

// TestFirstValueErrors has options that disagree, and functions that fail.
func TestFirstValueErrors(t *testing.T) {
	var all commgroup.Group
	zeros := func(int, *tensor.Tensor) error { return nil }
	for _, c := range []struct {
		data    *tensor.Tensor
		options []remote.VariableOption
		want    string
	}{
		{nil, nil, `"x": no data, and no FirstValue to make it`},
		{counted(t, 5), []remote.VariableOption{remote.FirstValue(i32(5), zeros)}, `"x": data and a FirstValue, want one of the two`},
		{nil, []remote.VariableOption{remote.FirstValue(i32(5), zeros), remote.DType(tensor.F32)}, "a FirstValue of int32 and a DType of float32"},
		{nil, []remote.VariableOption{remote.FirstValue(ir.Spec{}, zeros)}, "FirstValue: invalid dtype"},
		{nil, []remote.VariableOption{remote.FirstValue(i32(-5), zeros)}, "FirstValue: "},
		{nil, []remote.VariableOption{remote.FirstValue(i32(7), zeros)}, "a shard of int32 (7,) over 2 replicas is int32 (4,)"},
		{nil, []remote.VariableOption{remote.FirstValue(ir.Spec{DType: tensor.I64, Shape: tensor.Shape{5}}, zeros)}, "a shard of int64 (5,)"},
		{nil, []remote.VariableOption{remote.FirstValue(i32(5), func(first int, _ *tensor.Tensor) error {
			if first == 0 {
				return nil
			}
			return errors.New("no such file")
		})}, `remote: variable "x": FirstValue of elements 3 to 4: no such file`},
	} {
		p, x := sharded(t, 2, remote.Memory{}, c.data, all, all, c.options...)
		s, err := ir.NewSession(p)
		if err == nil { // buffers are opened by who uses them first
			_, err = x.Read(s)
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q in it", err, c.want)
		}
	}
}

// heap is the bytes that are in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestDataIsGivenUp has the data of a variable in files given up once it is stored, and that of a variable in memory
// kept for the sessions that follow.
func TestDataIsGivenUp(t *testing.T) {
	const n = 1 << 20
	var all commgroup.Group
	for _, files := range []bool{true, false} {
		var storage remote.Storage = remote.Memory{}
		if files {
			storage = remote.Dir(t.TempDir())
		}
		before := heap()
		p := ir.New(2)
		remote.UseStorage(p, storage)
		b := remote.NewBuffer(p, i32(n/2))
		x := remote.NewVariable(p, counted(t, n), b, 0, remote.Name("x"), remote.Sharded(all))
		open := func() (*ir.Session, error) {
			s := must(ir.NewSession(p))
			_, err := b.Read(s, 0, 0)
			return s, err
		}
		for turn := range 3 {
			s, err := open()
			if err != nil {
				t.Fatal(err)
			}
			want := 4 * n
			if files {
				want = 0
			}
			if got := s.Report().Host; got != want {
				t.Errorf("files %t, session %d: %d bytes on the host, want %d", files, turn, got, want)
			}
			if !files {
				want += 4 * n // the entries
			}
			if got := heap() - before; got < want-n/4 || got > want+n {
				t.Errorf("files %t, session %d: %d bytes of heap, want %d", files, turn, got, want)
			}
			got := must(tensor.Of[int32](must(x.Read(s))))
			if got[n-1] != n {
				t.Errorf("files %t, session %d: the last element is %d", files, turn, got[n-1])
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		remote.UseStorage(p, remote.Dir(t.TempDir()))
		s, err := open()
		const want = `remote: variable "x": replica 0 has nothing stored, and the data has been given up`
		if files && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("another directory: error %v, want %q in it", err, want)
		} else if !files && err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
