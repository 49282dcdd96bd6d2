package bench

import (
	"context"
	"fmt"

	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// transports are what replicas can be connected by: the rows of the comparison. A new transport is a new row.
var transports = []connection{
	{"inproc", inproc.New},
}

// connection is a transport under its name in the benchmarks.
type connection struct {
	name string
	open func(n int) ([]transport.Endpoint, error)
}

const elemSize = 4 // bytes of a float32

// data is what a collective works on at n replicas: src and dst of each, made once for all methods and transports.
type data struct {
	collective schedule.Collective
	n          int
	bytes      byteSize // of the larger of a replica's two buffers
	src, dst   [][]float32
}

// wholeBytes is the size that a collective over n replicas can have, at least size: an all-gather and an all-to-all
// need as many elements for every replica.
func wholeBytes(c schedule.Collective, n int, size byteSize) byteSize {
	unit := elemSize
	if c == schedule.AllGather || c == schedule.AllToAll {
		unit *= n
	}
	return byteSize((int(size) + unit - 1) / unit * unit)
}

// newData makes the buffers of n replicas and fills the sources.
func newData(c schedule.Collective, n int, size byteSize) *data {
	d := &data{collective: c, n: n, bytes: wholeBytes(c, n, size)}
	larger := int(d.bytes) / elemSize
	srcLen, dstLen := larger, larger
	switch c {
	case schedule.AllGather:
		srcLen = larger / n
	case schedule.ReduceScatter:
		dstLen = (larger + n - 1) / n
	}
	for r := range n {
		src := make([]float32, srcLen)
		for i := range src {
			src[i] = value(r, i)
		}
		d.src = append(d.src, src)
		d.dst = append(d.dst, make([]float32, dstLen))
	}
	return d
}

// period is after how many elements the values of a replica repeat: a prime, so that a block in a wrong place shows.
const period = 251

// value is element i of replica r's source. Sums over 2,000 replicas are exact.
func value(r, i int) float32 { return float32((i%period*7 + r*131) % 8192) }

// call carries out the collective once at replica c, in a form that allocates nothing. InPlace works on dst.
func (d *data) call(ctx context.Context, c *gcl.Comm, f form) error {
	src, dst := d.src[c.Rank()], d.dst[c.Rank()]
	if f == inPlaceForm {
		switch d.collective {
		case schedule.AllReduce:
			return gcl.AllReduceInPlace(ctx, c, dst, gcl.Add)
		case schedule.AllToAll:
			return gcl.AllToAllInPlace(ctx, c, dst)
		case schedule.Broadcast:
			return gcl.BroadcastInPlace(ctx, c, dst, root)
		}
		return fmt.Errorf("%v has no form InPlace", d.collective)
	}
	switch d.collective {
	case schedule.AllReduce:
		return gcl.AllReduceTo(ctx, c, dst, src, gcl.Add)
	case schedule.ReduceScatter:
		return gcl.ReduceScatterTo(ctx, c, dst, src, gcl.Add)
	case schedule.AllGather:
		return gcl.AllGatherTo(ctx, c, dst, src)
	case schedule.AllToAll:
		return gcl.AllToAllTo(ctx, c, dst, src)
	default:
		if c.Rank() == root { // in place, as the root of a broadcast has nothing to receive
			dst = src
		}
		return gcl.BroadcastTo(ctx, c, dst, src, root)
	}
}

// prepare makes replica r ready for the call that is checked: its dst holds the input in place, and nothing of the
// result otherwise.
func (d *data) prepare(r int, f form) {
	clear(d.dst[r])
	if f == inPlaceForm {
		copy(d.dst[r], d.src[r])
	}
}

// root is where the data of a broadcast comes from.
const root = 0

// check compares what replica r holds with what it must hold.
func (d *data) check(r int) error {
	if d.collective == schedule.Broadcast && r == root {
		return nil
	}
	dst := d.dst[r]
	part := len(dst) / d.n // of what comes from each replica, in an all-gather and an all-to-all
	switch d.collective {
	case schedule.AllReduce:
		return d.checkSum(dst, 0)
	case schedule.ReduceScatter:
		return d.checkSum(dst, r*len(dst))
	case schedule.AllGather:
		for from := range d.n {
			if err := checkCopy(dst[from*part:(from+1)*part], from, 0); err != nil {
				return err
			}
		}
	case schedule.AllToAll:
		for from := range d.n {
			if err := checkCopy(dst[from*part:(from+1)*part], from, r*part); err != nil {
				return err
			}
		}
	case schedule.Broadcast:
		return checkCopy(dst, root, 0)
	}
	return nil
}

// checkSum compares with the sum of all sources from element first on, and with zeros past their end.
func (d *data) checkSum(got []float32, first int) error {
	var sums [period]float32
	for r := range d.n {
		for i := range sums {
			sums[i] += value(r, i)
		}
	}
	for i, v := range got {
		want := sums[(first+i)%period]
		if first+i >= len(d.src[0]) {
			want = 0
		}
		if v != want {
			return fmt.Errorf("element %d is %v, want %v", first+i, v, want)
		}
	}
	return nil
}

// checkCopy compares with the source of a replica from element first on.
func checkCopy(got []float32, from, first int) error {
	var values [period]float32
	for i := range values {
		values[i] = value(from, i)
	}
	for i, v := range got {
		if want := values[(first+i)%period]; v != want {
			return fmt.Errorf("element %d of what comes from replica %d is %v, want %v", i, from, v, want)
		}
	}
	return nil
}

// busFactor is nccl-tests' factor: size times it, by the time, is the bandwidth that the slowest link must have,
// whatever the number of replicas. https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
func busFactor(c schedule.Collective, n int) float64 {
	switch c {
	case schedule.AllReduce:
		return 2 * float64(n-1) / float64(n)
	case schedule.Broadcast:
		return 1
	}
	return float64(n-1) / float64(n)
}
