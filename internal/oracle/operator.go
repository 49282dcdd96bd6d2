package oracle

import (
	"slices"

	"gogcl.dev/tensor"
)

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

// Operators lists the operators that take elements of type d.
func Operators(d tensor.DType) []Operator {
	switch {
	case d == tensor.Bool:
		return []Operator{LogicalAnd, LogicalOr, Local}
	case d.IsFloat():
		return []Operator{Add, Mean, Mul, Min, Max, SquareAdd, Local}
	}
	return []Operator{Add, Mul, Min, Max, SquareAdd, Local}
}

// Takes reports whether the operator takes elements of type d.
func (op Operator) Takes(d tensor.DType) bool { return slices.Contains(Operators(d), op) }
