package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"gogcl.dev/internal/netstack"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/user"
)

// sockets is the store of processes that are connected: the host with all visitors, a visitor with the host. An entry
// is alive while its connection is, and kept in the process that reads it: to put a sheet is to send it over all
// connections, those that come later too. A process that reads slowly gets the latest sheet only.
type sockets struct {
	c        Config
	at       site
	place    place          // the host's
	dials    int            // of a visitor, after the first connection was lost
	listener net.Listener   // the host's; nil at a visitor
	running  sync.WaitGroup // the goroutines
	news     chan struct{}  // has an element when list has something

	mu      sync.Mutex // guards what follows, and the entries
	conns   map[net.Conn]bool
	fresh   []*entry
	err     error // of list
	mine    sheet
	message []byte        // mine
	absent  []byte        // mine without blobs, for processes that are not in its table
	puts    int           // how many
	changed chan struct{} // closed at the next put, and when the store is left
	left    bool
}

// openSockets listens, or connects.
func openSockets(ctx context.Context, c Config, at place) (store, error) {
	s := &sockets{
		c:       c,
		at:      site{where: at.text, guard: c.guard(at.kind)},
		place:   at,
		news:    make(chan struct{}, 1),
		conns:   map[net.Conn]bool{},
		changed: make(chan struct{}),
	}
	if c.Rank != c.host {
		conn, err := connect(ctx, c, at)
		if err != nil {
			return nil, err
		}
		s.at.local = ipOf(conn.LocalAddr())
		s.running.Go(func() { s.converse(conn, c.host) })
		return s, nil
	}
	l, err := listen(ctx, c, at)
	if err != nil {
		return nil, err
	}
	s.listener, s.at.where = l, described(l, c.Rank, at)
	if s.at.local = ipOf(l.Addr()); s.at.local.IsUnspecified() {
		s.at.local = netip.Addr{}
	}
	if at.kind == unixSocket {
		l = user.Only(l, func(conn net.Conn, err error) { s.refused(conn, handshake.Hello{}, err) })
	}
	server := &handshake.Server{
		Secret: c.Secret, Job: c.Job, Channel: c.Channel, Check: s.check, Refused: s.refused,
		Spare: netstack.Of(ctx).Spare, Short: s.short,
		Joined: func(conn net.Conn, hello handshake.Hello) { s.converse(conn, hello.Rank) },
	}
	s.running.Go(func() {
		err := server.Serve(l)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
		s.notify()
	})
	return s, nil
}

// check is that of the server. It compares users here and not before the handshake, so that the dialer is told.
func (s *sockets) check(conn net.Conn, hello handshake.Hello) error {
	s.mu.Lock()
	left := s.left
	s.mu.Unlock()
	switch {
	case left: // a crowd that has not been looked at does not hold up the end
		return errors.New("the rendezvous is over")
	case hello.Role != handshake.Rendezvous:
		return fmt.Errorf("this is the rendezvous of job %q, not a %v connection", s.c.Job, hello.Role)
	case hello.Peer != s.c.Rank:
		return &handshake.WrongPeerError{Wanted: hello.Peer, Reached: s.c.Rank}
	case s.at.guard == byUser:
		return user.Check(conn)
	}
	return nil
}

// refused has list return a stranger. It ends the job if the host has no descriptor for a replica. That one
// dials again: as soon as those who are here have been told, and have gone, it is told too.
func (s *sockets) refused(conn net.Conn, hello handshake.Hello, err error) {
	short, ok := errors.AsType[*handshake.ShortError](err)
	if !ok {
		s.hear(&entry{rank: nobody, from: remote(conn)}, sheet{}, err)
		return
	}
	s.shortOf(short, fmt.Sprintf("replica %d", hello.Rank))
}

// short ends the job if the host has taken in nobody for its patience, for want of descriptors. Nobody knows who dials:
// until then it is noted as the refusal of a stranger, for the error at the end of the time.
func (s *sockets) short(short *handshake.ShortError, lasts time.Duration) {
	if lasts < s.c.patience {
		s.hear(&entry{rank: nobody, from: "at the host"}, sheet{}, short)
		return
	}
	s.shortOf(short, "others")
}

// shortOf ends the job for want of a descriptor for somebody, unless all have come or the job has failed.
func (s *sockets) shortOf(short *handshake.ShortError, whom string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mine.Step <= stepHere {
		s.err = &Error{Kind: GaveUp, Replicas: []int{s.c.Rank}, Err: short, Reason: fmt.Sprintf(
			"replica %d cannot take in %s: %v", s.c.Rank, whom, short)}
		s.notify()
	}
}

