package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/user"
)

// host is Meet of replica 0 over sockets.
func host(ctx context.Context, c Config, at place) (Met, error) {
	l, err := listen(ctx, c, at)
	if err != nil {
		return Met{}, err
	}
	local := ipOf(l.Addr())
	if local.IsUnspecified() {
		local = netip.Addr{}
	}
	blob, unable := c.blob(local)
	h := &hosting{
		c:      c,
		roll:   newRoll(ctx, c, described(l, at), self(), blob),
		events: make(chan func() *Error),
		over:   make(chan struct{}),
		open:   map[net.Conn]bool{},
	}
	if unable != nil {
		h.failed, h.until = unable, time.Now().Add(c.patience)
	}
	if at.kind == unixSocket {
		l = user.Only(l, func(conn net.Conn, err error) { h.stranger(remote(conn), err) })
	}
	served := make(chan error, 1)
	go func() {
		served <- h.server().Serve(l)
		close(served)
	}()

	failed := h.run(ctx, served)
	h.end()
	l.Close()
	for range served { // until every goroutine has ended
	}
	if failed != nil {
		return Met{}, failed
	}
	return Met{Blobs: h.roll.blobs(), Local: local}, nil
}

// hosting is a meeting that replica 0 holds. Its fields belong to the goroutine of run, which executes what others send
// it, apart from those named.
type hosting struct {
	c      Config
	roll   *roll
	guests []*guest  // all who have said here, those that end the job too
	silent int       // how many have the table on its way and have not said that they got it
	begun  bool      // the table is on its way
	done   bool      // all have got the table
	failed *Error    // what ends the job
	until  time.Time // when run no longer waits for those who have not heard of failed

	events chan func() *Error // is received from until over is closed
	over   chan struct{}

	mu     sync.Mutex // guards open and ending
	open   map[net.Conn]bool
	ending bool
}

// guest is a replica that is connected and has said here.
type guest struct {
	rank      int
	conn      net.Conn
	out       chan []byte // has room for all that a guest is ever told
	got       bool        // has the table
	dismissed bool        // has been told the last it hears
}

func (h *hosting) server() *handshake.Server {
	return &handshake.Server{
		Secret:  h.c.Secret,
		Job:     h.c.Job,
		Channel: h.c.Channel,
		Check: func(conn net.Conn, hello handshake.Hello) error {
			if h.c.ownUser() { // here, and not before the handshake: so the dialer is told
				select {
				case <-h.over: // a crowd that has not been looked at does not hold up the end
					return errors.New("the rendezvous is over")
				default:
				}
				if err := user.Check(conn); err != nil {
					return err
				}
			}
			switch {
			case hello.Role != handshake.Rendezvous:
				return fmt.Errorf("this is the rendezvous of job %q, not a %v connection", h.c.Job, hello.Role)
			case hello.Peer != 0:
				return &handshake.WrongPeerError{Wanted: hello.Peer, Reached: 0}
			}
			return nil
		},
		Joined:  h.joined,
		Refused: h.refused,
	}
}

// run returns when all have got the table, or with what ends the job. In that case it goes on for a while, so that
// those who are about to come hear of it too.
func (h *hosting) run(ctx context.Context, served <-chan error) *Error {
	for !h.done && (h.failed == nil || h.absent() > 0) {
		wait := h.roll.wait()
		if h.failed != nil {
			wait = min(wait, time.Until(h.until))
		}
		timer := time.NewTimer(wait)
		var failed *Error
		over := true
		select {
		case <-ctx.Done():
			failed = h.roll.ended(ctx, h.unanswered())
		case <-timer.C:
			failed = h.roll.timeOver(h.unanswered())
		case event := <-h.events:
			failed = event()
			over = false
		case err := <-served:
			failed = &Error{Kind: GaveUp, Replicas: []int{0}, Err: err,
				Reason: fmt.Sprintf("replica 0 has given up: its listener failed: %v", err)}
		}
		timer.Stop()
		if failed != nil && h.failed == nil {
			h.failed, h.until = failed, time.Now().Add(h.c.patience)
			h.dismiss()
		}
		if over {
			break
		}
	}
	return h.failed
}

// absent is how many ranks have not been told that the job has failed, apart from those that made it fail.
func (h *hosting) absent() int {
	told := map[int]bool{0: true}
	for _, r := range h.failed.Replicas {
		told[r] = true
	}
	for _, g := range h.guests {
		told[g.rank] = true
	}
	absent := 0
	for rank := range h.c.Size {
		if !told[rank] {
			absent++
		}
	}
	return absent
}

// dismiss tells all guests how it ends.
func (h *hosting) dismiss() {
	farewell := h.lastWord()
	for _, g := range h.guests {
		if !g.dismissed {
			g.dismiss(farewell)
		}
	}
}

// dismiss tells a guest the last it hears.
func (g *guest) dismiss(farewell []byte) {
	g.dismissed = true
	g.out <- farewell
	close(g.out)
}

// lastWord is the message for how it ends.
func (h *hosting) lastWord() []byte {
	if h.failed == nil {
		return appendMessage(nil, tagBegin, nil)
	}
	return appendMessage(nil, tagFailed, appendError(nil, h.failed))
}

// end lets go of all connections soon.
func (h *hosting) end() {
	h.dismiss()
	close(h.over)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = true
	for conn := range h.open {
		_ = conn.SetDeadline(time.Now().Add(linger))
	}
}

