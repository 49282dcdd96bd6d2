package stream

import (
	"errors"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// wordLink has a replica be told something when the lane looks at the link.
type wordLink struct {
	scriptLink
	words func()
}

func (l *wordLink) Peek(n int) ([]byte, error) {
	if words := l.words; words != nil {
		l.words = nil
		words()
	}
	return l.scriptLink.Peek(n)
}

// TestSettleOverAbort: a replica that has left over an abort has not left without the call, also where both words come
// while Settle looks.
func TestSettleOverAbort(t *testing.T) {
	call := transport.Call{Group: 1, Seq: 1}
	abort := appendAbort(nil, &transport.AbortError{Replica: 1, Cause: errors.New("no more")})
	for name, test := range map[string]struct {
		words [][]byte
		want  bool // a ClosedError
	}{
		"an abort, and it leaves": {[][]byte{abort, leftMessage(0)}, false},
		"it leaves":               {[][]byte{leftMessage(0)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			n, l, _ := loneNode(t, 0)
			n.Attach(1, rootLane, &wordLink{words: func() {
				for _, word := range test.words {
					if err := n.Handle(1, word); err != nil {
						t.Error(err)
					}
				}
			}})
			if err := l.Exchange(t.Context(), call, nil); err != nil {
				t.Fatal(err)
			}
			err := l.Settle(call, []int{1}, time.Minute)
			if closed := errors.As(err, new(*transport.ClosedError)); closed != test.want || !test.want && err != nil {
				t.Errorf("Settle: %v", err)
			}
			l.Close()
		})
	}
}
