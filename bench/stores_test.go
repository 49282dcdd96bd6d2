package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
)

// storeChoices are the ways to store results in one pass over peer memory: always by way of the caches, always past
// them, and as the size of the last-level cache says.
var storeChoices = []struct {
	name    string
	options gcl.Options
}{
	{"stay", gcl.Options{CacheBytes: math.MaxInt}},
	{"past", gcl.Options{CacheBytes: 1}},
	{"auto", gcl.Options{}},
}

// BenchmarkStores compares them at sizes around the last-level cache, with buffers in pages of 4 KiB, as make gives
// them on most systems, and in huge ones. An iteration is a few calls of each, one after the other with the same
// buffers, of which the first are not counted: they find the caches as the way before left them. Metrics are medians of
// a call in microseconds, and auto by the better of the other two. ns/op is of no use. Each kind of page in a process
// of its own, since Go's heap hands out used huge pages again; that takes some four minutes:
//
//	go test -run '^$' -bench 'Stores/.*/.*/pages=small' -benchtime 15x ./bench
func BenchmarkStores(b *testing.B) {
	for _, c := range schedule.Collectives() {
		for _, n := range groups.values {
			for _, pages := range []string{"small", "huge"} {
				for _, inPlace := range []bool{false, true} {
					for size := byteSize(1 << 20); size <= 32<<20; size *= 2 {
						b.Run(fmt.Sprintf("%v/n=%d/pages=%s/inPlace=%v/size=%v", c, n, pages, inPlace, size),
							func(b *testing.B) {
								us, err := stores(b, storesData{newData(c, n, size), inPlace, pages == "huge"})
								if err != nil {
									b.Fatal(err)
								}
								for k, choice := range storeChoices {
									b.ReportMetric(us[k], choice.name+"-us")
								}
								b.ReportMetric(us[2]/min(us[0], us[1]), "auto/better")
							})
					}
				}
			}
		}
	}
}

// storesData is data whose destinations and inputs may be in one place, for every collective.
type storesData struct {
	*data
	inPlace bool
	huge    bool // in memory of gcl.Alloc
}

// place puts a replica's buffers where they are to be.
func (d storesData) place(c *gcl.Comm) error {
	src, dst := &d.src[c.Rank()], &d.dst[c.Rank()]
	if d.huge {
		for _, buf := range []*[]float32{src, dst} {
			moved, err := gcl.Alloc[float32](c, len(*buf))
			if err != nil {
				return err
			}
			*buf = moved
		}
	}
	switch contract := d.collective.Contract(); {
	case !d.inPlace:
	case contract.Input == schedule.Own:
		part := len(*src)
		*src = (*dst)[c.Rank()*part:][:part]
	case contract.Output == schedule.Own:
		part := len(*dst)
		*dst = (*src)[c.Rank()*part:][:part]
	default:
		*src = *dst
	}
	return nil
}

// form is how data.call gets them.
func (d storesData) form() form {
	if d.inPlace && hasInPlaceForm(d.collective) {
		return inPlaceForm
	}
	return toForm
}

// stores times all of storeChoices, as often as l says, and returns the medians in microseconds.
func stores(l looper, d storesData) ([]float64, error) {
	const uncounted, counted = 5, 10
	times := make([][]float64, len(storeChoices))
	p := newPace(d.bytes)
	err := gcl.Run(context.Background(), d.n, func(ctx context.Context, c *gcl.Comm) error {
		if err := d.place(c); err != nil {
			return err
		}
		var comms []*gcl.Comm
		for _, choice := range storeChoices {
			chosen, err := c.With(choice.options)
			if err != nil {
				return err
			}
			comms = append(comms, chosen)
		}
		round := func() error {
			for k, c := range comms {
				for i := range uncounted + counted {
					began := time.Now()
					if err := d.call(ctx, c, d.form()); err != nil {
						return err
					}
					if c.Rank() == 0 && i >= uncounted {
						times[k] = append(times[k], float64(time.Since(began).Nanoseconds())/1e3)
					}
				}
			}
			return nil
		}
		if c.Rank() == 0 {
			return p.lead(l, round)
		}
		return p.follow(round)
	})
	us := make([]float64, len(storeChoices))
	for k, all := range times {
		if slices.Sort(all); len(all) > 0 {
			us[k] = all[len(all)/2]
		}
	}
	return us, err
}

// TestStores runs the benchmark's body once for each case, with fewer bytes.
func TestStores(t *testing.T) {
	for _, c := range schedule.Collectives() {
		for choice := range 1 << 2 {
			inPlace, huge := choice&1 != 0, choice&2 != 0
			l := times(1)
			us, err := stores(&l, storesData{newData(c, 3, 120<<10), inPlace, huge})
			if err != nil || slices.Min(us) <= 0 {
				t.Errorf("%v, in place %v, huge pages %v: %v, %v", c, inPlace, huge, us, err)
			}
		}
	}
}
