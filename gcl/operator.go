package gcl

import (
	"fmt"

	"gogcl.dev/internal/enum"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// Operator says how a reduction combines elements. Every operator is commutative to the bit, NaNs included: a NaN
// result is the canonical one of its type. 16-bit floats are combined in float32 and rounded to nearest even at each
// hop, or once with Options.Reproducible.
type Operator uint8

// The operators. In a group of one all of them are the identity.
const (
	Add        Operator = iota // sum; integers wrap
	Mean                       // sum, then one division by the group's size; floats only
	Mul                        // product; integers wrap
	Min                        // least; NaN if any operand is, and -0 < +0
	Max                        // greatest; NaN if any operand is, and -0 < +0
	LogicalAnd                 // bool only
	LogicalOr                  // bool only
	SquareAdd                  // each input squared once, then summed
	Local                      // nothing is sent or compared: the rank's own data, or its own shard of it; all dtypes
	numOperators
)

var operatorNames = enum.New[Operator]("operator", "ADD", "MEAN", "MUL", "MIN", "MAX", "LOGICAL_AND", "LOGICAL_OR", "SQUARE_ADD", "LOCAL")

// String returns GCL's name, as in "SQUARE_ADD".
func (op Operator) String() string { return operatorNames.String(op) }

// ParseOperator is the inverse of String. The error lists what is valid.
func ParseOperator(s string) (Operator, error) { return operatorNames.Parse(s) }

// MarshalText returns GCL's name, or an error if op is no operator.
func (op Operator) MarshalText() ([]byte, error) { return operatorNames.MarshalText(op) }

// UnmarshalText parses GCL's name. After an error op is what it was.
func (op *Operator) UnmarshalText(text []byte) error { return operatorNames.UnmarshalText(op, text) }

// kernelOps is the loop that folds an operator. Local has none.
var kernelOps = [numOperators]kernel.Op{
	Add: kernel.Add, Mean: kernel.Add, Mul: kernel.Mul, Min: kernel.Min, Max: kernel.Max,
	LogicalAnd: kernel.And, LogicalOr: kernel.Or, SquareAdd: kernel.Add,
}

// Accepts returns an error if op does not take elements of type t, or is no operator.
func (op Operator) Accepts(t tensor.DType) error {
	if err := operatorNames.Check(op); err != nil {
		return err
	}
	if op == Local {
		return nil
	}
	if op == Mean && !t.IsFloat() {
		return fmt.Errorf("operator %v takes floating point, not %v", op, t)
	}
	if kernel.Binary(kernelOps[op], kernel.Type(t)) == nil {
		want := "numbers"
		if op == LogicalAnd || op == LogicalOr {
			want = "bool"
		}
		return fmt.Errorf("operator %v takes %s, not %v", op, want, t)
	}
	return nil
}
