package stream

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// overHost is the host of replica 0 of 3. It tells replica 1 of an abort by replica 2, and replica 1 leaves over that
// before replica 0 has noted the abort.
type overHost struct {
	loneHost
	word  []byte // of replica 1, that it leaves
	wait  func() error
	ended chan error
}

func (h *overHost) Tell(to int, message []byte) {
	if message[0] != aborted || to != 1 {
		return
	}
	if err := h.node.Handle(1, h.word); err != nil {
		h.ended <- err
		return
	}
	early := make(chan bool)
	go func() {
		err := h.wait()
		close(early)
		h.ended <- err
	}()
	select {
	case <-early: // a wait that has not looked for the abort
	case <-time.After(20 * time.Millisecond):
	}
}

// unheardBoards has something that nobody has heard, nor will.
type unheardBoards struct{ *told }

func (unheardBoards) Unheard() error { return &transport.ClosedError{Replica: 1} }

// TestLeftOverAnAbort: a peer that has left over an abort, of which this replica is still telling the others, is not
// lost and has not left of itself. That holds for each wait that looks at who has left.
func TestLeftOverAnAbort(t *testing.T) {
	call := transport.Call{Group: 1, Seq: 1}
	type test struct {
		before func(l *Lane) error
		word   []byte
		wait   func(l *Lane) error
	}
	closes := func(l *Lane) error { return l.Close() }
	tests := map[string]test{
		"Close with an unread message": {
			before: func(l *Lane) error {
				return l.Exchange(t.Context(), call, one(l, transport.Send, make([]byte, 8)))
			},
			word: leftMessage(0), wait: closes,
		},
		"Close with boards that nobody hears": {
			before: func(l *Lane) error { l.SetBoards(unheardBoards{&told{}}); return nil },
			word:   leftMessage(0), wait: closes,
		},
		"Settle": {
			before: func(l *Lane) error { return l.Exchange(t.Context(), call, nil) },
			word:   leftMessage(0),
			wait:   func(l *Lane) error { return l.Settle(call, []int{1}, time.Minute) },
		},
	}
	for sent := range uint64(2) {
		tests[fmt.Sprintf("Exchange, %d messages sent in part", sent)] = test{
			word: leftMessage(sent),
			wait: func(l *Lane) error {
				err := l.Exchange(t.Context(), call, one(l, transport.Recv, make([]byte, 8)))
				if abort := (*transport.AbortError)(nil); errors.As(err, &abort) && abort.Replica == 2 {
					if errors.As(err, new(*transport.LostError)) || errors.As(err, new(*transport.LateError)) {
						return err
					}
					return nil
				}
				return fmt.Errorf("not the abort: %w", err)
			},
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := &overHost{word: test.word, ended: make(chan error, 1)}
			n, l, err := NewNode(Config{Rank: 0, Size: 3, Host: h})
			if err != nil {
				t.Fatal(err)
			}
			h.node = n
			n.Attach(1, rootLane, &scriptLink{ends: true})
			if test.before != nil {
				if err := test.before(l); err != nil {
					t.Fatal(err)
				}
			}
			h.wait = func() error { return test.wait(l) }
			abort := appendAbort(nil, &transport.AbortError{Replica: 2, Cause: errors.New("no more")})
			if err := n.Handle(2, abort); err != nil {
				t.Fatal(err)
			}
			if err := <-h.ended; err != nil {
				t.Error(err)
			}
			l.Close()
		})
	}
}
