package chunks_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/chunks"
)

type chunk = chunks.Chunk[string]

func TestConcat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		list []chunk
		want []string
	}{
		{"nothing", nil, []string{}},
		{"three elements on four IPUs, ring 0,2,3,1", []chunk{
			{Index: 0},
			{Data: []string{"z"}, Index: 3},
			{Data: []string{"x"}, Index: 1},
			{Data: []string{"y"}, Index: 2},
		}, []string{"x", "y", "z"}},
		{"the example printed wrongly: the rule holds", []chunk{
			{Index: 2},
			{Data: []string{"x"}, Index: 3},
			{Data: []string{"y"}, Index: 0},
			{Data: []string{"z"}, Index: 1},
		}, []string{"y", "z", "x"}},
		{"two IPUs per rank: index p/2, offset p mod 2", []chunk{
			{Data: []string{"a"}, Index: 0, Offset: 0},
			{Data: []string{"c"}, Index: 0, Offset: 1},
			{Data: []string{"b"}, Index: 1, Offset: 0},
			{Data: []string{"d", "e"}, Index: 1, Offset: 1},
		}, []string{"a", "b", "c", "d", "e"}},
		{"equal pairs stay in the order given", []chunk{
			{Data: []string{"b"}, Index: 1},
			{Data: []string{"c"}, Index: 1},
			{Data: []string{"a"}, Index: 0},
			{Data: []string{"d"}, Index: 1},
		}, []string{"a", "b", "c", "d"}},
		{"negative numbers sort as numbers", []chunk{
			{Data: []string{"b"}, Index: 0},
			{Data: []string{"a"}, Index: -2},
		}, []string{"a", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.list)
			if got := chunks.Concat(c.list); !slices.Equal(got, c.want) || got == nil {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := (chunks.Chunks[string]{List: c.list}).Concat(); !slices.Equal(got, c.want) {
				t.Errorf("the method gives %q, want %q", got, c.want)
			}
			for i := range before {
				if before[i].Index != c.list[i].Index || !slices.Equal(before[i].Data, c.list[i].Data) {
					t.Errorf("chunk %d changed", i)
				}
			}
		})
	}
}

// dumbConcat looks for the least pair left, again and again.
func dumbConcat(list []chunks.Chunk[int]) []int {
	var joined []int
	used := make([]bool, len(list))
	for range list {
		best := -1
		for i, c := range list {
			if !used[i] && (best < 0 || c.Offset < list[best].Offset ||
				c.Offset == list[best].Offset && c.Index < list[best].Index) {
				best = i
			}
		}
		used[best] = true
		joined = append(joined, list[best].Data...)
	}
	return joined
}

func TestConcatAgainstOracle(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 2000 {
		list := chunks.NewChunks[int](rng.IntN(20)).List
		for i := range list {
			list[i] = chunks.Chunk[int]{Index: rng.IntN(6), Offset: rng.IntN(3)}
			for j := range rng.IntN(4) {
				list[i].Data = append(list[i].Data, 10*i+j)
			}
		}
		if got, want := chunks.Concat(list), dumbConcat(list); !slices.Equal(got, want) {
			t.Fatalf("trial %d: %v gives %v, want %v", trial, list, got, want)
		}
	}
}

// What is joined is a copy: writing to it does not reach the chunks.
func TestConcatCopies(t *testing.T) {
	t.Parallel()
	data := []int{1, 2}
	chunks.Concat([]chunks.Chunk[int]{{Data: data}})[0] = 9
	if data[0] != 1 {
		t.Error("Concat returned the caller's memory")
	}
}

func TestNewChunks(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{-1: 0, 0: 0, 3: 3} {
		c := chunks.NewChunks[float32](n)
		if len(c.List) != want || len(c.Concat()) != 0 || c.Original != nil {
			t.Errorf("NewChunks(%d): %+v", n, c)
		}
	}
}

func Example() {
	result, ring := []string{"x", "y", "z"}, []int{0, 2, 3, 1}
	scattered := chunks.NewChunks[string](len(ring))
	for f, ipu := range ring {
		lo, hi := chunks.Split(len(result), len(ring), f)
		scattered.List[ipu] = chunks.Chunk[string]{Data: result[lo:hi], Index: f}
	}
	for ipu, c := range scattered.List {
		fmt.Println("IPU", ipu, "index", c.Index, c.Data)
	}
	fmt.Println(scattered.Concat())
	// Output:
	// IPU 0 index 0 []
	// IPU 1 index 3 [z]
	// IPU 2 index 1 [x]
	// IPU 3 index 2 [y]
	// [x y z]
}

func ExampleSplit() {
	for f := range 4 {
		fmt.Println(chunks.Split(10, 4, f))
	}
	// Output:
	// 0 2
	// 2 5
	// 5 7
	// 7 10
}

func ExampleSplitPadded() {
	// Five elements on two ranks, two pieces per rank: each rank holds three, the last is padding.
	for f := range 4 {
		lo, hi := chunks.SplitPadded(5, 2, 4, f)
		fmt.Printf("rank %d: %d to %d\n", f/2, lo, hi)
	}
	// Output:
	// rank 0: 0 to 1
	// rank 0: 1 to 3
	// rank 1: 3 to 4
	// rank 1: 4 to 5
}
