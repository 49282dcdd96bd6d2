package oracle

import "gogcl.dev/tensor"

// Operator is an operator by its name, as gcl prints it.
type Operator string

// The operators.
const (
	Add        Operator = "ADD"
	Mean       Operator = "MEAN"
	Mul        Operator = "MUL"
	Min        Operator = "MIN"
	Max        Operator = "MAX"
	LogicalAnd Operator = "LOGICAL_AND"
	LogicalOr  Operator = "LOGICAL_OR"
	SquareAdd  Operator = "SQUARE_ADD"
	Local      Operator = "LOCAL"
)

// Operators of a program's own, neither of which is commutative. Compose takes an integer for the function x -> ax + b
// modulo 2^h, a being its upper h bits and b its lower h: x op y is the function that applies x first. Later is its
// second operand, unless that is zero.
const (
	Compose Operator = "compose"
	Later   Operator = "later"
)

// rule is what an operator does, written down a second time, and what inputs it needs to be exact.
type rule struct {
	name    Operator
	takes   func(tensor.DType) bool
	combine combine // of two inputs
	squares bool    // each input is squared once, before
	divides bool    // the result is divided by the number of inputs, at the end
	grows   bool    // the result of many inputs may be larger than any of them
	factors bool    // most inputs must be 1, for the result not to grow out of the type
}

// rules has a row for each operator. To add an operator, add its row, and its combination to combine if that is new.
var rules = []rule{
	{name: Add, takes: tensor.DType.IsNumber, combine: sum, grows: true},
	{name: Mean, takes: tensor.DType.IsFloat, combine: sum, grows: true, divides: true},
	{name: Mul, takes: tensor.DType.IsNumber, combine: product, grows: true, factors: true},
	{name: Min, takes: tensor.DType.IsNumber, combine: least},
	{name: Max, takes: tensor.DType.IsNumber, combine: greatest},
	{name: LogicalAnd, takes: isBool, combine: least}, // true is the greater
	{name: LogicalOr, takes: isBool, combine: greatest},
	{name: SquareAdd, takes: tensor.DType.IsNumber, combine: sum, grows: true, squares: true},
	{name: Local, takes: tensor.DType.Valid, combine: own},
}

// ownRules are the rows of operators of a program's own.
var ownRules = []rule{
	{name: Compose, takes: tensor.DType.IsInteger, combine: composed},
	{name: Later, takes: func(d tensor.DType) bool { return d.IsFloat() || d == tensor.Bool }, combine: later},
}

func isBool(d tensor.DType) bool { return d == tensor.Bool }

// combine is the combination of two values.
type combine uint8

const (
	own combine = iota // none: each rank keeps its input
	sum
	product
	least
	greatest
	composed
	later
)

// rule is the operator's row.
func (op Operator) rule() rule {
	for _, r := range append(rules[:len(rules):len(rules)], ownRules...) {
		if r.name == op {
			return r
		}
	}
	panic("oracle: no row for operator " + string(op))
}

// Operators lists the library's operators that take elements of type d.
func Operators(d tensor.DType) (out []Operator) {
	for _, r := range rules {
		if r.takes(d) {
			out = append(out, r.name)
		}
	}
	return out
}

// Takes reports whether the operator takes elements of type d.
func (op Operator) Takes(d tensor.DType) bool { return op.rule().takes(d) }
