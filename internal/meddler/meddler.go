// Package meddler carries connections over TCP on loopback, and does harm to them: what a network, a firewall or a
// broken switch may do.
package meddler

import (
	"net"
	"sync"
)

// Filter is given what one side of a connection has sent, and returns what the other side gets. number counts the
// connections from 0, back is whether the bytes go to the side that has dialled. It is called by a goroutine for each
// connection and direction.
type Filter func(number int, back bool, b []byte) []byte

// Proxy carries connections to an address.
type Proxy struct {
	listener net.Listener
	to       string
	filter   Filter
	work     sync.WaitGroup

	mu    sync.Mutex // guards what follows
	conns [][2]*net.TCPConn
	ended bool
}

// New begins to carry connections.
func New(to string, filter Filter) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, to: to, filter: filter}
	p.work.Go(p.serve)
	return p, nil
}

// Address is where the Proxy is dialled.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// serve takes connections until the Proxy is closed.
func (p *Proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.to)
		if err != nil {
			near.Close()
			continue
		}
		pair := [2]*net.TCPConn{near.(*net.TCPConn), far.(*net.TCPConn)}
		p.mu.Lock()
		number, ended := len(p.conns), p.ended
		p.conns = append(p.conns, pair)
		p.mu.Unlock()
		if ended {
			near.Close()
			far.Close()
			return
		}
		p.work.Go(func() { p.carry(number, false, pair[0], pair[1]) })
		p.work.Go(func() { p.carry(number, true, pair[1], pair[0]) })
	}
}

// carry moves bytes in one direction.
func (p *Proxy) carry(number int, back bool, from, to *net.TCPConn) {
	room := make([]byte, 64<<10)
	for {
		n, err := from.Read(room)
		if n > 0 {
			if _, failed := to.Write(p.filter(number, back, room[:n])); failed != nil {
				err = failed
			}
		}
		if err != nil {
			to.CloseWrite()
			return
		}
	}
}

// Reset ends the connections from the one numbered first on, by a reset to both sides.
func (p *Proxy) Reset(first int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pair := range p.conns[min(first, len(p.conns)):] {
		for _, conn := range pair {
			conn.SetLinger(0)
			conn.Close()
		}
	}
}

// Close ends all connections.
func (p *Proxy) Close() {
	p.listener.Close()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.Reset(0)
	p.work.Wait()
}
