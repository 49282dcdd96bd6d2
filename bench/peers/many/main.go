// Command many measures all-reduces of several float32 tensors in one call. It runs under a launcher, once for each
// replica:
//
//	mpirun -np 4 many -transport mpi -method auto -tensors 64 -sizes 16384
//
// Replica 0 prints a line for each size, as bench/peers/mpibench.c does with -K: the method, the number of replicas,
// 64xallreduce, f32, oop or ip, the bytes of one tensor, b2b, the number of calls, microseconds for a call (median,
// least, 90th percentile), GB/s and bus GB/s. Times are taken as there: batches of calls back to back, a barrier before
// each, the slowest replica's time. Calls before and after the timed ones are checked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/methods"
)

// As in bench/peers/mpibench.c.
const (
	warmUp     = 20 * time.Millisecond
	maxWarmUp  = 2000 // calls
	shortest   = time.Millisecond
	batches    = 20 // that -time is divided into
	minBatches = 5
	maxBatches = 200
	maxCalls   = 20_000 // of a batch
	maxTensors = 1024

	hugePages = 2 << 20 // bytes from which on gcl.Alloc has huge pages, where those of C are too, whatever their size
)

func main() { command.Main("many", run) }

// bench is what the flags ask for.
type bench struct {
	method  methods.Method
	tensors int
	sizes   []int // bytes of one tensor
	time    time.Duration
	inPlace bool
	out     io.Writer
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b, transport, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return command.OK
	case err != nil:
		return command.Mistake("many", err, stderr)
	}
	if err := gcl.RunProcess(ctx, gcl.JoinConfig{Transport: transport}, b.replica); err != nil {
		return command.Ended(ctx, "many", err, stderr)
	}
	return command.OK
}

// parse reads the flags. Results are written to stdout.
func parse(args []string, stdout io.Writer) (b *bench, transport string, err error) {
	b = &bench{out: stdout}
	f := flag.NewFlagSet("many", flag.ContinueOnError)
	f.StringVar(&transport, "transport", "mpi", "what the replicas talk over")
	method := f.String("method", "auto", "method of ours, or native")
	f.IntVar(&b.tensors, "tensors", 64, "tensors in a call")
	sizes := f.String("sizes", "16384", "bytes of one tensor, with commas")
	f.DurationVar(&b.time, "time", 100*time.Millisecond, "how long each size is timed")
	place := f.String("place", "oop", "out of place or in place: oop or ip")
	const does = "Measures all-reduces of several float32 tensors in one call, as a replica of a job."
	if err := command.Parse(f, args, stdout, does); err != nil {
		return nil, "", err
	}
	switch {
	case b.tensors < 1 || b.tensors > maxTensors:
		return nil, "", fmt.Errorf("-tensors %d, want 1 to %d", b.tensors, maxTensors)
	case b.time <= 0:
		return nil, "", fmt.Errorf("-time %v, want more than 0", b.time)
	case *place != "oop" && *place != "ip":
		return nil, "", fmt.Errorf("-place %s, want oop or ip", *place)
	}
	b.inPlace = *place == "ip"
	if err := b.method.UnmarshalText([]byte(*method)); err != nil {
		return nil, "", err
	}
	for s := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(s)
		if err != nil || size < 4 || size%4 != 0 {
			return nil, "", fmt.Errorf("-sizes %s: want whole elements of 4 bytes", s)
		}
		b.sizes = append(b.sizes, size)
	}
	return b, transport, nil
}

// replica measures all sizes at one replica.
func (b *bench) replica(ctx context.Context, c *gcl.Comm) error {
	clerk, err := c.Dup(ctx) // for barriers and times: a lane of its own
	if err != nil {
		return err
	}
	if c, err = c.With(gcl.Options{Method: b.method}); err != nil {
		return err
	}
	for _, size := range b.sizes {
		if err := b.measure(ctx, c, clerk, size); err != nil {
			return err
		}
	}
	return nil
}

