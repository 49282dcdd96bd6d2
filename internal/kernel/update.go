package kernel

import (
	"math"
	"unsafe"
)

// Update is a step of an optimiser, for each element of a parameter. Every product, sum, quotient and root is rounded
// by itself.
type Update uint8

// The updates, with p for the parameter, g for its gradient, m and s for what is kept from step to step, and a to e for
// the numbers. What is kept and has become tiny, less than 2^-100 in Float32 and 2^-900 in Float64, is 0 from then on:
// before it would be subnormal, which takes many times as long.
const (
	Descend  Update = iota // p -= a g
	Momentum               // m = b m + g; p -= a m
	Nesterov               // m = b m + g; p -= a (g + b m)
	Adam                   // m += a (g - m); s += b (g g - s); p -= c m / (d sqrt(s) + e)
	updateEnd
)

// Operands are what an update works on, of equal lengths. Of First and Second only those that it has are looked at.
// Param may be From, and no other two overlap.
type Operands struct {
	Param, From   []byte // the parameter after the step, and before it
	Grad          []byte
	First, Second []byte // m and s, which are changed
}

// Numbers are a to e of an update, rounded to the type of the elements.
type Numbers [5]float64

// Loop returns the update for elements of type t, or nil if that is neither Float32 nor Float64.
func (u Update) Loop(t Type) func(o Operands, n Numbers) {
	if u >= updateEnd {
		return nil
	}
	return at(&chosen.update[u], t)
}

// updateLoop is a loop that carries out an update.
type updateLoop = func(o Operands, n Numbers)

// from is the operands without their first n bytes.
func (o Operands) from(n int) Operands {
	cut := func(b []byte) []byte { return b[min(n, len(b)):] }
	return Operands{cut(o.Param), cut(o.From), cut(o.Grad), cut(o.First), cut(o.Second)}
}

// checked is the operands with the lengths that an update of so many states needs. It panics if one is too short.
func (o Operands) checked(states int) Operands {
	n := len(o.Param)
	out := Operands{Param: o.Param, From: o.From[:n], Grad: o.Grad[:n]}
	if states > 0 {
		out.First = o.First[:n]
	}
	if states > 1 {
		out.Second = o.Second[:n]
	}
	return out
}

// states is how many of First and Second an update has.
func (u Update) states() int {
	switch u {
	case Descend:
		return 0
	case Adam:
		return 2
	}
	return 1
}

// bits are the numbers as elements of t.
func (n Numbers) bits(t Type) (out [5]uint64) {
	for i, v := range n {
		if out[i] = math.Float64bits(v); t == Float32 {
			out[i] = uint64(math.Float32bits(float32(v)))
		}
	}
	return out
}

// updates fills in the updates in plain Go.
func updates[T float32 | float64](v *version, t Type) {
	v.update[Descend][t] = func(o Operands, n Numbers) {
		o = o.checked(0)
		param, from, a := view[T](o.Param), view[T](o.From), T(n[0])
		for i, g := range view[T](o.Grad) {
			param[i] = canonical(from[i] - T(a*g))
		}
	}
	v.update[Momentum][t] = func(o Operands, n Numbers) {
		o = o.checked(1)
		param, from, first, a, b := view[T](o.Param), view[T](o.From), view[T](o.First), T(n[0]), T(n[1])
		for i, g := range view[T](o.Grad) {
			m := flushed(T(b*first[i]) + g)
			first[i], param[i] = canonical(m), canonical(from[i]-T(a*m))
		}
	}
	v.update[Nesterov][t] = func(o Operands, n Numbers) {
		o = o.checked(1)
		param, from, first, a, b := view[T](o.Param), view[T](o.From), view[T](o.First), T(n[0]), T(n[1])
		for i, g := range view[T](o.Grad) {
			m := flushed(T(b*first[i]) + g)
			first[i], param[i] = canonical(m), canonical(from[i]-T(a*T(g+T(b*m))))
		}
	}
	v.update[Adam][t] = func(o Operands, n Numbers) {
		o = o.checked(2)
		param, from, first, second := view[T](o.Param), view[T](o.From), view[T](o.First), view[T](o.Second)
		a, b, c, d, e := T(n[0]), T(n[1]), T(n[2]), T(n[3]), T(n[4])
		for i, g := range view[T](o.Grad) {
			m := flushed(first[i] + T(a*T(g-first[i])))
			s := flushed(second[i] + T(b*T(T(g*g)-second[i])))
			p := from[i] - T(c*m)/(T(T(math.Sqrt(float64(s)))*d)+e) // a root of 53 bits rounded to 24 is that of 24
			first[i], second[i], param[i] = canonical(m), canonical(s), canonical(p)
		}
	}
}

// flushed is v, or 0 for what is tiny.
func flushed[T float32 | float64](v T) T {
	tiny := T(0x1p-100)
	if unsafe.Sizeof(v) == 8 {
		small := 0x1p-900
		tiny = T(small)
	}
	if -tiny < v && v < tiny {
		return 0
	}
	return v
}
