package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/tcp"
)

// transports are what replicas can be connected by: the rows of the comparison. A new transport is a new row.
var transports = []connection{
	{name: "inproc", open: inproc.New},
	{name: "tcp", open: bySockets(tcp.TCP), sockets: true},
	{name: "unix", open: bySockets(tcp.Unix), sockets: true},
	{name: "shm", open: bySockets(tcp.Shm), sockets: true},
}

// connection is a transport under its name in the benchmarks.
type connection struct {
	name    string
	open    func(n int) ([]transport.Endpoint, error)
	sockets bool // a call takes long: few ways are compared
}

// bySockets connects replicas of this process by sockets, or through memory as processes do.
func bySockets(network tcp.Network) func(n int) ([]transport.Endpoint, error) {
	return func(n int) ([]transport.Endpoint, error) { return tcp.New(n, network) }
}

// existing are the transports that there are on this system.
func existing() []connection {
	return slices.DeleteFunc(slices.Clone(transports), func(c connection) bool {
		return (c.name == "unix" || c.name == "shm") && runtime.GOOS != "linux"
	})
}

const elemSize = 4 // bytes of a float32

// data is what a collective works on at n replicas: src and dst of each, made once for all methods and transports.
type data struct {
	collective schedule.Collective
	n          int
	bytes      byteSize // of the larger of a replica's two buffers
	src, dst   [][]float32
	blocks     blocks
}

// period is after how many elements the values of a replica repeat: a prime, so that a block in a wrong place shows.
const period = 251

// blocks are the first period elements of each replica's source, and of their sum.
type blocks struct {
	sources [][]float32
	sum     []float32
}

func newBlocks(n int) blocks {
	sources := oracle.Inputs[float32](oracle.Add, n, period)
	return blocks{sources, oracle.Reduce(oracle.Add, sources)}
}

// check compares with a part of what a collective gives.
func (b blocks) check(got []float32, part oracle.Part) error {
	block := make([]float32, period)
	switch part.From {
	case oracle.Reduced:
		block = b.sum
	case oracle.Zeros:
	default:
		block = b.sources[part.From]
	}
	for i, v := range got {
		if want := block[(part.First+i)%period]; v != want {
			return fmt.Errorf("element %d is %v, want %v, of %+v", i, v, want, part)
		}
	}
	return nil
}

// fill makes the elements of a replica's source from element first on.
func (b blocks) fill(dst []float32, replica, first int) {
	for i := range dst {
		dst[i] = b.sources[replica][(first+i)%period]
	}
}

// wholeBytes is the size that a collective over n replicas can have, at least size: where nothing is padded every
// replica has a part of one length.
func wholeBytes(c schedule.Collective, n int, size byteSize) byteSize {
	unit := elemSize
	if contract := c.Contract(); contract.PerRank() && !contract.Combines {
		unit *= n
	}
	return byteSize((int(size) + unit - 1) / unit * unit)
}

// newData makes the buffers of n replicas and fills the sources.
func newData(c schedule.Collective, n int, size byteSize) *data {
	d := &data{collective: c, n: n, bytes: wholeBytes(c, n, size), blocks: newBlocks(n)}
	larger, contract := int(d.bytes)/elemSize, c.Contract()
	srcLen, dstLen := contract.Input.Elements(larger, n), contract.Output.Elements(larger, n)
	for r := range n {
		src := make([]float32, srcLen)
		d.blocks.fill(src, r, 0)
		d.src = append(d.src, src)
		d.dst = append(d.dst, make([]float32, dstLen))
	}
	return d
}

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
		case schedule.Reduce:
			return gcl.ReduceInPlace(ctx, c, dst, gcl.Add, root)
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
	case schedule.Reduce:
		return gcl.ReduceTo(ctx, c, dst, src, gcl.Add, root)
	case schedule.Gather:
		return gcl.GatherTo(ctx, c, dst, src, root)
	case schedule.Scatter:
		return gcl.ScatterTo(ctx, c, dst, src, root)
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

// root is the replica that alone has the data or the result of a collective with a root.
const root = 0

// receives reports whether replica r has a result to check. The root of a broadcast has its own data.
func (d *data) receives(r int) bool {
	if d.collective == schedule.Broadcast {
		return r != root
	}
	return r == root || d.collective.Contract().Output != schedule.AtRoot
}

// check compares what replica r holds with what it must hold.
func (d *data) check(r int) error {
	if !d.receives(r) {
		return nil
	}
	rest := d.dst[r]
	for _, part := range oracle.Parts(d.collective, d.n, r, root, len(d.src[r])) {
		if err := d.blocks.check(rest[:part.Count], part); err != nil {
			return err
		}
		rest = rest[part.Count:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d elements too many", len(rest))
	}
	return nil
}

// busFactor is nccl-tests' factor: size times it, by the time, is the bandwidth that the slowest link must have,
// whatever the number of replicas. https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
func busFactor(c schedule.Collective, n int) float64 {
	switch contract := c.Contract(); {
	case contract.PerRank():
		return float64(n-1) / float64(n)
	case contract.Rooted():
		return 1
	}
	return 2 * float64(n-1) / float64(n)
}
