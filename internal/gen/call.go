package main

import (
	"fmt"
	"strings"
	"sync"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// operand is one operand of a call, as all ranks see it.
type operand struct {
	dt     tensor.DType
	n      int     // elements: of the input (all-reduce ...), or of a part (all-to-all, scatter)
	row    int     // elements of a row, of calls by counts
	counts []int   // rows by rank
	sent   [][]int // all-to-all by counts: rows by sender and receiver
	shape  int
}

// call is one call of a group: what its ranks give to it and what they get.
type call struct {
	id      uint64
	k       kind
	g       int // size of the group
	several bool
	tensors bool // several: by tensors of random shapes, and nothing else
	opds    []operand
	op      gcl.Operator
	root    int
	runs    int
	class   dataClass
	mapping chunks.Mapping
	ex      *own

	once sync.Once
	in   [][][]byte // inputs by operand and rank
	red  [][]byte   // by operand: the reduction of all
}

var dtypes = []tensor.DType{
	tensor.Bool, tensor.I8, tensor.I16, tensor.I32, tensor.I64, tensor.U8, tensor.U16, tensor.U32, tensor.U64,
	tensor.F16, tensor.BF16, tensor.F32, tensor.F64,
}

// newCall makes the call of a number, in a group of g ranks. The call depends on nothing else.
func newCall(id uint64, g int, repro bool) *call {
	r := source(id, 2)
	c := &call{id: id, g: g, k: kind(r.IntN(int(numKinds))), runs: 1}
	if c.k == barrier && r.IntN(3) > 0 {
		c.k = allReduce
	}
	if c.k.rooted() {
		c.root = r.IntN(g)
	}
	if c.k == execute {
		c.exec(r, repro)
		return c
	}
	if r.IntN(6) == 0 {
		c.runs = 2 + r.IntN(2)
	}
	if c.k.combines() {
		c.op = gcl.Operator(r.IntN(9))
		if c.op == gcl.LogicalAnd || c.op == gcl.LogicalOr { // bool only
			c.op = pick(r, gcl.Add, gcl.Mean, c.op)
		}
	}
	nt := 1
	if c.k != mappedScatter && c.k != mappedGather && c.k != barrier && r.IntN(3) == 0 {
		c.several, nt = true, pick(r, 0, 1, 2, 2, 3, 4, 7)
		c.tensors = r.IntN(2) == 0
	}
	var accepted []tensor.DType
	for _, d := range dtypes {
		if !c.k.combines() || takes(c.op, d) {
			accepted = append(accepted, d)
		}
	}
	first := accepted[r.IntN(len(accepted))]
	for range nt {
		o := operand{dt: first, n: randomLen(r), row: 1, shape: r.IntN(4)}
		if c.tensors {
			o.dt = accepted[r.IntN(len(accepted))]
		}
		switch c.k {
		case allToAll, scatter, allGather, gather, mappedGather:
			o.n = (o.n + g - 1) / g
		}
		if c.k.byCounts() {
			o.row = pick(r, 1, 1, 2, 3)
			if c.k == allToAllV {
				sym := r.IntN(3) == 0
				for range g {
					o.sent = append(o.sent, randomCounts(r, g, o.n/g/o.row))
				}
				if sym {
					for a := range g {
						for b := range a {
							o.sent[a][b] = o.sent[b][a]
						}
					}
				}
			} else {
				o.counts = randomCounts(r, g, o.n/o.row)
			}
		}
		c.opds = append(c.opds, o)
	}
	if c.k == mappedScatter || c.k == mappedGather {
		o := &c.opds[0]
		o.n = 0
		for range 1 + r.IntN(5) {
			l := randomLen(r) % 600
			c.mapping = append(c.mapping, l)
			o.n += l
		}
	}
	c.class = rawBits
	if c.k.combines() && c.op != gcl.Local {
		c.class = small
		if c.op == gcl.Min || c.op == gcl.Max {
			c.class = special
		} else if repro && r.IntN(2) == 0 {
			c.class = realNums
		}
	}
	return c
}

// takes reports whether an operator takes elements of a type.
func takes(op gcl.Operator, d tensor.DType) bool {
	switch op {
	case gcl.LogicalAnd, gcl.LogicalOr:
		return d == tensor.Bool
	case gcl.Mean:
		return isFloat(d)
	case gcl.Local:
		return true
	}
	return d != tensor.Bool
}

func sum(s []int) (n int) {
	for _, x := range s {
		n += x
	}
	return
}

func ceil(a, b int) int { return (a + b - 1) / b }

// lengths are the elements of the two buffers, of the rank that has both, and where the smaller has its own place.
func (c *call) lengths(t, rank int) (src, dst, own int) {
	o, g := &c.opds[t], c.g
	switch c.k {
	case reduceScatter:
		return o.n, ceil(o.n, g), rank * ceil(o.n, g)
	case allGather, gather:
		return o.n, o.n * g, rank * o.n
	case allToAll:
		return o.n * g, o.n * g, 0
	case scatter:
		return o.n * g, o.n, rank * o.n
	case reduceScatterV, scatterV:
		return sum(o.counts) * o.row, o.counts[rank] * o.row, sum(o.counts[:rank]) * o.row
	case allGatherV, gatherV:
		return o.counts[rank] * o.row, sum(o.counts) * o.row, sum(o.counts[:rank]) * o.row
	case allToAllV:
		in := 0
		for a := range g {
			in += o.sent[a][rank]
		}
		return sum(o.sent[rank]) * o.row, in * o.row, 0
	case mappedScatter, mappedGather:
		per := 0
		for _, l := range c.mapping {
			per += ceil(l, g)
		}
		if c.k == mappedScatter {
			return o.n, per, -1
		}
		return per, o.n, -1
	case execute:
		return c.ex.lens(rank)
	}
	return o.n, o.n, 0
}

// String describes the call for a report.
func (c *call) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v g=%d op=%v root=%d several=%v tensors=%v runs=%d class=%d",
		c.k, c.g, c.op, c.root, c.several, c.tensors, c.runs, c.class)
	for _, o := range c.opds {
		fmt.Fprintf(&s, " [%v n=%d row=%d counts=%v sent=%v shape=%d]", o.dt, o.n, o.row, o.counts, o.sent, o.shape)
	}
	if c.mapping != nil {
		fmt.Fprint(&s, " mapping ", c.mapping)
	}
	if c.ex != nil {
		s.WriteString(" " + c.ex.String())
	}
	return s.String()
}
