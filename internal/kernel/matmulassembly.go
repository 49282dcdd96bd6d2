//go:build (amd64 || arm64) && !noasm

package kernel

// tile computes c += a b for so many rows of c. Its functions take as many columns as fill one register, or two;
// AVX-512 wants no more than one element in the last. Strides are in bytes, k is not 0.
type tile struct {
	rows     int
	one, two func(c *float32, cRow int, a *float32, aRow, aColumn int, b *float32, bRow int, n, k int)
}

// tileInner is how much of the inner dimension is done at a time: a tile's columns of b are then 16 KiB with AVX-512,
// half of a first-level cache, while the tiles of all rows go by, and a call, which cannot be interrupted, takes a
// microsecond or two. BenchmarkMatMul has 70 to 78 Gflop/s with 64, 256 and 512 too, on an EPYC: no difference that
// could be told from noise.
const tileInner = 128

// matMul is MatMul by tiles.
func (t *assembly) matMul(c, a, b []float32, p Product) {
	lanes := t.width / 4
	whole := p.N // columns that tiles take
	if t.width < 64 {
		whole -= p.N % lanes
	}
	for l := 0; l < p.K; l += tileInner {
		k := min(tileInner, p.K-l)
		for j := 0; j < whole; j += 2 * lanes {
			n := min(2*lanes, whole-j)
			i := 0
			for _, tile := range t.tiles {
				run := tile.one
				if n > lanes {
					run = tile.two
				}
				for ; i+tile.rows <= p.M; i += tile.rows {
					run(&c[i*p.CRow+j], 4*p.CRow, &a[i*p.ARow+l*p.AColumn], 4*p.ARow, 4*p.AColumn, &b[l*p.BRow+j],
						4*p.BRow, n, k)
				}
			}
		}
	}
	if whole < p.N {
		rest := p
		rest.N -= whole
		goMatMul(c[whole:], a, b[whole:], rest)
	}
}
