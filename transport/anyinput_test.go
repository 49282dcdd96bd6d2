package transport_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/transport"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"AppendCall": transport.AppendCall, "ParseCall": transport.ParseCall,
			"AppendError": transport.AppendError, "ParseError": transport.ParseError,
		},
		Types: []any{transport.AbortError{}, transport.ArgumentError{}, transport.BatchError{}, transport.Call{},
			transport.Checker{}, transport.ClosedError{},
			transport.DeadlockError{}, transport.Gone{}, transport.Kind(0), transport.LateError{}, transport.Link{},
			transport.LinkClass(0), transport.LostError{}, transport.Memory{},
			transport.MinorityError{}, transport.MismatchError{}, transport.NativeCollective{},
			transport.NativeOperator(0),
			transport.Rejoined{}, transport.RoundError{}, transport.Transfer{}, transport.UnmatchedError{}},
	})
}