// converse is the life of an authenticated connection.
func (s *sockets) converse(conn net.Conn, rank int) {
	e := &entry{rank: rank, from: remote(conn)}
	s.mu.Lock()
	left := s.left
	s.conns[conn] = true
	s.mu.Unlock()
	ended := make(chan struct{})
	var writer sync.WaitGroup
	for writer.Go(func() { s.tell(conn, e, ended) }); !left; {
		said, err := readMessage(conn, s.listener == nil, s.c.Size)
		s.hear(e, said, err)
		if err != nil {
			break
		}
	}
	close(ended)
	s.mu.Lock()
	left = s.left
	s.mu.Unlock()
	if left { // TLS would wait for seconds to say goodbye to who does not read
		handshake.Bare(conn).Close()
	}
	conn.Close()
	writer.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// hear keeps what has come over a connection: a sheet, or why it has ended.
func (s *sockets) hear(e *entry, said sheet, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.left:
		return
	case err != nil && e.sheet.Step == 0 && e.rank != nobody && s.listener != nil:
		e.rank, err = nobody, fmt.Errorf("replica %d has come and left at once: %w", e.rank, err)
	}
	if e.ended = err; err == nil {
		e.sheet = said
	}
	if said.Step == stepHere {
		e.nonce = said.Here.Nonce
	}
	if !e.fresh {
		e.fresh = true
		s.fresh = append(s.fresh, e)
	}
	s.notify()
}

// notify ends a wait.
func (s *sockets) notify() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// tell sends what this process puts, until the connection has ended or this process has left.
func (s *sockets) tell(conn net.Conn, to *entry, ended <-chan struct{}) {
	for told := 0; ; {
		s.mu.Lock()
		puts, message, changed, left := s.puts, s.message, s.changed, s.left
		if s.mine.Step == stepTable && !s.mine.Table.has(to.rank, to.nonce) {
			message = s.absent
		}
		s.mu.Unlock()
		switch {
		case puts != told:
			if _, err := conn.Write(message); err != nil {
				return // the reader finds out
			}
			told = puts
		case left:
			if half, ok := conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			return
		default:
			select {
			case <-changed:
			case <-ended:
				return
			}
		}
	}
}

func (s *sockets) put(mine sheet) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine, s.message = mine, appendMessage(nil, mine)
	mine.Table.Blobs = nil
	s.absent = appendMessage(nil, mine)
	s.puts++
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

func (s *sockets) list() (fresh []*entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.err; err != nil {
		if is[*Error](err) {
			s.err = nil // ends the job once
		}
		return nil, err
	}
	for _, e := range s.fresh {
		e.fresh = false
	}
	fresh, s.fresh = s.fresh, nil
	return fresh, nil
}

func (s *sockets) get(e *entry) (sheet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.sheet, e.ended
}

func (s *sockets) wait(ctx context.Context, most time.Duration) bool { return pause(ctx, most, s.news) }

// mostAgain is how often a visitor dials again. A host that takes it in and ends the connection each time does not
// want it.
const mostAgain = 8

// again dials until the host takes this visitor in, or nobody listens any more, or it has dialled often enough.
func (s *sockets) again(ctx context.Context) bool {
	for wait := newBackoff(); s.dials < mostAgain; s.dials++ {
		conn, err := attempt(ctx, s.c, s.place)
		switch {
		case err == nil:
			s.dials++
			s.running.Go(func() { s.converse(conn, s.c.host) })
			return true
		case errors.Is(err, syscall.ECONNREFUSED) || isStranger(err) || !wait.pause(ctx):
			return false
		}
	}
	return false
}

// leave lets go of all connections when what was put last has been sent and the other side has ended, or soon.
func (s *sockets) leave(context.Context) {
	limit := time.Now().Add(linger)
	if s.listener == nil { // it may have waited before
		limit = time.Now().Add(s.c.linger)
	}
	s.mu.Lock()
	s.left = true
	close(s.changed)
	for conn := range s.conns {
		_ = conn.SetDeadline(limit)
	}
	s.mu.Unlock()
	if s.listener != nil {
		s.listener.Close()
	}
	s.running.Wait()
}

func (s *sockets) site() site { return s.at }

func (s *sockets) unmet() string {
	if s.listener != nil {
		return ""
	}
	return fmt.Sprintf("; replica %d had taken it in and says nothing", s.c.host)
}

// remote says where a connection comes from.
func remote(conn net.Conn) string {
	if text := conn.RemoteAddr().String(); text != "" && text != "@" {
		return "at " + text
	}
	return "on this host"
}
