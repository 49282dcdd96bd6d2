package gcl

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/enum"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// Operator says how a reduction combines elements. Every operator here is commutative to the bit, NaNs included: a NaN
// result is the canonical one of its type. 16-bit floats are combined in float32 and rounded to nearest even at each
// hop, or once with Options.Reproducible. NewOperator makes others.
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
	own     uint64   // of one of the program's own: what members compare; else 0
	job.Reduction
}

// builtin are the rows of the operators: a new one is a constant and a row, and where no loop serves, a kernel.Op.
var builtin = [numOperators]operatorRow{
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

// operators are the operators of this process: the rows of builtin, and those of NewOperator.
type operators struct {
	rows  []operatorRow
	names *enum.Names[Operator]
}

// operatorTable has the operators as they are now. They are added to, and a row never changes.
var operatorTable = func() *operatorsNow {
	t := &operatorsNow{}
	t.set(builtin[:])
	return t
}()

// operatorsNow is where operators are looked up. adding guards set.
type operatorsNow struct {
	adding sync.Mutex
	atomic.Pointer[operators]
}

func (t *operatorsNow) set(rows []operatorRow) {
	names := make([]string, len(rows))
	for i := range rows {
		names[i] = rows[i].name
	}
	t.Store(&operators{rows, enum.New[Operator]("operator", names...)})
}

// row is what op does, or nil where there is no such operator.
func (op Operator) row() *operatorRow {
	if op < numOperators {
		return &builtin[op]
	}
	if rows := operatorTable.Load().rows; int(op) < len(rows) {
		return &rows[op]
	}
	return nil
}

// String returns GCL's name, as in "SQUARE_ADD", or that of NewOperator.
func (op Operator) String() string { return operatorTable.Load().names.String(op) }

// ParseOperator is the inverse of String. The error lists what is valid.
func ParseOperator(s string) (Operator, error) { return operatorTable.Load().names.Parse(s) }

// MarshalText returns the name that String returns, or an error if op is no operator.
func (op Operator) MarshalText() ([]byte, error) { return operatorTable.Load().names.MarshalText(op) }

// UnmarshalText parses a name as ParseOperator does. After an error op is what it was.
func (op *Operator) UnmarshalText(text []byte) error {
	return operatorTable.Load().names.UnmarshalText(op, text)
}

// Accepts returns an error if op does not take elements of type t, or is no operator.
func (op Operator) Accepts(t tensor.DType) error {
	if err := operatorTable.Load().names.Check(op); err != nil {
		return err
	}
	if accepts := op.row().accepts; !accepts.has(t) {
		return fmt.Errorf("operator %v takes %s, not %v", op, accepts.words, t)
	}
	return nil
}

// again reports whether an input that is combined twice changes nothing.
func (op Operator) again() bool { r := op.row(); return r != nil && r.again }

// Combines reports whether op makes one result of the data of all ranks, as all operators but Local do. A number that
// is no operator combines nothing.
func (op Operator) Combines() bool { r := op.row(); return r != nil && r.Fold != 0 }

// Squares reports whether each input is squared once before it is combined, as by SquareAdd. Where the inputs may not
// be changed, that takes a copy of them.
func (op Operator) Squares() bool { r := op.row(); return r != nil && r.Square }

// Divides reports whether the result is divided by the number of inputs, as by Mean.
func (op Operator) Divides() bool { r := op.row(); return r != nil && r.Divide }

// agreed is an operator as members compare it: its number in a call, and the digest that the call has beside it.
func (op Operator) agreed(digest uint64) (uint8, uint64) { return op.row().agreed(op, digest) }

// agreed is that of the row's operator. The row may be nil.
func (r *operatorRow) agreed(op Operator, digest uint64) (uint8, uint64) {
	if r == nil || r.own == 0 {
		return uint8(op), digest
	}
	return wire.OwnOperator | uint8(r.own>>57), wire.Mix(digest, r.own)
}

// operatorName is the text of an operator by its number in a call.
func operatorName(number uint8) string {
	if number&wire.OwnOperator == 0 {
		return Operator(number).String()
	}
	var names []string
	rows := operatorTable.Load().rows
	for i := int(numOperators); i < len(rows); i++ {
		if theirs, _ := Operator(i).agreed(0); theirs == number {
			names = append(names, rows[i].name)
		}
	}
	if len(names) == 0 {
		return "an operator of its own"
	}
	return strings.Join(names, " or ")
}
