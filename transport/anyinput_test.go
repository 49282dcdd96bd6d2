package transport_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/transport"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	anyinput.Check(t, anyinput.API{
		Types: []any{transport.AbortError{}, transport.ArgumentError{}, transport.BatchError{}, transport.Call{},
			transport.Checker{}, transport.ClosedError{},
			transport.DeadlockError{}, transport.Kind(0), transport.LateError{}, transport.Memory{},
			transport.MismatchError{}, transport.RoundError{}, transport.Transfer{},
			transport.UnmatchedError{}},
	})
}
