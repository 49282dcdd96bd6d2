package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/transport"
)

// patientParker parks until it is woken, however short the time. A word that wakes nobody then shows as a hang, where
// else it takes a little longer.
type patientParker struct {
	chanParker
	watch func() // called by the first Watch, which wakes nobody
}

func (p *patientParker) Park(time.Duration) { <-p.token }

func (p *patientParker) Watch(Link) error {
	if f := p.watch; f != nil {
		p.watch = nil
		f()
	}
	return nil
}

// patientNode is loneNode with a patientParker.
func patientNode(t testing.TB, rank int) (*Node, *Lane, *patientParker) {
	n, l, _ := loneNode(t, rank)
	p := &patientParker{chanParker: chanParker{make(chan struct{}, 1)}}
	l.parker = p
	return n, l, p
}

// lateLink is a Poster that notices late that what it was given has been taken: words come before.
type lateLink struct {
	scriptLink
	words func()
}

func (l *lateLink) Retract() {}

func (l *lateLink) Send(head, body, tail []byte) (int, error) {
	if words := l.words; words != nil {
		l.words = nil
		words()
		return 0, nil
	}
	return l.scriptLink.Send(head, body, tail)
}

// TestLeftHavingRead: a replica that has read a message and left is no reason to fail for its sender, whose link has
// not noticed yet that the message is taken. Over MPICH's UCX that was a mismatch of lengths.
func TestLeftHavingRead(t *testing.T) {
	for _, read := range []uint64{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			n, l, p := patientNode(t, 0)
			n.Attach(1, rootLane, &lateLink{words: func() {
				word := leftMessage(0)
				binary.LittleEndian.PutUint64(word[len(word)-8:], read)
				if err := n.Handle(1, transport.AppendCall(word, hostileCall)); err != nil {
					t.Error(err)
				}
				p.Wake()
			}})
			err := l.Exchange(t.Context(), hostileCall,
				[]transport.Transfer{{Kind: transport.Send, Peer: 1, Buf: make([]byte, plainBytes)}})
			if (err == nil) != (read == 1) {
				t.Errorf("after it has read %d messages: %v", read, err)
			}
		})
	}
}

// leftMessage is that a replica leaves all lanes after so many messages sent.
func leftMessage(sent uint64) []byte {
	b := binary.LittleEndian.AppendUint64(append(appendLane(nil, left, rootLane), 1), sent)
	return binary.LittleEndian.AppendUint64(b, 0)
}

