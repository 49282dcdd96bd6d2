package ops

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// MatMul multiplies matrices: (m, k) by (k, n) gives (m, n). A vector is a row on the left and a column on the right:
// (k) by (k, n) gives (n), (m, k) by (k) gives (m), (k) by (k) a scalar. Dimensions before the last two are those of
// batches of matrices, which are multiplied pair by pair; they are repeated as in Add.
//
// Both are of one type of floats. Those of 16 bits are calculated in float32, and the result is rounded once. The
// order in which products of float32 are added is that of the inner dimension, and each is rounded before: the same
// bits on every machine. But a product with a single column, or of rows with rows, is gonum's, as all of float64 is:
// there the order depends on the shapes and on gonum's code for the machine, and a zero on the left may hide an
// infinity or a NaN that it is multiplied by. The gradient does not copy a transpose.
//
// Errors: other types, a scalar, inner dimensions that differ, leading ones that cannot be repeated.
func MatMul(a, b *ir.Tensor) *ir.Tensor { return (&matMul{}).of(a, b) }

// matMul multiplies matrices, either one transposed as it lies in memory.
type matMul struct {
	transA, transB bool

	// summed says that the result has the leading dimensions batch, and that products of the same place there are added
	// in order. Without it the result's are those of the operands.
	summed bool
	batch  tensor.Shape
}

func (o *matMul) of(a, b *ir.Tensor) *ir.Tensor {
	return (&row{
		name: "matmul", infer: o.infer,
		scratch: func(in []ir.Spec) int { // what is turned of a transposed b
			if p, err := o.plan(in[0].Shape, in[1].Shape); err == nil && o.transB && in[0].DType != tensor.F64 {
				return turnedBytes(p.n, p.k)
			}
			return 0
		},
		f32:  func(m *ir.Memory) (func() error, error) { return bindMatMul(o, m, adder32) },
		f64:  func(m *ir.Memory) (func() error, error) { return bindMatMul(o, m, adder64) },
		back: o.back,
	}).of(a, b)
}

// matMulPlan is what a product of two shapes is.
type matMulPlan struct {
	m, n, k     int
	a, b, out   tensor.Shape // leading dimensions
	all         tensor.Shape // leading dimensions of all products
	rowLeft     bool         // a is a vector: the result has no rows
	columnRight bool         // b is a vector: the result has no columns
}

func (o *matMul) plan(a, b tensor.Shape) (p matMulPlan, err error) {
	if len(a) == 0 || len(b) == 0 {
		return p, errors.New("a scalar, want matrices or vectors; Mul multiplies by a scalar")
	}
	if p.rowLeft = len(a) == 1; p.rowLeft {
		a = tensor.Shape{1, a[0]}
	}
	if p.columnRight = len(b) == 1; p.columnRight {
		b = tensor.Shape{b[0], 1}
	}
	p.a, p.b = a[:len(a)-2], b[:len(b)-2]
	p.m, p.k = a[len(a)-2], a[len(a)-1]
	if o.transA {
		p.m, p.k = p.k, p.m
	}
	k, n := b[len(b)-2], b[len(b)-1]
	if o.transB {
		k, n = n, k
	}
	p.n = n
	if p.k != k {
		return p, fmt.Errorf("inner dimensions %d and %d, want equal ones", p.k, k)
	}
	if p.all, err = broadcast(ir.Spec{Shape: p.a}, ir.Spec{Shape: p.b}); err != nil {
		return p, fmt.Errorf("leading dimensions %v and %v, want equal ones or 1", p.a, p.b)
	}
	p.out = p.all
	if o.summed {
		p.out = o.batch
		if p.all, err = broadcast(ir.Spec{Shape: p.all}, ir.Spec{Shape: p.out}); err != nil {
			return p, fmt.Errorf("leading dimensions %v and %v do not lead to %v", p.a, p.b, p.out)
		}
	}
	return p, nil
}

func (o *matMul) infer(in []ir.Spec) ([]ir.Spec, error) {
	if _, err := sameType(floatTypes, in...); err != nil {
		return nil, err
	}
	p, err := o.plan(in[0].Shape, in[1].Shape)
	if err != nil {
		return nil, err
	}
	shape := p.out.Clone()
	if !p.rowLeft {
		shape = append(shape, p.m)
	}
	if !p.columnRight {
		shape = append(shape, p.n)
	}
	return []ir.Spec{{Shape: shape, DType: in[0].DType}}, nil
}

