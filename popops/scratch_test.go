package popops_test

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestManyLookUps: several thousand look-ups for each worker, more than are gathered at once, in few rows and in many
// (so that one row has more updates than may be sorted at once, and that rows are split), by every operation and way to
// split it, against the definition.
func TestManyLookUps(t *testing.T) {
	const n, workers = 9001, 3
	rng := rand.New(rand.NewPCG(9, 9))
	dtypes := []tensor.DType{tensor.F16, tensor.F32, tensor.I64}
	if testing.Short() {
		dtypes = dtypes[:1]
	}
	for _, dtype := range dtypes {
		for _, entries := range []int{2, 3000} {
			for _, sorted := range []bool{false, true} {
				offsets := make([][]int64, n)
				for i := range offsets {
					offsets[i] = []int64{int64(rng.IntN(entries + entries/100 + 1))} // some are out of range
				}
				if sorted {
					sort.Slice(offsets, func(a, b int) bool { return offsets[a][0] < offsets[b][0] })
				}
				words := make([]uint32, n)
				for i, o := range offsets {
					words[i] = uint32(o[0])
				}
				o := of(t, words, n, 1)
				width := 160 / dtype.Size() // two and a half cache lines
				c := naive{dtype, []int{entries, width}, []int{0}, []int{1}}
				table, slice, scale := newTensor(t, dtype, entries, width), newTensor(t, dtype, n, 1, width),
					newTensor(t, dtype)
				fill(rng, table)
				fill(rng, slice)
				fill(rng, scale)
				for verb, operation := range []popops.UpdateOperation{popops.UpdateAdd, popops.UpdateNone,
					popops.UpdateAdd, popops.UpdateMax} {
					wantTable, wantSlice := table.Clone(), slice.Clone()
					switch verb {
					case 0:
						clear(wantSlice.Bytes())
						for i := range offsets {
							c.slice(wantSlice, i*width, table, 0, offsets[i])
						}
					case 1, 3:
						c.update(wantTable, 0, slice, 0, offsets, verb == 3)
					case 2:
						c.add(wantTable, 0, slice, 0, offsets, load(scale, 0), dtype, 0)
					}
					for way := -1; way < 6; way++ { // -1 is no plan
						call := multiCase{
							t: table.Clone(), s: slice.Clone(), o: o, scale: scale, dims: []int{0}, sizes: []int{1},
							options: popops.Options{IndicesAreSorted: sorted},
						}
						if way >= 0 {
							p, err := popops.NewPlan(dtype, entries, width, []int{n}, popops.PlanOptions{
								Operation: operation, IndicesAreSorted: sorted, Workers: workers,
								AvailableMemoryProportion: popops.NoMemory,
							})
							must(t, err)
							p.Force([]int{1, workers}[way%2], 1+way/2%2, way >= 4)
							call.plan = p
						}
						must(t, call.call(verb))
						if !slices.Equal(call.t.Bytes(), wantTable.Bytes()) ||
							!slices.Equal(call.s.Bytes(), wantSlice.Bytes()) {
							t.Fatalf("verb %d of %v, %d entries, sorted %v, way %d: not what the definition gives",
								verb, dtype, entries, sorted, way)
						}
					}
				}
			}
		}
	}
}

// TestSortingWithoutMemory: to sort with little memory takes longer, as the cost model knows, but by a factor at most,
// however many look-ups there are.
func TestSortingWithoutMemory(t *testing.T) {
	for _, n := range []int{1 << 16, 1 << 20, min(1<<24, 1<<(bits.UintSize-10))} { // on 32 bits there are no more bytes
		little, err := popops.NewPlan(tensor.F16, 1_000_000, 64, []int{n},
			popops.PlanOptions{Workers: 1, AvailableMemoryProportion: popops.NoMemory})
		must(t, err)
		much, err := popops.NewPlan(tensor.F16, 1_000_000, 64, []int{n},
			popops.PlanOptions{Workers: 1, AvailableMemoryProportion: 1})
		must(t, err)
		if a, b := little.UpdateSeconds(), much.UpdateSeconds(); a < b || a == b && n <= 1<<16 || a > 1.5*b {
			t.Errorf("%d look-ups: %v s without memory, %v with it", n, a, b)
		}
		if got, want := little.SortedAtOnce(n), n/8; got != want {
			t.Errorf("%d look-ups: %d are sorted at once, want %d", n, got, want)
		}
	}
}

// TestLooksOfSort: how often all offsets are looked at does not grow with their number.
func TestLooksOfSort(t *testing.T) {
	for _, n := range []int{1000, 10_000, 100_000} {
		offsets := make([]uint32, n)
		for i := range offsets {
			offsets[i] = uint32(i * 7919 % 65536)
		}
		if looks := popops.Looks(offsets, 65536, 1); looks > 64 {
			t.Errorf("%d offsets are looked at %d times, want 64 at most", n, looks)
		}
	}
}
