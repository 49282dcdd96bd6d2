package oracle

import (
	"slices"
	"testing"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// TestExact checks that partial results are exact: every prefix fits what the type can hold, whatever the number of
// ranks.
func TestExact(t *testing.T) {
	limits := map[tensor.DType]int64{tensor.BF16: 1 << 8, tensor.F16: 1 << 11, tensor.F32: 1 << 24, tensor.F64: 1 << 53}
	for _, n := range []int{2, 3, 8, 64, 255, 256, 257, 300, 1000, 5000} {
		for d, limit := range limits {
			for _, op := range []Operator{Add, Mean, SquareAdd, Mul} {
				v := values{dtype: d, rule: op.rule(), n: n}
				for i := range 50 {
					sum := int64(0) // of magnitudes, so that no order can exceed it
					if op == Mul {
						sum = 1
					}
					for r := range n {
						x := max(v.of(r, i), -v.of(r, i))
						switch op {
						case SquareAdd:
							sum += x * x
						case Mul:
							sum *= x
						default:
							sum += x
						}
					}
					if sum > limit {
						t.Fatalf("%v of %d ranks in %v: %d at index %d", op, n, d, sum, i)
					}
				}
			}
		}
	}
}

// TestInputsDiffer checks that inputs tell ranks and places apart, and that a reduction misses each rank.
func TestInputsDiffer(t *testing.T) {
	for _, d := range tensor.DTypes() {
		const n, elements = 8, 4093
		for _, op := range Operators(d) {
			in, size := InputTensors(d, op, n, elements), d.Size()
			// unlike counts elements of a that differ from those of b, b from element shift on.
			unlike := func(a, b *tensor.Tensor, shift int) int {
				count, _ := differ(a.Bytes()[:(elements-shift)*size], b.Bytes()[shift*size:], size)
				return count
			}
			all := OutputTensors(Call{Collective: schedule.AllReduce, Operator: op}, in)
			for r := range n {
				moved, own, without := unlike(all[r], all[r], 1), unlike(in[r], in[(r+1)%n], 0), 0
				if op != Local {
					rest := OutputTensors(Call{Collective: schedule.AllReduce, Operator: op},
						slices.Delete(slices.Clone(in), r, r+1))
					without = unlike(all[r], rest[0], 0)
				}
				if moved < elements/5 || own < elements/20 || op != Local && without < elements/60 {
					t.Errorf("%v of %v, rank %d: of %d places %d differ from the next, %d from the next rank, %d "+
						"without it",
						op, d, r, elements, moved, own, without)
				}
			}
		}
	}
}

// TestAnyOrder: the fold in another order has the same bits, from the last rank to the first and in pairs.
func TestAnyOrder(t *testing.T) {
	for _, d := range tensor.DTypes() {
		for _, op := range Operators(d) {
			if op.rule().combine == own || op.rule().divides || op.rule().squares { // these are sums
				continue
			}
			for _, n := range []int{2, 3, 8, 300} {
				in := InputTensors(d, op, n, 100)
				call := Call{Collective: schedule.AllReduce, Operator: op}
				want := OutputTensors(call, in)[0]
				back := slices.Clone(in)
				slices.Reverse(back)
				halves := []*tensor.Tensor{OutputTensors(call, in[:n/2])[0], OutputTensors(call, in[n/2:])[0]}
				for name, in := range map[string][]*tensor.Tensor{"backwards": back, "halves": halves} {
					got := OutputTensors(call, in)[0]
					if err := CheckTensor(name, got, want); err != nil {
						t.Errorf("%v of %v, n=%d: %v", op, d, n, err)
					}
				}
			}
		}
	}
}