// measure measures tensors of size bytes each.
func (b *bench) measure(ctx context.Context, c, clerk *gcl.Comm, size int) error {
	src, dst, err := b.buffers(c, size)
	if err != nil {
		return err
	}
	allocated := [2][]float32{src.memory, dst.memory}
	defer func() { _ = errors.Join(gcl.Free(c, allocated[0]), gcl.Free(c, allocated[1])) }() // of what Alloc gave, once
	call := func() error { return gcl.AllReduceManyTo(ctx, c, dst.tensors, src.tensors, gcl.Add) }
	if b.inPlace {
		call = func() error { return gcl.AllReduceManyInPlace(ctx, c, dst.tensors, gcl.Add) }
		src = dst
	}
	if err := checked(c, src, dst, call); err != nil {
		return err
	}
	if b.inPlace {
		clear(dst.whole) // sums of sums would grow
	}
	calls, seconds, err := b.timed(ctx, clerk, call)
	if err != nil {
		return err
	}
	if err := checked(c, src, dst, call); err != nil || c.Rank() != 0 {
		return err
	}
	slices.Sort(seconds)
	n, last := len(seconds), len(seconds)-1
	median := (seconds[last/2] + seconds[n/2]) / 2
	speed := float64(b.tensors*size) / median / 1e9
	place := "oop"
	if b.inPlace {
		place = "ip"
	}
	_, err = fmt.Fprintf(b.out, "%v,%d,%dxallreduce,f32,%s,%d,b2b,%d,%.3f,%.3f,%.3f,%.4f,%.4f\n",
		b.method, c.Size(), b.tensors, place, size, calls*n, median*1e6, seconds[0]*1e6, seconds[last*9/10]*1e6,
		speed, speed*2*float64(c.Size()-1)/float64(c.Size()))
	return err
}

// buffer is one array, and the tensors in it one after the other, as in bench/peers/mpibench.c.
type buffer struct {
	memory  []float32 // of which whole is the beginning
	whole   []float32
	tensors [][]float32
}

func (b *bench) buffers(c *gcl.Comm, size int) (src, dst buffer, err error) {
	for _, to := range []*buffer{&src, &dst} {
		length := b.tensors * size / 4
		if to.memory, err = gcl.Alloc[float32](c, max(length, hugePages/4)); err != nil {
			return src, dst, err
		}
		to.whole = to.memory[:length]
		to.tensors = slices.Collect(slices.Chunk(to.whole, size/4))
	}
	return src, dst, nil
}

// value is element i of a replica's input. Sums of these are exact.
func value(rank, i int) float32 { return float32((rank+1)*(1+i%5) + i%11) }

// checked carries out a call on values by rank and index, and looks at the result.
func checked(c *gcl.Comm, src, dst buffer, call func() error) error {
	for i := range dst.whole {
		dst.whole[i] = -1
	}
	for i := range src.whole {
		src.whole[i] = value(c.Rank(), i)
	}
	if err := call(); err != nil {
		return err
	}
	for i, got := range dst.whole {
		want := float32(0)
		for r := range c.Size() {
			want += value(r, i)
		}
		if got != want {
			return fmt.Errorf("replica %d: element %d of all tensors is %v, want %v", c.Rank(), i, got, want)
		}
	}
	return nil
}

// timed returns the seconds for a call in each batch, by the slowest replica, and the calls of a batch.
func (b *bench) timed(ctx context.Context, clerk *gcl.Comm, call func() error) (calls int, seconds []float64,
	err error) {
	span := func(calls int) (float64, error) {
		if err := clerk.Barrier(ctx); err != nil {
			return 0, err
		}
		start := time.Now()
		for range calls {
			if err := call(); err != nil {
				return 0, err
			}
		}
		return max(time.Since(start).Seconds(), 1e-9) / float64(calls), nil
	}
	slowest := func(seconds []float64) error { return gcl.AllReduceInPlace(ctx, clerk, seconds, gcl.Max) }
	each := []float64{0}
	for warm := 1; ; warm = int(min(max(warmUp.Seconds()/each[0], 2), maxWarmUp)) {
		if each[0], err = span(warm); err != nil {
			return 0, nil, err
		}
		if err := slowest(each); err != nil {
			return 0, nil, err
		}
		if warm > 1 {
			break
		}
	}
	calls = int(min(max(max(b.time.Seconds()/batches, shortest.Seconds())/each[0], 1), maxCalls))
	seconds = make([]float64, int(min(max(b.time.Seconds()/(float64(calls)*each[0]), minBatches), maxBatches)))
	for i := range seconds {
		if seconds[i], err = span(calls); err != nil {
			return 0, nil, err
		}
	}
	return calls, seconds, slowest(seconds)
}
