package bench

import (
	"context"
	"fmt"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods"
)

// manyData is an all-reduce of several tensors at n replicas: all in one call, or a call for each.
type manyData struct {
	n        int
	bytes    byteSize // of one tensor
	apart    bool     // a call for each
	src, dst [][][]float32
	blocks   blocks
}

func newManyData(n, tensors int, size byteSize, apart bool) *manyData {
	d := &manyData{n: n, bytes: size, apart: apart, blocks: newBlocks(n)}
	for r := range n {
		var src, dst [][]float32
		for t := range tensors {
			s := make([]float32, int(size)/elemSize)
			d.blocks.fill(s, r, t)
			src, dst = append(src, s), append(dst, make([]float32, len(s)))
		}
		d.src, d.dst = append(d.src, src), append(d.dst, dst)
	}
	return d
}

func (d *manyData) size() byteSize { return d.bytes * byteSize(len(d.src[0])) }

func (d *manyData) call(ctx context.Context, c *gcl.Comm) error {
	dst, src := d.dst[c.Rank()], d.src[c.Rank()]
	if !d.apart {
		return gcl.AllReduceManyTo(ctx, c, dst, src, gcl.Add)
	}
	for t := range src {
		if err := gcl.AllReduceTo(ctx, c, dst[t], src[t], gcl.Add); err != nil {
			return err
		}
	}
	return nil
}

func (d *manyData) check(r int) error {
	for t, dst := range d.dst[r] {
		if err := d.blocks.check(dst, oracle.Part{From: oracle.Reduced, First: t, Count: len(dst)}); err != nil {
			return fmt.Errorf("tensor %d: %w", t, err)
		}
	}
	return nil
}

// run carries out the calls of d as often as l says, on replicas that are made for it, and checks the result.
func (d *manyData) run(l looper, t connection, o gcl.Options) error {
	endpoints, err := t.open(d.n)
	if err != nil {
		return err
	}
	p := newPace(d.size())
	return gcl.Run(context.Background(), d.n, func(ctx context.Context, c *gcl.Comm) error {
		do := func() error { return d.call(ctx, c) }
		if err := warmUp(c, do); err != nil {
			return err
		}
		keep := p.follow
		if c.Rank() == 0 {
			keep = func(do func() error) error { return p.lead(l, do) }
		}
		if err := keep(do); err != nil {
			return err
		}
		for _, dst := range d.dst[c.Rank()] {
			clear(dst)
		}
		if err := do(); err != nil {
			return err
		}
		return d.check(c.Rank())
	}, gcl.WithOptions(o), gcl.WithEndpoints(endpoints))
}

// manyCases are numbers and sizes of tensors. The last two compare one tensor in a call for several with a plain call.
var manyCases = []struct {
	tensors int
	size    byteSize
}{{64, 8}, {64, 1 << 10}, {64, 32 << 10}, {1, 8}, {1, 16 << 20}}

// manyChoices are options that several tensors are tried with: on peer memory, and by messages, packed.
var manyChoices = []gcl.Options{{}, {Implementation: gcl.Syncless}, {Method: methods.ClockwiseRing}}

// manyName is the name of a benchmark of several tensors.
func manyName(t connection, o gcl.Options, n, tensors int, size byteSize, apart bool) string {
	calls := 1
	if apart {
		calls = tensors
	}
	form := "many"
	if apart {
		form = "single"
	}
	return fmt.Sprintf("transport=%s/method=%v/impl=%v/form=%s/n=%d/tensors=%d/size=%v/calls=%d",
		t.name, o.Method, o.Implementation, form, n, tensors, size, calls)
}

// BenchmarkAllReduceMany compares one call on several tensors with a call on each, on the first transport.
func BenchmarkAllReduceMany(b *testing.B) {
	const n = 8
	for _, x := range manyCases {
		for _, t := range transports[:1] {
			for _, o := range manyChoices {
				for _, apart := range []bool{false, true} {
					b.Run(manyName(t, o, n, x.tensors, x.size, apart), func(b *testing.B) {
						b.ReportAllocs()
						d := newManyData(n, x.tensors, x.size, apart)
						b.SetBytes(int64(d.size()))
						if err := d.run(b, t, o); err != nil {
							b.Fatal(err)
						}
					})
				}
			}
		}
	}
}

// TestAllReduceMany runs the bodies of the benchmark a few times, which checks the result, and counts what they
// allocate.
func TestAllReduceMany(t *testing.T) {
	const n = 3
	calls, most := 40, byteSize(1<<20)
	if raceEnabled {
		calls, most = 3, 36<<10
	}
	for _, x := range manyCases {
		x.size = min(x.size, most)
		for _, tr := range transports[:1] {
			for _, o := range manyChoices {
				for _, apart := range []bool{false, true} {
					l := countMallocs{n: calls}
					if err := newManyData(n, x.tensors, x.size, apart).run(&l, tr, o); err != nil {
						t.Fatal(err)
					}
					if got := int(l.end.Mallocs-l.start.Mallocs) / l.n; got != 0 && !raceEnabled {
						t.Errorf("%s: %d allocations per call", manyName(tr, o, n, x.tensors, x.size, apart), got)
					}
				}
			}
		}
	}
}
