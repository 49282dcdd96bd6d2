package kernel

import "fmt"

// Op is an operator on two elements. The zero Op is no operator.
type Op uint8

// The operators. Add, Mul, Min and Max take all numbers, And and Or take Bool only.
const (
	Add Op = iota + 1
	Mul
	Min
	Max
	And
	Or

	opEnd // one past the last
)

var opNames = [opEnd]string{Add: "add", Mul: "mul", Min: "min", Max: "max", And: "and", Or: "or"}

// Valid reports whether op is one of the operators.
func (op Op) Valid() bool { return op > 0 && op < opEnd }

// String is the operator's name in lower case, such as "add".
func (op Op) String() string {
	if !op.Valid() {
		return fmt.Sprintf("Op(%d)", uint8(op))
	}
	return opNames[op]
}
