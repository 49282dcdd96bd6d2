package oracle

import (
	"slices"
	"strings"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// TestOutputsByHand is three ranks with six elements, and a shard that is padded.
func TestOutputsByHand(t *testing.T) {
	in := [][]int32{{1, 2, 3, 4, 5, 6}, {10, 20, 30, 40, 50, 60}, {100, 200, 300, 400, 500, 600}}
	for _, x := range []struct {
		call Call
		want [][]int32
	}{
		{Call{Collective: schedule.AllReduce, Operator: Add}, slices.Repeat([][]int32{{111, 222, 333, 444, 555, 666}}, 3)},
		{Call{Collective: schedule.AllReduce, Operator: Local}, in},
		{Call{Collective: schedule.ReduceScatter, Operator: Max}, [][]int32{{100, 200}, {300, 400}, {500, 600}}},
		{Call{Collective: schedule.ReduceScatter, Operator: Local}, [][]int32{{1, 2}, {30, 40}, {500, 600}}},
		{Call{Collective: schedule.AllGather}, slices.Repeat([][]int32{slices.Concat(in...)}, 3)},
		{Call{Collective: schedule.AllToAll},
			[][]int32{{1, 2, 10, 20, 100, 200}, {3, 4, 30, 40, 300, 400}, {5, 6, 50, 60, 500, 600}}},
		{Call{Collective: schedule.Broadcast, Root: 1}, [][]int32{in[1], in[1], in[1]}},
		{Call{Collective: schedule.Scatter, Root: 1}, [][]int32{in[1][:2], in[1][2:4], in[1][4:]}},
		{Call{Collective: schedule.Reduce, Operator: Mul, Root: 2}, [][]int32{{}, {}, {1000, 8000, 27000, 64000, 125000, 216000}}},
		{Call{Collective: schedule.Gather, Root: 0}, [][]int32{slices.Concat(in...), {}, {}}},
	} {
		got := Outputs(x.call, in)
		for r := range got {
			if err := Check("", got[r], x.want[r]); err != nil {
				t.Errorf("%+v, rank %d%v", x.call, r, err)
			}
		}
	}
	got := Outputs(Call{Collective: schedule.ReduceScatter, Operator: Add}, [][]int32{{1}, {2}, {3}})
	if want := [][]int32{{6}, {0}, {0}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("one element over three ranks: %v, want %v", got, want)
	}
}

// TestOutputsByCounts is three ranks with parts of 1, 3 and 0 elements.
func TestOutputsByCounts(t *testing.T) {
	counts := []int{1, 3, 0}
	in, parts := [][]int32{{1, 2, 3, 4}, {10, 20, 30, 40}, {100, 200, 300, 400}}, [][]int32{{1}, {20, 30, 40}, {}}
	all := []int32{1, 20, 30, 40}
	for _, x := range []struct {
		call     Call
		in, want [][]int32
	}{
		{Call{Collective: schedule.ReduceScatter, Operator: Add}, in, [][]int32{{111}, {222, 333, 444}, {}}},
		{Call{Collective: schedule.AllGather}, parts, [][]int32{all, all, all}},
		{Call{Collective: schedule.Gather, Root: 2}, parts, [][]int32{{}, {}, all}},
		{Call{Collective: schedule.Scatter, Root: 1}, in, [][]int32{{10}, {20, 30, 40}, {}}},
	} {
		x.call.Counts = counts
		got := Outputs(x.call, x.in)
		for r := range got {
			if err := Check("", got[r], x.want[r]); err != nil {
				t.Errorf("%+v, rank %d%v", x.call, r, err)
			}
		}
	}
	got := AllToAllV(in, [][]int{{2, 0, 2}, {0, 4, 0}, {1, 1, 2}})
	for r, want := range [][]int32{{1, 2, 100}, {10, 20, 30, 40, 200}, {3, 4, 300, 400}} {
		if err := Check("", got[r], want); err != nil {
			t.Errorf("all-to-all, rank %d%v", r, err)
		}
	}
}

// TestEveryCollectiveHasARow: the parts of all collectives are as long as the inputs say, for every rank and length.
func TestEveryCollectiveHasARow(t *testing.T) {
	for _, c := range schedule.Collectives() {
		for n := 1; n < 6; n++ {
			for elements := range 20 {
				if (c == schedule.AllToAll || c == schedule.Scatter) && elements%n != 0 {
					continue
				}
				want := elements
				switch c {
				case schedule.ReduceScatter:
					want = (elements + n - 1) / n
				case schedule.AllGather:
					want = elements * n
				}
				for rank := range n {
					want := want
					switch {
					case c == schedule.Scatter:
						want = elements / n
					case c == schedule.Gather && rank == n-1:
						want = elements * n
					case (c == schedule.Gather || c == schedule.Reduce) && rank != n-1:
						want = 0
					}
					got := 0
					for _, p := range Parts(c, n, rank, n-1, elements) {
						if p.First < 0 || p.Count < 0 || p.First+p.Count > elements && p.From != Zeros {
							t.Errorf("%v of %d over %d: %+v", c, elements, n, p)
						}
						got += p.Count
					}
					if got != want {
						t.Errorf("%v of %d over %d: rank %d has %d elements, want %d", c, elements, n, rank, got, want)
					}
				}
			}
		}
	}
}

// TestMappedByHand is the example of the documentation: x, y, z on one IPU and w on the next.
func TestMappedByHand(t *testing.T) {
	in, m := slices.Repeat([][]int32{{1, 2, 3, 4}}, 4), chunks.Mapping{3, 1}
	shards := ReduceScatterMapped(Add, in, m)
	if want := [][]int32{{4, 16}, {8, 0}, {12, 0}, {0, 0}}; !slices.EqualFunc(shards, want, slices.Equal) {
		t.Errorf("%v, want %v", shards, want)
	}
	if got, want := AllGatherMapped(shards, m), []int32{4, 8, 12, 16}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestTensors: the forms for types known at run time are the typed ones.
func TestTensors(t *testing.T) {
	for _, d := range tensor.DTypes() {
		for _, op := range Operators(d) {
			in := InputTensors(d, op, 3, 7)
			for _, c := range []schedule.Collective{schedule.AllReduce, schedule.ReduceScatter} {
				for r, got := range OutputTensors(Call{Collective: c, Operator: op}, in) {
					size := 7
					if c == schedule.ReduceScatter {
						size = 3
					}
					if got.DType() != d || !got.Shape().Equal(tensor.Shape{size}) {
						t.Errorf("%v %v of %v, rank %d: %v%v", c, op, d, r, got.DType(), got.Shape())
					}
				}
			}
		}
	}
	a, b := InputTensors(tensor.F32, Add, 1, 4)[0], InputTensors(tensor.F64, Add, 1, 4)[0]
	square := must(a.Reshape(2, 2))
	if CheckTensor("a", a, a.Clone()) != nil || CheckTensor("a", a, b) == nil || CheckTensor("a", a, square) == nil {
		t.Error("CheckTensor does not compare dtypes and shapes")
	}
}

func TestCheckTexts(t *testing.T) {
	for _, x := range []struct {
		got, want []tensor.BFloat16
		text      string
	}{
		{[]tensor.BFloat16{1, 2}, []tensor.BFloat16{1, 2}, ""},
		{[]tensor.BFloat16{0x3f80}, []tensor.BFloat16{}, "x: 1 elements, want 0"},
		{[]tensor.BFloat16{0x3f80, 0x3f80, 0}, []tensor.BFloat16{0x3f80, 0x4000, 0x4000},
			"x: element 1 is 1, want 2 (2 of 3 differ)"},
	} {
		text := ""
		if err := Check("x", x.got, x.want); err != nil {
			text = err.Error()
		}
		if text != x.text {
			t.Errorf("%q, want %q", text, x.text)
		}
	}
	err := Check("x", []tensor.BFloat16{0x7fc1}, []tensor.BFloat16{0x7fc0})
	if err == nil || !strings.Contains(err.Error(), "is NaN [c1 7f], want NaN [c0 7f]") {
		t.Errorf("%v does not tell the bits", err)
	}
}
