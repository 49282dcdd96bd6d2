package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// numerics looks at the bits of sums: two runs have the same, all ranks have the same, Reproducible those of the
// definition, and the method Direct those of rounding each partial sum in rank order.
func numerics(ctx context.Context, w io.Writer, s *settings) (bad int, err error) {
	seed, limit := s.seed, s.limit
	began := time.Now()
	checks, differ := 0, 0
	fail := func(f string, a ...any) {
		bad++
		if bad < 20 {
			fmt.Fprintf(w, "NUMERICS "+f+"\n", a...)
		}
	}
	for _, n := range []int{2, 3, 5, 8, 13} {
		if time.Since(began) > limit {
			break
		}
		type key struct {
			d    tensor.DType
			op   gcl.Operator
			m    methods.Method
			im   gcl.Implementation
			rep  bool
			l    int
			run  int
			coll schedule.Collective
		}
		results := map[key][][]byte{}
		var mu sync.Mutex
		input := func(d tensor.DType, op gcl.Operator, l, r int) []byte {
			b := make([]byte, l*size(d))
			for i := range l {
				set(b, d, i, element(realNums, op, d, mix(seed, uint64(d), uint64(r), uint64(i))))
			}
			return b
		}
		err := gcl.Run(ctx, n, func(ctx context.Context, c *gcl.Comm) error {
			for _, m := range methodPool()[:len(methodPool())-autos] {
				for _, im := range []gcl.Implementation{gcl.AutoImplementation, gcl.Syncless, gcl.Syncful} {
					for _, rep := range []bool{false, true} {
						cm, err := c.With(gcl.Options{Method: m, Implementation: im, Reproducible: rep})
						if err != nil {
							return err
						}
						for _, d := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32} {
							for _, op := range []gcl.Operator{gcl.Add, gcl.Mean, gcl.Mul, gcl.SquareAdd} {
								for _, l := range []int{1, 37, 1000} {
									for run := range 2 {
										for _, coll := range []schedule.Collective{
											schedule.AllReduce, schedule.ReduceScatter, schedule.Reduce,
										} {
											if time.Since(began) > 2*limit {
												return nil
											}
											x, _ := tensor.View(d, tensor.Shape{l}, input(d, op, l, c.Rank()))
											out := l
											if coll == schedule.ReduceScatter {
												out = (l + n - 1) / n
											}
											y, _ := tensor.New(d, out)
											root := 0
											if coll == schedule.Reduce {
												root = n / 2
											}
											if err := cm.Do(ctx, coll, y, x, op, root); err != nil {
												return err
											}
											k := key{d, op, m, im, rep, l, run, coll}
											mu.Lock()
											if results[k] == nil {
												results[k] = make([][]byte, n)
											}
											results[k][c.Rank()] = y.Bytes()
											mu.Unlock()
										}
									}
								}
							}
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			fail("n=%d: %v", n, err)
			continue
		}
		hops := func(k key, i int) uint64 { // each partial sum rounded, in rank order
			term := func(r int) uint64 {
				v := get(input(k.d, k.op, k.l, r), k.d, i)
				if k.op == gcl.SquareAdd {
					f := float32(toF(k.d, v))
					return fromF(k.d, float64(float32(f*f)))
				}
				return v
			}
			acc := term(0)
			for r := 1; r < n; r++ {
				a, b := float32(toF(k.d, acc)), float32(toF(k.d, term(r)))
				if k.op == gcl.Mul {
					acc = fromF(k.d, float64(float32(a*b)))
				} else {
					acc = fromF(k.d, float64(float32(a+b)))
				}
			}
			if k.op == gcl.Mean {
				acc = fromF(k.d, float64(float32(float32(toF(k.d, acc))/float32(n))))
			}
			return acc
		}
		for k, v := range results {
			if k.run == 1 {
				continue
			}
			other := k
			other.run = 1
			for r := range v {
				if k.coll == schedule.Reduce && r != n/2 {
					continue
				}
				checks++
				if !bytes.Equal(v[r], results[other][r]) {
					fail("n=%d %+v rank %d: two runs differ", n, k, r)
				}
				if k.coll == schedule.AllReduce && !bytes.Equal(v[r], v[0]) {
					fail("n=%d %+v rank %d: other bits than rank 0", n, k, r)
				}
			}
			if !k.rep && !(k.im == gcl.Syncless && (k.m == methods.Direct || k.m == methods.SendToAll)) {
				if k.coll == schedule.AllReduce && k.l == 1000 {
					rep := k
					rep.rep = true
					if !bytes.Equal(v[0], results[rep][0]) {
						differ++
					}
				}
				continue
			}
			whole := make([]byte, k.l*size(k.d))
			vs := make([]uint64, n)
			var in [][]byte
			for r := range n {
				in = append(in, input(k.d, k.op, k.l, r))
			}
			if k.l == 1000 && !k.rep {
				continue // slow, and the same as 37
			}
			for i := range k.l {
				for r := range n {
					vs[r] = get(in[r], k.d, i)
				}
				if k.rep {
					set(whole, k.d, i, fold(k.op, k.d, realNums, vs, true))
				} else {
					set(whole, k.d, i, hops(k, i))
				}
			}
			for r := range v {
				want := whole
				if k.coll == schedule.Reduce && r != n/2 {
					continue
				}
				if k.coll == schedule.ReduceScatter {
					per := (k.l + n - 1) / n
					want = make([]byte, per*size(k.d))
					lo, hi := min(r*per, k.l), min(r*per+per, k.l)
					copy(want, whole[lo*size(k.d):hi*size(k.d)])
				}
				checks++
				if !bytes.Equal(v[r], want) {
					i := 0
					for v[r][i] == want[i] {
						i++
					}
					i /= size(k.d)
					fail("n=%d %+v rank %d: at %d got %x want %x", n, k, r, i, get(v[r], k.d, i), get(want, k.d, i))
				}
			}
		}
		fmt.Fprintf(w, "numerics n=%d: %d results, %d checks so far, %d bad; %d pairs of a method and Reproducible differ"+
			" in bits (so the order shows), %v\n",
			n, len(results), checks, bad, differ, time.Since(began).Round(time.Millisecond))
	}
	return bad, context.Cause(ctx)
}
