package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

var (
	floatSub  = [4]inst{2: (*build.Context).VSUBPS, 3: (*build.Context).VSUBPD}
	floatSqrt = [4]inst{2: (*build.Context).VSQRTPS, 3: (*build.Context).VSQRTPD}
	floatCmp  = [4]inst{2: (*build.Context).VCMPPS, 3: (*build.Context).VCMPPD}
)

// notLess is true also where one is a NaN.
const notLess = operand.U8(0x15)

// The pointers of an update, and its outputs among them.
const (
	param = iota
	from
	grad
	first
	second
)

// update is a step of an optimiser: package kernel's Update has what it computes.
type update struct {
	name    string // in package kernel
	numbers int
	writes  []int // the pointers
	step    func(u *updater, at func(ptr int) vec) []vec
}

var updates = []update{
	{"Descend", 1, []int{param}, func(u *updater, at func(ptr int) vec) []vec {
		g, p := at(grad), at(from)
		u.mul(u.numbers[0], g)
		return []vec{u.less(p, g)}
	}},
	{"Momentum", 2, []int{param, first}, func(u *updater, at func(ptr int) vec) []vec {
		v := u.velocity(at(first), at(grad))
		t := u.vec()
		floatMul[u.e.index()](u.Context, u.numbers[0], v, t)
		return []vec{u.less(at(from), t), v}
	}},
	{"Nesterov", 2, []int{param, first}, func(u *updater, at func(ptr int) vec) []vec {
		g := at(grad)
		v := u.velocity(at(first), g)
		t := u.vec()
		floatMul[u.e.index()](u.Context, u.numbers[1], v, t)
		u.add(t, g)
		u.mul(u.numbers[0], g)
		return []vec{u.less(at(from), g), v}
	}},
	{"Adam", 5, []int{param, first, second}, func(u *updater, at func(ptr int) vec) []vec {
		own1, own2, size, scale, epsilon := u.numbers[0], u.numbers[1], u.numbers[2], u.numbers[3], u.numbers[4]
		g, m, s := at(grad), at(first), at(second)
		t := u.vec()
		floatSub[u.e.index()](u.Context, m, g, t) // g - m
		u.mul(own1, t)
		u.add(t, m)
		u.mul(g, g)
		floatSub[u.e.index()](u.Context, s, g, g) // g g - s
		u.mul(own2, g)
		u.add(g, s)
		u.flush(m)
		u.flush(s)
		r := u.vec()
		floatSqrt[u.e.index()](u.Context, s, r)
		u.mul(scale, r)
		u.add(epsilon, r)
		q := u.vec()
		floatMul[u.e.index()](u.Context, size, m, q)
		floatDiv[u.e.index()](u.Context, r, q, q)
		return []vec{u.less(at(from), q), m, s}
	}},
}

// updater emits one update.
type updater struct {
	*elementwise
	numbers []vec
}

// emitUpdates writes the steps of optimisers.
func emitUpdates(c *build.Context, t *table) {
	for _, step := range updates {
		for _, e := range elements {
			if e.class == float {
				name := t.function(step.name, e.name)
				t.add("update", "t.update[%s][%s] = %s", step.name, e.name, name)
				emitUpdate(c, t, name, &step, e)
			}
		}
	}
}

func emitUpdate(c *build.Context, t *table, name string, step *update, e *element) {
	g := function(c, t.isa, name, "func(param, from, grad, first, second *byte, n int, a, b, c, d, e uint64)",
		fmt.Sprintf("for i := range n%s { the update %s of element i }%s", e.per(), step.name, e.note()))
	u := &updater{elementwise: g.elementwise(e, "param", "from", "grad", "first", "second")}
	for _, name := range []string{"a", "b", "c", "d", "e"}[:step.numbers] {
		v := g.vec()
		g.broadcast(g.Load(g.Param(name), g.GP64()).(gp), e.bytes, v)
		u.numbers = append(u.numbers, v)
	}
	e.prepare(g)
	if e.bytes == 4 {
		g.constant("magnitude", 4, 1<<31-1)
		g.constant("tiny", 4, (127-100)<<23)
	} else {
		g.constant("magnitude", 8, 1<<63-1)
		g.constant("tiny", 8, (1023-900)<<52)
	}
	u.turns(func(n int) {
		for i := range n {
			results := step.step(u, func(ptr int) vec {
				v := u.gen.vec()
				u.load(u.mem(ptr, i*u.span(e)), v)
				return v
			})
			for k, v := range results {
				e.canonical(g, v)
				u.store(v, u.mem(step.writes[k], i*u.span(e)))
			}
		}
	}, func() {
		mask := u.mask(u.left)
		results := step.step(u, func(ptr int) vec { return u.loadMasked(e, u.mem(ptr, 0), mask).(vec) })
		for k, v := range results {
			e.canonical(g, v)
			u.storeMasked(v, mask, u.mem(step.writes[k], 0))
		}
	})
	u.end()
}

func (u *updater) mul(by, v vec) { floatMul[u.e.index()](u.Context, by, v, v) }
func (u *updater) add(x, v vec)  { floatAdd[u.e.index()](u.Context, x, v, v) }

// less is a - b, in b.
func (u *updater) less(a, b vec) vec {
	floatSub[u.e.index()](u.Context, b, a, b)
	return b
}

// velocity is momentum v + g, in v.
func (u *updater) velocity(v, g vec) vec {
	u.mul(u.numbers[1], v)
	u.add(g, v)
	u.flush(v)
	return v
}

// flush makes what is tiny 0.
func (u *updater) flush(v vec) {
	size := u.vec()
	u.and(u.constants["magnitude"], v, size)
	i := u.e.index()
	if u.width == 64 {
		k := u.K()
		floatCmp[i](u.Context, notLess, u.constants["tiny"], size, k)
		if u.e.bytes == 4 {
			u.VMOVAPS_Z(v, k, v)
		} else {
			u.VMOVAPD_Z(v, k, v)
		}
		return
	}
	floatCmp[i](u.Context, notLess, u.constants["tiny"], size, size)
	u.and(size, v, v)
}
