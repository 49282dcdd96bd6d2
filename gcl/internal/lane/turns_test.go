package lane

import (
	"context"
	"testing"
	"testing/synctest"
)

// A turn that is granted to somebody who is just giving up is not lost.
func TestTurnOfSomebodyWhoGivesUp(t *testing.T) {
	for i := range 100 {
		synctest.Test(t, func(t *testing.T) {
			var lane Turns
			lane.Try()
			ctx, cancel := context.WithCancel(t.Context())
			taken := make(chan error, 1)
			go func() { taken <- lane.Take(ctx) }()
			synctest.Wait() // it is in the queue
			cancel()        // it wakes up, and
			lane.Release()  // is granted the turn before it can withdraw, as a rule
			if <-taken == nil {
				lane.Release()
			}
			if !lane.Try() {
				t.Fatalf("attempt %d: the lane is taken for ever", i)
			}
		})
	}
}

// A place in the middle of the queue can be given up; the others keep theirs.
func TestTurnsInOrder(t *testing.T) {
	var lane Turns
	lane.Try()
	places := []*Turn{lane.Reserve(), lane.Reserve(), lane.Reserve()}
	if !lane.withdraw(places[1]) || lane.withdraw(places[1]) {
		t.Error("withdraw does not leave the queue once")
	}
	for _, i := range []int{0, 2} {
		lane.Release()
		select {
		case <-places[i].Granted:
		default:
			t.Errorf("place %d is not granted in its turn", i)
		}
		if lane.withdraw(places[i]) {
			t.Errorf("place %d is withdrawn after it was granted", i)
		}
	}
	if lane.Release(); !lane.Try() {
		t.Error("the lane is not free in the end")
	}
}
