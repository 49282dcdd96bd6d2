package popops

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"

	"gogcl.dev/tensor"
)

// The table and the look-ups that the benchmarks are about.
const (
	benchEntries = 1_000_000
	benchWidth   = 64
	benchLookUps = 65_536
)

// benchData is a table, slices, and offsets that fall on the first rows, at random.
type benchData struct {
	table, rows []float32
	offsets     []uint32
	t, s, o     *tensor.Tensor
}

var benchTable []float32 // made once: 256 MB

func newBenchData(b *testing.B, rows int) *benchData {
	b.Helper()
	if benchTable == nil {
		benchTable = make([]float32, benchEntries*benchWidth)
		for i := range benchTable {
			benchTable[i] = float32(i % 1000)
		}
	}
	d := &benchData{table: benchTable, rows: make([]float32, benchLookUps*benchWidth),
		offsets: make([]uint32, benchLookUps)}
	rng := rand.New(rand.NewPCG(1, uint64(rows)))
	for i := range d.offsets {
		d.offsets[i] = uint32(rng.IntN(rows))
	}
	for i := range d.rows {
		d.rows[i] = float32(i % 7)
	}
	var err [3]error
	d.t, err[0] = tensor.FromSlice(d.table, benchEntries, benchWidth)
	d.s, err[1] = tensor.FromSlice(d.rows, benchLookUps, 1, benchWidth)
	d.o, err[2] = tensor.FromSlice(d.offsets, benchLookUps, 1)
	for _, err := range err {
		if err != nil {
			b.Fatal(err)
		}
	}
	return d
}

// benchPlan is a plan that does what it is told.
func benchPlan(b *testing.B, workers int, update how) *Plan {
	b.Helper()
	p, err := NewPlan(tensor.F32, benchEntries, benchWidth, []int{benchLookUps},
		PlanOptions{Workers: workers, AvailableMemoryProportion: 1})
	if err != nil {
		b.Fatal(err)
	}
	update.workers = workers
	p.choices[0] = choice{slice: how{workers: workers, by: byLookUps}, update: update}
	return p
}

// benchRun measures bytes of slices per second.
func benchRun(b *testing.B, name string, run func() error) {
	b.Run(name, func(b *testing.B) {
		b.SetBytes(benchLookUps * benchWidth * 4)
		b.ReportAllocs()
		for b.Loop() {
			if err := run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMultiSlice compares look-ups with a loop of copy by rows.
func BenchmarkMultiSlice(b *testing.B) {
	d := newBenchData(b, benchEntries)
	benchRun(b, "by=copy", func() error {
		for i, o := range d.offsets {
			copy(d.rows[i*benchWidth:(i+1)*benchWidth], d.table[int(o)*benchWidth:(int(o)+1)*benchWidth])
		}
		return nil
	})
	for _, workers := range []int{1, 2} {
		p := benchPlan(b, workers, how{})
		benchRun(b, fmt.Sprintf("by=popops/workers=%d", workers), func() error {
			return MultiSliceInto(d.s, d.t, d.o, []int{0}, []int{1}, p, Options{})
		})
	}
}

// BenchmarkMultiUpdateAdd compares updates with a loop in Go, and with gonum's Axpy by rows; all offsets are below
// rows, so that few rows mean many duplicates.
func BenchmarkMultiUpdateAdd(b *testing.B) {
	scale := tensor.Scalar[float32](0.5)
	for _, rows := range []int{1, 512, 8192, 65536, benchEntries} {
		d := newBenchData(b, rows)
		name := func(by string) string { return fmt.Sprintf("rows=%d/by=%s", rows, by) }
		benchRun(b, name("go"), func() error {
			const scale = float32(0.5)
			for i, o := range d.offsets {
				row := d.table[int(o)*benchWidth:][:benchWidth]
				for j, v := range d.rows[i*benchWidth:][:benchWidth] {
					row[j] += scale * v
				}
			}
			return nil
		})
		benchRun(b, name("gonum"), func() error {
			for i, o := range d.offsets {
				x := blas32.Vector{N: benchWidth, Inc: 1, Data: d.rows[i*benchWidth:][:benchWidth]}
				y := blas32.Vector{N: benchWidth, Inc: 1, Data: d.table[int(o)*benchWidth:][:benchWidth]}
				blas32.Axpy(0.5, x, y)
			}
			return nil
		})
		for _, workers := range []int{1, 2} {
			for _, h := range []how{{by: byRows}, {by: byRows, sorted: true}, {by: byColumns}} {
				if workers == 1 && h.by == byColumns {
					continue
				}
				p := benchPlan(b, workers, h)
				benchRun(b, name(fmt.Sprintf("popops/workers=%d/split=%v/sorted=%v", workers, h.by, h.sorted)),
					func() error {
						return MultiUpdateAdd(d.t, d.s, d.o, scale, []int{0}, []int{1}, p, Options{})
					})
			}
		}
	}
}

// BenchmarkFloat16 is look-ups and updates of float16, as many as the others: the loop in Go rounds after each
// addition, popops once, for which it sorts, or with sums of 16 bits as the loop does.
func BenchmarkFloat16(b *testing.B) {
	const entries = benchEntries
	table, rows := make([]tensor.Float16, entries*benchWidth), make([]tensor.Float16, benchLookUps*benchWidth)
	for i := range table { // or what is only read is all one page of zeros
		table[i] = tensor.Float16(i % 1000)
	}
	for i := range rows {
		rows[i] = tensor.Float16FromFloat32(float32(i % 7))
	}
	offsets := make([]uint32, benchLookUps)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range offsets {
		offsets[i] = uint32(rng.IntN(entries))
	}
	run := func(name string, call func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(benchLookUps * benchWidth * 2)
			b.ReportAllocs()
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("slice/by=copy", func() error {
		for i, o := range offsets {
			copy(rows[i*benchWidth:(i+1)*benchWidth], table[int(o)*benchWidth:(int(o)+1)*benchWidth])
		}
		return nil
	})
	run("add/by=go", func() error {
		const scale = float32(0.5)
		for i, o := range offsets {
			row := table[int(o)*benchWidth:][:benchWidth]
			for j, v := range rows[i*benchWidth:][:benchWidth] {
				row[j] = tensor.Float16FromFloat32(row[j].Float32() + scale*v.Float32())
			}
		}
		return nil
	})
	for _, workers := range []int{1, 2} {
		for _, partial := range []tensor.DType{tensor.F32, tensor.F16} {
			p, err := NewPlan(tensor.F16, entries, benchWidth, []int{benchLookUps},
				PlanOptions{Workers: workers, PartialType: partial})
			if err != nil {
				b.Fatal(err)
			}
			p.choices[0] = choice{slice: how{workers: workers, by: byLookUps},
				update: how{workers: workers, by: byRows, sorted: p.sorts()}}
			if partial == tensor.F32 {
				run(fmt.Sprintf("slice/by=popops/workers=%d", workers), func() error {
					return SliceRows(rows, table, benchWidth, offsets, p, Options{})
				})
			}
			run(fmt.Sprintf("add/by=popops/workers=%d/partial=%v", workers, partial), func() error {
				return UpdateAddRows16(table, rows, benchWidth, offsets, 0.5, p, Options{})
			})
		}
	}
}
