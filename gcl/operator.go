package gcl

import (
	"fmt"

	"gogcl.dev/gcl/internal/carry/job"
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

// operatorRow is what an operator does. Everything that depends on the operator reads its row.
type operatorRow struct {
	name    string   // GCL's name
	accepts elements // which types
	again   bool     // an input that is combined twice changes nothing
	job.Reduction
}

// operators is the table: a new operator is a constant and a row, and where no loop serves, a kernel.Op.
var operators = [numOperators]operatorRow{
	Add:        {name: "ADD", accepts: numbers, Reduction: job.Reduction{Fold: kernel.Add}},
	Mean:       {name: "MEAN", accepts: floats, Reduction: job.Reduction{Fold: kernel.Add, Divide: true}},
	Mul:        {name: "MUL", accepts: numbers, Reduction: job.Reduction{Fold: kernel.Mul}},
	Min:        {name: "MIN", accepts: numbers, again: true, Reduction: job.Reduction{Fold: kernel.Min}},
	Max:        {name: "MAX", accepts: numbers, again: true, Reduction: job.Reduction{Fold: kernel.Max}},
	LogicalAnd: {name: "LOGICAL_AND", accepts: booleans, again: true, Reduction: job.Reduction{Fold: kernel.And}},
	LogicalOr:  {name: "LOGICAL_OR", accepts: booleans, again: true, Reduction: job.Reduction{Fold: kernel.Or}},
	SquareAdd:  {name: "SQUARE_ADD", accepts: numbers, Reduction: job.Reduction{Fold: kernel.Add, Square: true}},
	Local:      {name: "LOCAL", accepts: anything},
}

// elements is a set of element types.
type elements struct {
	words string
	has   func(tensor.DType) bool
}

// The sets of element types that operators take.
var (
	numbers  = elements{"numbers", tensor.DType.IsNumber}
	floats   = elements{"floating point", tensor.DType.IsFloat}
	booleans = elements{"bool", func(t tensor.DType) bool { return t == tensor.Bool }}
	anything = elements{"any element type", tensor.DType.Valid}
)

var operatorNames = enum.New[Operator]("operator", namesOfOperators()...)

func namesOfOperators() []string {
	names := make([]string, len(operators))
	for op := range operators {
		names[op] = operators[op].name
	}
	return names
}

// String returns GCL's name, as in "SQUARE_ADD".
func (op Operator) String() string { return operatorNames.String(op) }

// ParseOperator is the inverse of String. The error lists what is valid.
func ParseOperator(s string) (Operator, error) { return operatorNames.Parse(s) }

// MarshalText returns GCL's name, or an error if op is no operator.
func (op Operator) MarshalText() ([]byte, error) { return operatorNames.MarshalText(op) }

// UnmarshalText parses GCL's name. After an error op is what it was.
func (op *Operator) UnmarshalText(text []byte) error { return operatorNames.UnmarshalText(op, text) }

// Accepts returns an error if op does not take elements of type t, or is no operator.
func (op Operator) Accepts(t tensor.DType) error {
	if err := operatorNames.Check(op); err != nil {
		return err
	}
	if accepts := operators[op].accepts; !accepts.has(t) {
		return fmt.Errorf("operator %v takes %s, not %v", op, accepts.words, t)
	}
	return nil
}

// again reports whether an input that is combined twice changes nothing.
func (op Operator) again() bool { return op < numOperators && operators[op].again }

// Combines reports whether op makes one result of the data of all ranks, as all operators but Local do. A number that
// is no operator combines nothing.
func (op Operator) Combines() bool { return op < numOperators && operators[op].Fold != 0 }

// Squares reports whether each input is squared once before it is combined, as by SquareAdd. Where the inputs may not
// be changed, that takes a copy of them.
func (op Operator) Squares() bool { return op < numOperators && operators[op].Square }

// Divides reports whether the result is divided by the number of inputs, as by Mean.
func (op Operator) Divides() bool { return op < numOperators && operators[op].Divide }
