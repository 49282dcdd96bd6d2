package gcl

import (
	"context"
	"testing"
	"testing/synctest"
)

// A turn that is granted to somebody who is just giving up is not lost.
func TestTurnOfSomebodyWhoGivesUp(t *testing.T) {
	for i := range 100 {
		synctest.Test(t, func(t *testing.T) {
			var lane turns
			lane.try()
			ctx, cancel := context.WithCancel(t.Context())
			taken := make(chan error, 1)
			go func() { taken <- lane.take(ctx) }()
			synctest.Wait() // it is in the queue
			cancel()        // it wakes up, and
			lane.release()  // is granted the turn before it can withdraw, as a rule
			if <-taken == nil {
				lane.release()
			}
			if !lane.try() {
				t.Fatalf("attempt %d: the lane is taken for ever", i)
			}
		})
	}
}

// A place in the middle of the queue can be given up; the others keep theirs.
func TestTurnsInOrder(t *testing.T) {
	var lane turns
	lane.try()
	places := []*turn{lane.reserve(), lane.reserve(), lane.reserve()}
	if !lane.withdraw(places[1]) || lane.withdraw(places[1]) {
		t.Error("withdraw does not leave the queue once")
	}
	for _, i := range []int{0, 2} {
		lane.release()
		select {
		case <-places[i].granted:
		default:
			t.Errorf("place %d is not granted in its turn", i)
		}
		if lane.withdraw(places[i]) {
			t.Errorf("place %d is withdrawn after it was granted", i)
		}
	}
	if lane.release(); !lane.try() {
		t.Error("the lane is not free in the end")
	}
}