// TestWordsWake: each word that a parked lane may be waiting for wakes it.
func TestWordsWake(t *testing.T) {
	cause := errors.New("gives up")
	receive := func() []transport.Transfer {
		return []transport.Transfer{{Kind: transport.Recv, Peer: 1, Buf: make([]byte, plainBytes)}}
	}
	var sends []transport.Transfer // one more than there is credit for
	for tag := range uint32(transport.MaxUnread + 1) {
		sends = append(sends, transport.Transfer{Kind: transport.Send, Peer: 1, Tag: tag, Buf: make([]byte, 8)})
	}
	whole := func() *scriptLink {
		f := frame{call: hostileCall, length: plainBytes}
		return &scriptLink{bytes: message(f, payloadOf(0, plainBytes)), some: 1000}
	}
	handle := func(t *testing.T, n *Node, message []byte) {
		if err := n.Handle(1, message); err != nil {
			t.Error(err)
		}
	}
	other := hostileCall
	other.Root++
	for name, test := range map[string]struct {
		batch []transport.Transfer
		say   func(t *testing.T, n *Node, l *Lane, cancel func(error))
		good  func(error) bool
	}{
		"a link": {receive(), func(t *testing.T, n *Node, l *Lane, _ func(error)) {
			n.Attach(1, rootLane, whole())
		}, func(err error) bool { return err == nil }},
		"credit": {sends, func(t *testing.T, n *Node, l *Lane, _ func(error)) {
			handle(t, n, binary.LittleEndian.AppendUint64(appendLane(nil, credit, rootLane), 1))
		}, func(err error) bool { return err == nil }},
		"left": {receive(), func(t *testing.T, n *Node, l *Lane, _ func(error)) {
			handle(t, n, leftMessage(0))
		}, func(err error) bool { return errors.As(err, new(*transport.ClosedError)) }},
		"left, while it sends": {sends, func(t *testing.T, n *Node, l *Lane, _ func(error)) {
			handle(t, n, leftMessage(1))
		}, func(err error) bool { return errors.As(err, new(*transport.ClosedError)) }},
		"another call": {receive(), func(t *testing.T, n *Node, l *Lane, _ func(error)) {
			handle(t, n, transport.AppendCall(appendLane(nil, waits, rootLane), other))
		}, func(err error) bool { return errors.As(err, new(*transport.MismatchError)) }},
		"abort": {receive(), func(t *testing.T, n *Node, l *Lane, _ func(error)) {
			n.Abort(cause)
		}, func(err error) bool { return errors.Is(err, cause) }},
		"context": {receive(), func(_ *testing.T, _ *Node, _ *Lane, cancel func(error)) {
			cancel(cause)
		}, func(err error) bool { return errors.Is(err, cause) }},
		"close": {receive(), func(_ *testing.T, _ *Node, l *Lane, _ func(error)) {
			l.Close()
		}, func(err error) bool { return errors.As(err, new(*transport.ClosedError)) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, l, _ := patientNode(t, 0)
				done := make(chan error)
				exchange := func(ctx context.Context, call transport.Call, batch []transport.Transfer) {
					done <- l.Exchange(ctx, call, batch)
				}
				// Before, it has parked with another context.
				n.Attach(2, rootLane, &scriptLink{})
				before := hostileCall
				before.Seq--
				many := append([]transport.Transfer{}, sends...)
				for i := range many {
					many[i].Peer = 2
				}
				ctx, stop := context.WithCancel(context.Background())
				defer stop()
				go exchange(ctx, before, many)
				synctest.Wait()
				n.mu.Lock()
				heard := l.peers[2].heard(1)
				n.mu.Unlock()
				l.wake()
				if err := <-done; err != nil || !heard {
					t.Fatal(err)
				}
				if test.batch[0].Kind == transport.Send {
					n.Attach(1, rootLane, &scriptLink{})
				}
				second, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				go exchange(second, hostileCall, test.batch)
				synctest.Wait()
				select {
				case err := <-done:
					t.Fatalf("nothing was said, and Exchange returns %v", err)
				default:
				}
				go test.say(t, n, l, cancel)
				if err := <-done; !test.good(err) {
					t.Errorf("got %v", err)
				}
				n.Abort(cause) // nobody reads what was sent
				l.Close()
			})
		})
	}
}

// TestWordBeforePark: a word that comes after a lane's last look, and before it parks, is not slept through.
func TestWordBeforePark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l, p := patientNode(t, 0)
		cause := errors.New("gives up")
		p.watch = func() { n.Abort(cause) }
		n.Attach(1, rootLane, &scriptLink{})
		err := l.Exchange(context.Background(), hostileCall,
			[]transport.Transfer{{Kind: transport.Recv, Peer: 1, Buf: make([]byte, 8)}})
		if !errors.Is(err, cause) {
			t.Errorf("got %v, want %v", err, cause)
		}
		l.Close()
	})
}

// TestAsideToItsEnd: a message that was put aside, and has been folded, is read to its end before the Exchange ends.
func TestAsideToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l, _ := patientNode(t, 0)
		links := [3]*scriptLink{1: {some: 1000}, 2: {some: 1000}}
		n.Attach(1, rootLane, links[1])
		n.Attach(2, rootLane, links[2])
		f := frame{call: hostileCall, length: plainBytes}
		first, second := message(f, payloadOf(1, plainBytes)), message(f, payloadOf(2, plainBytes))
		end := len(second) - pad(plainBytes)
		links[2].bytes = second[:end]
		got := make([]byte, plainBytes)
		xor := func(dst, a, b []byte) {
			for i := range dst {
				dst[i] = a[i] ^ b[i]
			}
		}
		done := make(chan error)
		go func() {
			done <- l.Exchange(context.Background(), hostileCall, []transport.Transfer{
				{Kind: transport.RecvFold, Peer: 1, Buf: got, With: make([]byte, plainBytes), Fold: xor},
				{Kind: transport.RecvFold, Peer: 2, Buf: got, Fold: xor, Next: true},
			})
		}()
		synctest.Wait() // the second message has been put aside
		links[1].bytes = first
		l.wake()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("Exchange returns %v in the middle of a message", err)
		default:
		}
		links[2].bytes = second[end:]
		l.wake()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for i, b := range payloadOf(2, plainBytes) {
			if want := b ^ payloadOf(1, plainBytes)[i]; got[i] != want {
				t.Fatalf("byte %d is %d, want %d", i, got[i], want)
			}
		}
		l.Close()
	})
}
