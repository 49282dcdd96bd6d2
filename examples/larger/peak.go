package main

import (
	"runtime/metrics"
	"sync"
	"time"
)

// peak is the most memory of the process at any time, in bytes.
type peak struct {
	heap uint64 // objects on Go's heap
	all  uint64 // what Go has of the machine, which GOMEMLIMIT bounds. Mapped files are not in it
}

// add takes the greater of each.
func (p *peak) add(q peak) { p.heap, p.all = max(p.heap, q.heap), max(p.all, q.all) }

// watch calls a function, and looks at the memory every millisecond until it returns.
func watch(do func() error) (p peak, err error) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	look := func() {
		metrics.Read(samples)
		p.add(peak{samples[0].Value.Uint64(), samples[1].Value.Uint64() - samples[2].Value.Uint64()})
	}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			look()
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	})
	err = do()
	close(stop)
	watching.Wait()
	look()
	return p, err
}