// turnedBytes is the scratch for a transposed b of so many columns.
func turnedBytes(columns, inner int) int {
	return 4 * min(turnedInner, inner) * min(turnedColumns, columns)
}

// adder32 and adder64 return what adds the product of a and b to c.
func adder32(p *product, scratch []byte) (func(c, a, b []float32), error) {
	if p.n == 1 || p.m == 1 && p.transB {
		return func(c, a, b []float32) { blocks(p, blas32.Implementation().Sgemm, c, a, b) }, nil
	}
	return p.kernel(scratch)
}

func adder64(p *product, _ []byte) (func(c, a, b []float64), error) {
	return func(c, a, b []float64) { blocks(p, blas64.Implementation().Dgemm, c, a, b) }, nil
}

// gemm is c = alpha op(a) op(b) + beta c, as BLAS has it.
type gemm[T float] func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T,
	ldc int)

func bindMatMul[T float](
	o *matMul, m *ir.Memory, adder func(p *product, scratch []byte) (func(c, a, b []T), error),
) (func() error, error) {
	p, err := o.plan(m.In[0].Shape(), m.In[1].Shape())
	if err != nil {
		return nil, err
	}
	a, b, c := elementsOf[T](m.In[0]), elementsOf[T](m.In[1]), elementsOf[T](m.Out[0])
	one := &product{p.m, p.n, p.k, o.transA, o.transB}
	places := p.places()
	// Matrices that lie one below the other are one, if all meet the same one on the right, or all results are added.
	switch count := len(places); {
	case count < 2:
	case !o.transA && adjoin(places, p.m*p.k, 0, p.m*p.n):
		one.m *= count
		places = places[:1]
	case o.transA && !o.transB && adjoin(places, p.m*p.k, p.k*p.n, 0):
		one.k *= count
		places = places[:1]
	}
	one.simplify()
	add, err := adder(one, m.Scratch)
	if err != nil {
		return nil, err
	}
	return func() error {
		clear(c)
		if len(a) == 0 || len(b) == 0 {
			return nil
		}
		for _, at := range places {
			add(c[at[2]:], a[at[0]:], b[at[1]:])
		}
		return nil
	}, nil
}

// places is, for each product, where in the memory of a, b and the result its matrices begin.
func (p *matMulPlan) places() [][3]int {
	var walks [3]*grid
	for i, operand := range []struct {
		leading tensor.Shape
		size    int
	}{{p.a, p.m * p.k}, {p.b, p.k * p.n}, {p.out, p.m * p.n}} {
		strides := broadcastStrides(operand.leading, p.all)
		for d := range strides {
			strides[d] *= operand.size
		}
		walks[i] = newGrid(p.all, strides)
	}
	out := make([][3]int, walks[0].places())
	for k := range out {
		for i, w := range walks {
			out[k][i] = w.offset
			w.next()
		}
	}
	return out
}

// adjoin reports whether all places are these distances apart.
func adjoin(places [][3]int, distances ...int) bool {
	for k, at := range places {
		for i, distance := range distances {
			if at[i] != k*distance {
				return false
			}
		}
	}
	return true
}

// product is c += op(a) op(b) of dense matrices: op(a) is (m, k), op(b) is (k, n).
type product struct {
	m, n, k        int
	transA, transB bool
}

// simplify finds the fastest way for vectors, which lie in memory as their transposes do.
func (p *product) simplify() {
	if p.k == 1 || p.m == 1 {
		p.transA = false
	}
	switch {
	case p.k == 1:
		p.transB = false
	case p.n == 1:
		p.transB = true // the elements are inner products
	}
}

// A transposed b is turned before it meets a, as much of it at a time as a second-level cache has room for beside what
// it meets: 64 KiB. The columns are what a kernel's registers have, many times.
const (
	turnedInner   = 128
	turnedColumns = 128
)

// kernel is the product by package kernel.
func (p *product) kernel(scratch []byte) (func(c, a, b []float32), error) {
	whole := kernel.Product{M: p.m, N: p.n, K: p.k, CRow: p.n, ARow: p.k, AColumn: 1, BRow: p.n}
	if p.transA {
		whole.ARow, whole.AColumn = 1, p.m
	}
	if !p.transB {
		return func(c, a, b []float32) { kernel.MatMul(c, a, b, whole) }, nil
	}
	turned, err := tensor.FromBytes[float32](scratch[:turnedBytes(p.n, p.k)])
	return func(c, a, b []float32) {
		for l := 0; l < p.k; l += turnedInner {
			for j := 0; j < p.n; j += turnedColumns {
				part := whole
				part.K, part.N = min(turnedInner, p.k-l), min(turnedColumns, p.n-j)
				part.BRow = part.N
				turn(turned, b[j*p.k+l:], part.N, part.K, p.k)
				kernel.MatMul(c[j:], a[l*part.AColumn:], turned, part)
			}
		}
	}, err
}

