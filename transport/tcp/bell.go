package tcp

import (
	"time"

	"gogcl.dev/transport/internal/stream"
)

// bell is a stream.Parker for links that are pumps.
type bell struct {
	rung  chan struct{}
	timer *time.Timer
}

func newBell() *bell {
	b := &bell{rung: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	b.timer.Stop()
	return b
}

// Watch implements stream.Parker.
func (b *bell) Watch(l stream.Link) error {
	if l, ok := l.(*pump); ok {
		l.wakes(b)
	}
	return nil
}

// Park implements stream.Parker.
func (b *bell) Park(limit time.Duration) {
	if limit < 0 {
		<-b.rung
		return
	}
	b.timer.Reset(limit)
	select {
	case <-b.rung:
	case <-b.timer.C:
	}
	b.timer.Stop()
}

// Wake implements stream.Parker.
func (b *bell) Wake() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// Close implements stream.Parker.
func (b *bell) Close() error { return nil }
