package ops

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestMatMulOrder checks the bits of products of float32: those of the inner dimension are rounded one by one and added
// in order, whatever operand is transposed, around the blocks in which a transposed b is turned.
func TestMatMulOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	for _, s := range [][3]int{
		{2, 2, 2}, {3, 5, 7}, {8, 127, 129}, {9, 128, 128}, {5, 129, 127}, {7, 131, 300}, {4, 257, 130}, {2, 3, 1},
	} {
		m, n, k := s[0], s[1], s[2]
		for _, trans := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			t.Run(fmt.Sprintf("m=%d/n=%d/k=%d/transA=%v/transB=%v", m, n, k, trans[0], trans[1]), func(t *testing.T) {
				p := &product{m: m, n: n, k: k, transA: trans[0], transB: trans[1]}
				add, err := adder32(p, make([]byte, turnedBytes(n, k)))
				if err != nil {
					t.Fatal(err)
				}
				a, b, c := draw(m*k), draw(k*n), make([]float32, m*n)
				add(c, a, b)
				for i := range m {
					for j := range n {
						want := float32(0)
						for l := range k {
							x, y := a[i*k+l], b[l*n+j]
							if trans[0] {
								x = a[l*m+i]
							}
							if trans[1] {
								y = b[j*k+l]
							}
							want += float32(x * y)
						}
						if got := c[i*n+j]; math.Float32bits(got) != math.Float32bits(want) {
							t.Fatalf("row %d, column %d: %v, want %v", i, j, got, want)
						}
					}
				}
			})
		}
	}
}
