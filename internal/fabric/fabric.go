package fabric

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Faults is what a network does by chance. The zero value is a network without fault and delay.
type Faults struct {
	// Delay is the longest time that a write, or a dial, takes to arrive. Each draws its own.
	Delay time.Duration

	// Break, Reset and Refuse are how many writes or dials there are to one that fails; 0: none fails. Break ends both
	// directions in the middle of a write, as if both ends were closed. Reset does the same by ECONNRESET, and loses
	// what is on its way. Refuse has a dial end by ECONNREFUSED.
	Break, Reset, Refuse int

	// Lossy says which writes are at risk by Break and Reset: those to, or from, a process of this name. "": all.
	Lossy string
}

// Fabric connects processes.
type Fabric struct {
	seed   uint64
	faults Faults

	mu        sync.Mutex // guards what follows, and the fields of processes
	listeners map[string]*listener
	owners    map[string]*Process            // by address: who listens there, or did
	hosts     map[netip.Addr]map[string]bool // that have an address
	port      int
	dialled   map[string]uint64 // by dialer and address: how often
	harm      []string
	harmed    time.Time // when the last of it was done
	conns     map[*conn]bool

	cutting sync.Mutex         // guards cuts; nothing else is locked within it
	cuts    map[[2]string]bool // by name, from whom to whom nothing arrives until the network is whole
}

// New makes a network. Two of the same seed and faults do the same harm to connections that are dialled in the same
// order: chances are drawn by the number of a dial among those of one process to one address.
func New(seed uint64, faults Faults) *Fabric {
	return &Fabric{seed: seed, faults: faults, listeners: map[string]*listener{}, owners: map[string]*Process{},
		hosts: map[netip.Addr]map[string]bool{}, port: firstPort,
		dialled: map[string]uint64{}, conns: map[*conn]bool{}, cuts: map[[2]string]bool{}}
}

// firstPort is behind the ports that tests name.
const firstPort = 20000

// Harm lists what the network has done to the job so far, in words.
func (f *Fabric) Harm() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.harm)
}

// LastHarm is when the network has done the last harm so far.
func (f *Fabric) LastHarm() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.harmed
}

// Open is how many ends of connections are not closed.
func (f *Fabric) Open() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.conns)
}

// note keeps what has been done. The caller holds f.mu.
func (f *Fabric) note(format string, arguments ...any) {
	f.harmed = time.Now()
	f.harm = append(f.harm, fmt.Sprintf("%s: ", time.Now().Format("05.000"))+fmt.Sprintf(format, arguments...))
}

// chances are those of something with a name.
func (f *Fabric) chances(name string) *rand.Rand {
	h := fnv.New64a()
	io.WriteString(h, name)
	return rand.New(rand.NewPCG(f.seed, h.Sum64()))
}

// Process is what one process listens at and dials: a netstack.Stack.
type Process struct {
	f       *Fabric
	name    string
	host    string
	address netip.Addr

	limit, used int // descriptors; a limit of 0 is none
	failures    int // Accepts that are yet to fail; less than 0: all

	mute, deaf atomic.Bool // nothing that it sends arrives, nothing arrives at it

	life
}

// Process makes a process on a host, which listens and is seen at the address. name tells processes apart.
func (f *Fabric) Process(name, host string, address netip.Addr) *Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts[address] == nil {
		f.hosts[address] = map[string]bool{}
	}
	f.hosts[address][host] = true
	return &Process{f: f, name: name, host: host, address: address, life: newLife()}
}

// Cut has nothing arrive any more that the process sends, and nothing that others send to it: a cable is drawn. It does
// not learn that, and neither do the others.
func (p *Process) Cut() {
	p.deaf.Store(true)
	p.Mute()
}

// Mute has nothing arrive any more that the process sends, as when it is stopped.
func (p *Process) Mute() {
	p.mute.Store(true)
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.f.note("process %s is cut off", p.name)
}

// reaches reports whether what p sends to another process arrives.
func (p *Process) reaches(other *Process) bool { return !p.mute.Load() && !other.deaf.Load() }

// Limit bounds how many descriptors more the process may open. Less than 0 takes the bound away.
func (p *Process) Limit(more int) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if p.limit = 0; more >= 0 {
		p.limit = max(p.used+more, 1)
		p.f.note("process %s has %d descriptors left", p.name, more)
	}
}

// FailAccept has the next Accepts of the process end by EMFILE, all if times is less than 0.
func (p *Process) FailAccept(times int) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.failures = times
	p.f.note("%d Accepts of process %s fail", times, p.name)
}

// take takes a descriptor. The caller holds f.mu.
func (p *Process) take() error {
	if p.limit > 0 && p.used >= p.limit {
		return syscall.EMFILE
	}
	p.used++
	return nil
}

// spare is a descriptor.
type spare struct {
	p    *Process
	once sync.Once
}

// Close gives it back.
func (s *spare) Close() error {
	s.once.Do(func() {
		s.p.f.mu.Lock()
		defer s.p.f.mu.Unlock()
		s.p.used--
	})
	return nil
}

// Spare implements netstack.Stack.
func (p *Process) Spare() (io.Closer, error) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if err := p.take(); err != nil {
		return nil, &os.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	return &spare{p: p}, nil
}

// Address is that at which it listens and is seen.
func (p *Process) Address() netip.Addr { return p.address }

// Host implements netstack.Stack.
func (p *Process) Host() string { return p.host }

// failed is an error as package net has them.
func failed(op, network string, err error) error {
	return &net.OpError{Op: op, Net: network, Err: os.NewSyscallError(op, err)}
}

