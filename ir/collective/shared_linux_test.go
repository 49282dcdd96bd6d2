package collective_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// overShm calls body for each replica of a job of two that share memory as processes do.
func overShm(t *testing.T, body func(ctx context.Context, c *gcl.Comm) error) {
	t.Helper()
	cfg := gcl.JoinConfig{Size: 2, Job: "test", Rendezvous: "dir:" + t.TempDir(), Transport: "shm",
		Timeout: time.Minute}
	var all sync.WaitGroup
	for rank := range cfg.Size {
		all.Go(func() {
			cfg := cfg
			cfg.Rank = rank
			if err := gcl.RunProcess(t.Context(), cfg, body); err != nil {
				t.Errorf("replica %d: %v", rank, err)
			}
		})
	}
	all.Wait()
}

// TestSharedMemory: the collectives of a session of processes that share memory go by peer memory, in which everything
// lies that they work on: tensors, variables, scratch memory, and the same of what runs beside. With PrivateAlloc they
// go by messages, with the same bits.
func TestSharedMemory(t *testing.T) {
	const rows, columns = 2, 4001 // beyond boards; a shard has padding
	var bits [2]string            // by whether memory is private, of replica 0
	for i, want := range []gcl.Path{gcl.PathMemory, gcl.PathMessages} {
		overShm(t, func(ctx context.Context, c *gcl.Comm) error {
			var mu sync.Mutex // guards paths: there are two connections
			paths := map[gcl.Path]int{}
			of := collective.Comm{Options: gcl.Options{Reproducible: true, Trace: &gcl.Trace{
				CollectiveEnd: func(c gcl.TraceCall, _ error) {
					mu.Lock()
					defer mu.Unlock()
					paths[c.Path]++
				}}}}
			p := ir.New(2)
			m := p.Main()
			in := p.HostToDevice("in", spec(tensor.F32, rows, columns))
			var outs []*ir.Stream
			store := func(t *ir.Tensor) {
				outs = append(outs, p.DeviceToHost(fmt.Sprint("out", len(outs)), t.Spec()))
				m.HostStore(outs[len(outs)-1], t)
			}
			x := m.HostLoad(in)
			flat := ops.Reshape(ops.SliceAxis(x, 0, 0, 1), columns)
			gather := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				shards := of.ReduceScatterShards(in[0], gcl.Mean)
				return []*ir.Tensor{of.AllGatherShards(shards, columns)}
			}, flat.Spec())
			beside := m.Start(gather, flat)
			v := p.Variable(must(tensor.FromSlice(make([]float32, columns), columns)))
			ops.Accumulate(v.Tensor, flat)
			of.AllReduceInPlace(v.Tensor, gcl.Add)
			store(v.Tensor)
			store(of.AllReduce(x, gcl.Mean))
			store(of.AllGather(x))
			store(of.AllToAll(x))
			store(of.Broadcast(x, 1))
			store(m.Call(gather, flat)[0])
			store(beside.Wait()[0])
			const calls = 9

			with, err := c.With(gcl.Options{PrivateAlloc: want == gcl.PathMessages})
			if err != nil {
				return err
			}
			s, err := ir.NewSession(p, collective.WithComm(ctx, with))
			if err != nil {
				return err
			}
			defer s.Close()
			data := make([]float32, rows*columns)
			for k := range data {
				data[k] = 1 / float32(k+1+c.Replica())
			}
			got, err := s.Run(ctx, map[*ir.Stream]*tensor.Tensor{in: must(tensor.FromSlice(data, rows, columns))})
			if err != nil {
				return err
			}
			if len(paths) != 1 || paths[want] != calls {
				t.Errorf("%v went so many collectives, want %d by %v", paths, calls, want)
			}
			if c.Replica() == 0 {
				for _, stream := range outs {
					bits[i] += fmt.Sprintf("%x", got[stream].Bytes())
				}
			}
			return nil
		})
	}
	if bits[0] != bits[1] || bits[0] == "" {
		t.Error("peer memory and messages have other bits")
	}
}

// opener is an endpoint that counts the blocks of memory which are open.
type opener struct {
	transport.Endpoint
	full error

	mu   sync.Mutex // guards open
	open int
}

func (o *opener) OpenPages([]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.full == nil {
		o.open++
	}
	return o.full
}

func (o *opener) ShutPages([]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open--
}

func (o *opener) now() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open
}

// TestJobAlloc: a job's memory is shared until nobody refers to it, though the connection lasts. It is zeros, and as
// any other where it cannot be shared. Of a Comm that is closed it is an error.
func TestJobAlloc(t *testing.T) {
	for _, full := range []error{nil, errors.New("full")} {
		ends, err := inproc.New(1)
		if err != nil {
			t.Fatal(err)
		}
		o := &opener{Endpoint: ends[0], full: full}
		c, err := gcl.New(o)
		if err != nil {
			t.Fatal(err)
		}
		j := collective.Job(c)
		b := must(j.Alloc(5000))
		if open := o.now(); (open == 1) != (full == nil) || len(b) != 5000 || !slices.Equal(b, make([]byte, 5000)) {
			t.Errorf("%d blocks are open, %d bytes, want 5000 zeros", open, len(b))
		}
		runtime.GC()
		if open := o.now(); (open == 1) != (full == nil) {
			t.Errorf("%d blocks are open while the memory is in use", open)
		}
		runtime.KeepAlive(b)
		for o.now() > 0 { // what is kept for ever is found by the time of all tests
			runtime.GC()
			runtime.Gosched() // finalizers run on a goroutine of their own
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := j.Alloc(1); !errors.Is(err, gcl.ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	}
}
