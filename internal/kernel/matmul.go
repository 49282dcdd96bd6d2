package kernel

import "math"

// Product says what a product of matrices in float32 is like, whose elements lie in slices: row i and column j of c at
// i*CRow+j, of a at i*ARow+j*AColumn, and of b at i*BRow+j. A transposed a is one whose strides are exchanged.
type Product struct {
	M, N, K int // c is (M, N), a (M, K) and b (K, N)
	CRow    int
	ARow    int
	AColumn int
	BRow    int
}

// MatMul is c += a b:
//
//	for l := range K { c[i][j] += a[i][l] * b[l][j] }
//
// for each element of c, in this order, product and sum rounded one after the other; then a NaN is made canonical.
// With K of 0 nothing changes. c must not overlap a or b.
func MatMul(c, a, b []float32, p Product) {
	if p.M <= 0 || p.N <= 0 || p.K <= 0 {
		return
	}
	// What is read and written last must be there. Strides are not negative, so all else is.
	c = c[:(p.M-1)*p.CRow+p.N]
	a = a[:(p.M-1)*p.ARow+(p.K-1)*p.AColumn+1]
	b = b[:(p.K-1)*p.BRow+p.N]
	chosen.matMul(c, a, b, p)
}

var nan32 = math.Float32frombits(nanF32)

// goMatMul is MatMul in plain Go.
func goMatMul(c, a, b []float32, p Product) {
	for i := range p.M {
		row := c[i*p.CRow:][:p.N]
		for l := range p.K {
			f, from := a[i*p.ARow+l*p.AColumn], b[l*p.BRow:][:p.N]
			for j, v := range from {
				row[j] += float32(f * v) // the conversion forbids one instruction with one rounding
			}
		}
		for j, v := range row {
			if v != v {
				row[j] = nan32
			}
		}
	}
}