// do has the goroutine of run execute an event. It reports false when the meeting is over.
func (h *hosting) do(event func() *Error) bool {
	select {
	case h.events <- event:
		return true
	case <-h.over:
		return false
	}
}

// refused ends the job if replica 0 has no descriptor for a replica. That one dials again: as soon as those who are
// here have been told, and have gone, it is told too.
func (h *hosting) refused(conn net.Conn, hello handshake.Hello, err error) {
	short, ok := errors.AsType[*handshake.ShortError](err)
	if !ok {
		h.stranger(remote(conn), err)
		return
	}
	h.do(func() *Error {
		if h.begun {
			return nil // late
		}
		return &Error{Kind: GaveUp, Replicas: []int{0}, Err: short, Reason: fmt.Sprintf(
			"replica 0 cannot take in replica %d: %v", hello.Rank, short)}
	})
}

func (h *hosting) stranger(from string, err error) {
	h.do(func() *Error {
		h.roll.refuse(from, err)
		return nil
	})
}

// joined is the life of an authenticated connection.
func (h *hosting) joined(conn net.Conn, hello handshake.Hello) {
	defer conn.Close()
	if !h.enter(conn) {
		return
	}
	defer h.leave(conn)

	said, err := readHere(conn)
	if e, ok := errors.AsType[*Error](err); ok {
		h.do(func() *Error {
			if h.begun {
				return nil // late
			}
			return e
		})
		return
	}
	if err != nil {
		h.stranger(remote(conn), fmt.Errorf("replica %d has come and left at once: %w", hello.Rank, err))
		return
	}
	g := &guest{rank: hello.Rank, conn: conn, out: make(chan []byte, 3)}
	from := said.self + " " + remote(conn)
	if !h.do(func() *Error { return h.arrive(g, &arrival{here: said, rank: g.rank, from: from}) }) {
		if h.failed != nil { // it does not change any more
			_, _ = conn.Write(h.lastWord())
		}
		return
	}
	var writer sync.WaitGroup
	writer.Go(g.write)
	defer writer.Wait()
	for {
		t, body, err := readMessage(conn, limitAtHost)
		h.do(func() *Error { return h.heard(g, t, body, err) })
		if err != nil {
			return
		}
	}
}

// enter registers a connection for the end.
func (h *hosting) enter(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open[conn] = true
	return !h.ending
}

func (h *hosting) leave(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, conn)
}

// readHere reads the first message. A replica that gives up at once sends an *Error in its place.
func readHere(conn net.Conn) (here, error) {
	t, body, err := readMessage(conn, limitAtHost)
	switch {
	case err != nil:
		return here{}, err
	case t == tagFailed:
		e, err := parseError(body)
		if err != nil {
			return here{}, err
		}
		e.Err = nil
		return here{}, e
	case t != tagHere:
		return here{}, errMalformed(fmt.Sprintf("message %d comes first", t))
	}
	return parseHere(body)
}

// arrive takes a guest in. The last one brings the table to all.
func (h *hosting) arrive(g *guest, a *arrival) *Error {
	if h.failed == nil && h.begun {
		g.dismiss(appendMessage(nil, tagFailed, appendError(nil, late(a.rank, h.roll.at))))
		return nil
	}
	h.guests = append(h.guests, g)
	if h.failed != nil {
		h.dismiss()
		return nil
	}
	if e := h.roll.add(a); e != nil {
		return e
	}
	if h.roll.missing > 0 {
		return nil
	}
	h.begun = true
	h.silent = len(h.guests)
	table := appendMessage(nil, tagTable, appendTable(nil, h.roll.blobs()))
	for _, g := range h.guests {
		g.out <- table
	}
	return nil
}

func late(rank int, at string) *Error {
	return &Error{Kind: Late, Replicas: []int{rank}, Reason: fmt.Sprintf(
		"replica %d has come late to %s: all ranks had come, the job has begun without you: "+
			"is this process started twice, or of another job with the same name?", rank, at)}
}

// heard is what a guest says after here, or that its connection has ended.
func (h *hosting) heard(g *guest, t tag, body []byte, err error) *Error {
	switch {
	case g.dismissed:
		return nil
	case err != nil:
		return h.roll.gone(g.rank, err)
	case t == tagFailed:
		e, err := parseError(body)
		if err != nil {
			return h.roll.gone(g.rank, err)
		}
		if e.Kind == Missing { // its time is over
			return h.roll.timeOver(h.unanswered())
		}
		e.Err = nil
		return e
	case t != tagGot || !h.begun || g.got:
		return h.roll.gone(g.rank, errMalformed(fmt.Sprintf("message %d out of turn", t)))
	}
	g.got = true
	h.silent--
	h.done = h.silent == 0
	return nil
}

// unanswered lists the ranks that have not said that they got the table.
func (h *hosting) unanswered() []int {
	var ranks []int
	for _, g := range h.guests {
		if !g.got {
			ranks = append(ranks, g.rank)
		}
	}
	return ranks
}

// write sends a guest what it is told, until the end.
func (g *guest) write() {
	for message := range g.out {
		if _, err := g.conn.Write(message); err != nil {
			for range g.out { // the reader finds out
			}
			return
		}
	}
	if half, ok := g.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// remote says where a connection comes from.
func remote(conn net.Conn) string {
	if text := conn.RemoteAddr().String(); text != "" && text != "@" {
		return "at " + text
	}
	return "on this host"
}