// turn sets dst (columns, rows) to the transpose of src (rows, columns), whose rows are so far apart.
func turn(dst, src []float32, rows, columns, apart int) {
	j := 0
	for ; j+4 <= rows; j += 4 { // so that neighbours in dst are written together
		s0, s1 := src[j*apart:][:columns], src[(j+1)*apart:][:columns]
		s2, s3 := src[(j+2)*apart:][:columns], src[(j+3)*apart:][:columns]
		at := j
		for l := range s0 {
			d := dst[at : at+4 : at+4]
			d[0], d[1], d[2], d[3] = s0[l], s1[l], s2[l], s3[l]
			at += rows
		}
	}
	for ; j < rows; j++ {
		for l, v := range src[j*apart:][:columns] {
			dst[l*rows+j] = v
		}
	}
}

// Blocks of a product by gonum, which starts no goroutines, which would allocate, for a result of fewer than 4 squares
// of 64, so there are 3. How much of the inner dimension a block has is what was fastest for (512, 512) by (512, 512)
// of float32, on an EPYC with 512 KiB of second-level cache a core: without blocks 16.6, 14.5 and 21.2 Gflop/s, and in
// blocks 17.9, 17.5 and 21.2, for neither, a and b transposed.
const (
	blockRows       = 64
	blockColumns    = 3 * 64
	blockInner      = 64  // rows of b are added to those of c
	blockInnerTrans = 512 // rows of a are multiplied with those of b
)

// blocks computes the product by gonum, on the calling goroutine.
func blocks[T float](p *product, multiply gemm[T], c, a, b []T) {
	if p.transA && p.n == 1 { // a vector from the left
		blocks(&product{m: 1, n: p.m, k: p.k}, multiply, c, b, a)
		return
	}
	inner := blockInner
	if p.transB {
		inner = blockInnerTrans
	}
	for l := 0; l < p.k; l += inner {
		for j := 0; j < p.n; j += blockColumns {
			for i := 0; i < p.m; i += blockRows {
				m, n, k := min(blockRows, p.m-i), min(blockColumns, p.n-j), min(inner, p.k-l)
				tA, fromA, strideA := blas.NoTrans, i*p.k+l, p.k
				if p.transA {
					tA, fromA, strideA = blas.Trans, l*p.m+i, p.m
				}
				tB, fromB, strideB := blas.NoTrans, l*p.n+j, p.n
				if p.transB {
					tB, fromB, strideB = blas.Trans, j*p.k+l, p.k
				}
				multiply(tA, tB, m, n, k, 1, a[fromA:], strideA, b[fromB:], strideB, 1, c[i*p.n+j:], p.n)
			}
		}
	}
}

// back builds the gradients: with c = a b and its gradient g, that of a is g bT, and that of b is aT g.
func (o *matMul) back(w *ir.Backward) []*ir.Tensor {
	as, bs := w.InSpec(0).Shape, w.InSpec(1).Shape
	p, err := o.plan(as, bs)
	if err != nil { // infer has found none
		return nil
	}
	a, b, g := w.In(0), w.In(1), w.Grad(0)
	if p.rowLeft || p.columnRight {
		g = Reshape(g, append(p.out.Clone(), p.m, p.n)...)
	}
	if p.rowLeft {
		a = Reshape(a, 1, p.k)
	}
	if p.columnRight {
		b = Reshape(b, p.k, 1)
	}
	// What has been repeated gets the sum of the gradients of all that it has met.
	product := func(transA, transB bool, leading tensor.Shape, x, y *ir.Tensor) *ir.Tensor {
		return (&matMul{transA: transA, transB: transB, summed: true, batch: leading}).of(x, y)
	}
	var ga, gb *ir.Tensor
	if o.transA {
		ga = product(o.transB, true, p.a, b, g)
	} else {
		ga = product(false, !o.transB, p.a, g, b)
	}
	if o.transB {
		gb = product(true, o.transA, p.b, g, a)
	} else {
		gb = product(!o.transA, false, p.b, a, g)
	}
	if p.rowLeft {
		ga = Reshape(ga, as...)
	}
	if p.columnRight {
		gb = Reshape(gb, bs...)
	}
	return []*ir.Tensor{ga, gb}
}