// Owner is the process that listens at an address, or did last, or nil.
func (f *Fabric) Owner(address string) *Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.owners[address]
}

// Listen implements netstack.Stack. A port of 0 is any that is free.
func (p *Process) Listen(_ context.Context, network, address string) (net.Listener, error) {
	f := p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := p.addressOf(network, address)
	if err != nil {
		return nil, err
	}
	if p.Dead() {
		return nil, failed("listen", network, syscall.EADDRNOTAVAIL)
	}
	if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		if hosts := f.hosts[tcp.AddrPort().Addr()]; hosts != nil && !hosts[p.host] {
			return nil, failed("bind", network, syscall.EADDRNOTAVAIL)
		}
	}
	if f.listeners[at.String()] != nil {
		return nil, failed("listen", network, syscall.EADDRINUSE)
	}
	if err := p.take(); err != nil {
		return nil, failed("listen", network, err)
	}
	l := &listener{p: p, network: network, at: at, changed: make(chan struct{})}
	f.listeners[at.String()], f.owners[at.String()] = l, p
	return l, nil
}

// addressOf is an address of the process; see Listen. The caller holds f.mu.
func (p *Process) addressOf(network, address string) (net.Addr, error) {
	if network == "unix" {
		return &net.UnixAddr{Name: address, Net: network}, nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	if at.Port() == 0 {
		at = netip.AddrPortFrom(at.Addr(), p.f.freePort())
	}
	return net.TCPAddrFromAddrPort(at), nil
}

// freePort is a port that nobody has had. The caller holds f.mu.
func (f *Fabric) freePort() uint16 {
	f.port++
	return uint16(f.port)
}

// listener is a net.Listener. The fabric's mutex guards its fields.
type listener struct {
	p       *Process
	network string
	at      net.Addr
	backlog []*conn // dialled, not accepted
	closed  bool
	changed chan struct{} // closed at the next change
}

// maxBacklog is how many connections wait to be accepted.
const maxBacklog = 128

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.at }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	f := l.p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if resumed := l.p.stopped(); resumed != nil {
			f.mu.Unlock()
			<-resumed
			f.mu.Lock()
			continue
		}
		switch {
		case l.closed:
			return nil, &net.OpError{Op: "accept", Net: l.network, Err: net.ErrClosed}
		case l.p.failures != 0:
			l.p.failures = max(l.p.failures-1, -1)
			return nil, failed("accept", l.network, syscall.EMFILE)
		case l.p.limit > 0 && l.p.used >= l.p.limit:
			return nil, failed("accept", l.network, syscall.EMFILE)
		case len(l.backlog) > 0:
			c := l.backlog[0]
			l.backlog = l.backlog[1:]
			l.p.used++
			f.conns[c] = true
			return c, nil
		}
		changed := l.changed
		f.mu.Unlock()
		<-changed
		f.mu.Lock()
	}
}

// notify wakes Accept. The caller holds f.mu.
func (l *listener) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Close implements net.Listener. Connections that nobody has accepted are reset.
func (l *listener) Close() error {
	f := l.p.f
	f.mu.Lock()
	if l.closed {
		f.mu.Unlock()
		return net.ErrClosed
	}
	l.closed = true
	l.p.used--
	delete(f.listeners, l.at.String())
	left := l.backlog
	l.backlog = nil
	l.notify()
	f.mu.Unlock()
	for _, c := range left {
		c.reset()
	}
	return nil
}

// Dial implements netstack.Stack. It succeeds before the other side accepts.
func (p *Process) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	f := p.f
	f.mu.Lock()
	from := p.name + " to " + address
	f.dialled[from]++
	chances := f.chances(fmt.Sprint(from, f.dialled[from]))
	refused := one(chances, f.faults.Refuse)
	if refused {
		f.note("a dial of process %s to %s is refused", p.name, address)
	}
	late := delay(chances, f.faults.Delay)
	f.mu.Unlock()
	if resumed := p.stopped(); resumed != nil {
		<-resumed
	}
	if err := sleep(ctx, late); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	f.mu.Lock()
	l := f.listeners[address]
	for l != nil && !refused && (!p.joined(l.p) || len(l.backlog) >= maxBacklog) {
		f.mu.Unlock() // the other side does not answer
		if err := sleep(ctx, time.Second); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		f.mu.Lock()
		l = f.listeners[address]
	}
	defer f.mu.Unlock()
	if l == nil || refused || p.Dead() {
		return nil, failed("connect", network, syscall.ECONNREFUSED)
	}
	if err := p.take(); err != nil {
		return nil, failed("socket", network, err)
	}
	near := &conn{p: p, local: net.Addr(&net.UnixAddr{Net: network}), remote: l.at}
	if network != "unix" {
		near.local = net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.address, f.freePort()))
	}
	far := &conn{p: l.p, local: l.at, remote: near.local}
	join(near, far, chances)
	f.conns[near] = true
	l.backlog = append(l.backlog, far)
	l.notify()
	return near, nil
}

// sleep waits, or returns why the context has ended: in words of package net, if its time is over.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		if ctx.Err() == context.DeadlineExceeded {
			return os.ErrDeadlineExceeded
		}
		return ctx.Err()
	}
}

// one draws whether something happens that happens once in so many times; 0 is never.
func one(chances *rand.Rand, in int) bool { return in > 0 && chances.IntN(in) == 0 }

// delay draws a time up to a limit.
func delay(chances *rand.Rand, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(chances.Int64N(int64(limit)))
}
