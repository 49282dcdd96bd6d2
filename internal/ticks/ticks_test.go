package ticks

import (
	"testing"
	"testing/synctest"
	"time"
)

// What both clocks say of some milliseconds differs by no more than the program was kept from running between the
// looks, which shows as more time.
func TestBetween(t *testing.T) {
	t.Parallel()
	s := NewScale()
	for range 100 {
		outer := time.Now()
		from := Now()
		inner := time.Now()
		for time.Since(inner) < 2*time.Millisecond {
		}
		least := time.Since(inner)
		to := Now()
		most := time.Since(outer)
		const slack = 20 * time.Microsecond // 1 in 100: the rate that Scale measured
		if d := s.Between(from, to); d < least-slack || d > most+slack {
			t.Fatalf("%v by ticks, want %v to %v", d, least, most)
		}
		since := Since(from)
		if longest := time.Since(outer); since < least-slack || since > longest+slack {
			t.Fatalf("%v since, want %v to %v", since, least, longest)
		}
		if s.Between(to, from) != -s.Between(from, to) {
			t.Fatal("time goes back by another amount")
		}
	}
}

func TestNowGoesOn(t *testing.T) {
	t.Parallel()
	last := Now()
	for range 100000 {
		now := Now()
		if now < last {
			t.Fatalf("%d after %d", now, last)
		}
		last = now
	}
}

var sink int64

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		sink = Now()
	}
}

func BenchmarkSince(b *testing.B) {
	for b.Loop() {
		sink = sinceStart()
	}
}

// In a bubble time stands still, and NewScale must not wait for it.
func TestScaleInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if s := NewScale(); s.Between(3, 5) <= 0 {
			t.Errorf("%v", s)
		}
	})
}

// In a bubble Since must not keep for all others what is no measurement.
func TestSinceInBubble(t *testing.T) {
	known.Store(nil)
	synctest.Test(t, func(t *testing.T) {
		if from := Now(); Since(from) < 0 {
			t.Error("time goes back")
		}
	})
	if s := known.Load(); s != nil {
		t.Errorf("%v is kept", *s)
	}
}

// Until the last FollowTime is undone ticks are those of the bubble, though Since has measured a tick of before.
func TestFollowTime(t *testing.T) {
	counter := useCounter.Load()
	Since(Now()) // has measured a tick
	first, second := FollowTime(), FollowTime()
	for range 2 { // the second time counts as none
		first()
	}
	synctest.Test(t, func(t *testing.T) {
		from := Now()
		time.Sleep(time.Hour)
		if d := Since(from); d != time.Hour {
			t.Errorf("%v since, want an hour", d)
		}
		if d := NewScale().Between(from, Now()); d != time.Hour {
			t.Errorf("%v between, want an hour", d)
		}
	})
	second()
	if useCounter.Load() != counter {
		t.Errorf("reads the counter: %v, and %v before", useCounter.Load(), counter)
	}
}
