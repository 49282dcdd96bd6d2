package fabric

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// life is whether a process runs.
type life struct {
	died   chan struct{} // closed when it has been killed
	killed atomic.Bool
	writes atomic.Int64 // that it still makes before it is killed; 0: it is not

	turning sync.Mutex    // guards what follows; nothing else is locked within it
	resumed chan struct{} // closed when it goes on; nil: it is not stopped
	ended   time.Time     // when the kernel says so; zero: it has not
}

func newLife() life { return life{died: make(chan struct{})} }

// Kill ends the process, as SIGKILL does: what it has written arrives, and then the end of its connections. lossy: some
// of what is under way is lost, as by a reset. The kernel says late that it has ended.
func (p *Process) Kill(lossy bool, late time.Duration) {
	if !p.killed.CompareAndSwap(false, true) {
		return
	}
	p.Exit(late)
	close(p.died)
	p.Resume()
	f := p.f
	var listeners []*listener
	var conns []*conn
	f.mu.Lock()
	f.note("process %s is killed", p.name)
	for _, l := range f.listeners {
		if l.p == p {
			listeners = append(listeners, l)
		}
	}
	for c := range f.conns {
		if c.p == p {
			conns = append(conns, c)
		}
	}
	f.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	for _, c := range conns {
		c.die(lossy)
	}
}

// KillAfter has the process be killed in the place of a write.
func (p *Process) KillAfter(writes int) { p.writes.CompareAndSwap(0, int64(writes)+1) }

// spent reports whether the process writes no more. The caller holds a connection.
func (p *Process) spent() bool {
	if p.Dead() {
		return true
	}
	if p.writes.Load() == 0 || p.writes.Add(-1) > 0 {
		return false
	}
	p.writes.Store(1) // so do all others
	go p.Kill(false, 0)
	return true
}

// Dead reports whether the process has been killed.
func (p *Process) Dead() bool { return p.killed.Load() }

// Died is closed when the process has been killed.
func (p *Process) Died() <-chan struct{} { return p.died }

// Lives is a context that ends when the process is killed, and with cancel, which has to be called.
func (p *Process) Lives(ctx context.Context) (lives context.Context, cancel func()) {
	lives, stop := context.WithCancel(ctx)
	go func() {
		select {
		case <-p.died:
			stop()
		case <-lives.Done():
		}
	}()
	return lives, stop
}

// Exit has the kernel say, a while later, that the process has ended, whose connections are closed.
func (p *Process) Exit(late time.Duration) {
	p.turning.Lock()
	defer p.turning.Unlock()
	if p.ended.IsZero() {
		p.ended = time.Now().Add(late)
	}
}

// Ended reports whether the kernel of its host says that the process has ended.
func (p *Process) Ended() bool {
	p.turning.Lock()
	defer p.turning.Unlock()
	return !p.ended.IsZero() && !time.Now().Before(p.ended)
}

// Stop stops the process, as SIGSTOP does: it sends and reads nothing. What others send waits.
func (p *Process) Stop() {
	p.turning.Lock()
	if p.resumed == nil && !p.Dead() {
		p.resumed = make(chan struct{})
	}
	p.turning.Unlock()
	p.says("process %s is stopped")
}

// Resume has it go on.
func (p *Process) Resume() {
	p.turning.Lock()
	stopped := p.resumed != nil
	if stopped {
		close(p.resumed)
		p.resumed = nil
	}
	p.turning.Unlock()
	if stopped {
		p.says("process %s goes on")
	}
}

func (p *Process) says(what string) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.f.note(what, p.name)
}

// stopped is what is closed when the process goes on, or nil.
func (p *Process) stopped() <-chan struct{} {
	p.turning.Lock()
	defer p.turning.Unlock()
	if p.resumed == nil {
		return nil
	}
	return p.resumed
}

// Runs waits until the process is not stopped.
func (p *Process) Runs() {
	for resumed := p.stopped(); resumed != nil; resumed = p.stopped() {
		<-resumed
	}
}

// thaw waits until the process of this end is not stopped. The caller holds mu.
func (c *conn) thaw() {
	for resumed := c.p.stopped(); resumed != nil; resumed = c.p.stopped() {
		c.mu.Unlock()
		<-resumed
		c.mu.Lock()
	}
}

// die ends a connection of a process that has been killed.
func (c *conn) die(lossy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	how := error(io.EOF)
	if c.in.bytes > 0 || lossy {
		how = syscall.ECONNRESET
		c.other.broken = how
	}
	if out := &c.other.in; lossy && out.end == nil {
		now, arrived := time.Now(), 0
		for arrived < len(out.segments) && out.segments[arrived].arrived(now) {
			arrived++
		}
		if under := len(out.segments) - arrived; under > 0 {
			last := arrived + c.chances.IntN(under)
			part := &out.segments[last]
			part.bytes = part.bytes[:1+c.chances.IntN(len(part.bytes))]
			out.segments = out.segments[:last+1]
			out.last = part.at
		}
	}
	c.ends(how)
	c.in = queue{end: syscall.ECONNRESET, ends: time.Now()}
	c.broken, c.half = syscall.ECONNRESET, true
	c.notify()
}

// Part has nothing arrive any more that one process sends to another, until Heal. It is not lost: it is sent again.
func (f *Fabric) Part(from, to *Process) {
	f.cutting.Lock()
	f.cuts[[2]string{from.name, to.name}] = true
	f.cutting.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("nothing arrives from process %s at process %s", from.name, to.name)
}

// Snap breaks the connections between two processes, as somebody in between may. Both ends see that.
func (f *Fabric) Snap(from, to *Process, resets bool) {
	var conns []*conn
	f.mu.Lock()
	for c := range f.conns {
		if c.p == from && c.other.p == to {
			conns = append(conns, c)
		}
	}
	f.mu.Unlock()
	how, kind := error(io.EOF), "broken"
	if resets {
		how, kind = syscall.ECONNRESET, "reset"
	}
	for _, c := range conns {
		c.mu.Lock()
		if !c.closed && !c.other.closed {
			c.harm(how, kind)
		}
		c.mu.Unlock()
	}
}

// Heal undoes each Part.
func (f *Fabric) Heal() {
	f.cutting.Lock()
	clear(f.cuts)
	f.cutting.Unlock()
	f.mu.Lock()
	f.note("the network is whole")
	var conns []*conn
	for c := range f.conns {
		conns = append(conns, c)
	}
	f.mu.Unlock()
	for _, c := range conns {
		c.mu.Lock()
		for _, end := range []*conn{c, c.other} {
			in := &end.in
			for i := range in.segments {
				if s := &in.segments[i]; s.waits {
					s.waits, s.at = false, time.Now()
					in.last = s.at
				}
			}
			if in.waits {
				in.waits, in.ends = false, time.Now()
			}
		}
		c.notify()
		c.mu.Unlock()
	}
}

// parted reports whether what p sends to another process waits.
func (p *Process) parted(other *Process) bool {
	p.f.cutting.Lock()
	defer p.f.cutting.Unlock()
	return p.f.cuts[[2]string{p.name, other.name}]
}

// joined reports whether what two processes send each other arrives.
func (p *Process) joined(other *Process) bool {
	return p.reaches(other) && other.reaches(p) && !p.parted(other) && !other.parted(p)
}
