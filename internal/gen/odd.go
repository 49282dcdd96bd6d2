package main

import (
	"slices"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
)

// disagreements are the ways in which a call of one rank may differ from that of the others.
var disagreements = []string{
	"kind", "op", "count", "zero", "root", "counts", "zerocounts", "method", "rules", "dtype", "number", "mapping",
	"execute", "implementation", "reproducible", "segment", "stage", "extra", "group", "unequalparts",
}

// odd makes another call, and options, of one. It returns false if the kind of disagreement does not go with the call.
func odd(what string, seed uint64, c *call, o *gcl.Options) (d *call, ok bool) {
	r := source(seed, 8)
	d = &call{id: c.id, k: c.k, g: c.g, several: c.several, tensors: c.tensors, op: c.op, root: c.root, runs: c.runs,
		class: c.class, mapping: c.mapping, ex: c.ex}
	for _, x := range c.opds {
		x.counts = slices.Clone(x.counts)
		d.opds = append(d.opds, x)
	}
	if c.k == execute && c.ex.base != nil && (what == "op" || what == "dtype") {
		return nil, false // its oracle is shared
	}
	switch what {
	case "kind":
		for range 50 {
			d = newCall(mix(seed, r.Uint64()), c.g, false)
			if d.k != c.k && d.k.collective() != c.k.collective() && (d.op != gcl.Local || !d.k.combines()) {
				return d, true
			}
		}
		return nil, false
	case "op":
		if !c.k.combines() && !(c.k == execute && c.ex.s.Contract().Combines) {
			return nil, false
		}
		for range 50 {
			d.op = gcl.Operator(r.IntN(8))
			fine := d.op != c.op
			for _, x := range c.opds {
				fine = fine && takes(d.op, x.dt)
			}
			if fine {
				return d, true
			}
		}
		return nil, false
	case "count", "zero":
		if c.k.byCounts() || c.k >= mappedScatter || len(c.opds) == 0 {
			return nil, false
		}
		x := &d.opds[r.IntN(len(d.opds))]
		if what == "zero" && x.n != 0 {
			x.n = 0
		} else if what == "zero" {
			return nil, false
		} else {
			x.n += 1 + r.IntN(3)
		}
		return d, true
	case "root":
		if !c.k.rooted() {
			return nil, false
		}
		d.root = (c.root + 1 + r.IntN(c.g-1)) % c.g
		return d, true
	case "counts", "zerocounts":
		if !c.k.byCounts() || c.k == allToAllV || len(c.opds) == 0 {
			return nil, false
		}
		x := &d.opds[r.IntN(len(d.opds))]
		if what == "zerocounts" {
			if sum(x.counts) == 0 {
				return nil, false
			}
			clear(x.counts)
			return d, true
		}
		// the same sum, where there is something to move
		i, j := r.IntN(c.g), r.IntN(c.g)
		if i == j || x.counts[i] == 0 {
			x.counts[i]++
			return d, true
		}
		x.counts[i]--
		x.counts[j]++
		return d, true
	case "unequalparts":
		if c.k != allToAllV || len(c.opds) == 0 {
			return nil, false
		}
		for i := range d.opds {
			x := &d.opds[i]
			var sent [][]int
			for _, s := range x.sent {
				sent = append(sent, slices.Clone(s))
			}
			x.sent = sent
		}
		return d, true // the caller changes the row of the odd rank
	case "method":
		was := o.Method
		if c.k == barrier || c.k == execute || c.k == allToAllV { // it has no say there
			return nil, false
		}
		for range 50 {
			o.Method = methodPool()[r.IntN(len(methodPool()))]
			if o.Method != methods.Auto && o.Method != was {
				return d, true
			}
		}
		return nil, false
	case "rules":
		o.Method = methods.Auto
		rules, err := methods.ParseRules([]byte(randomRules(r) + "all-reduce 2- 0 clockwise_ring\n"))
		if err != nil {
			panic(err)
		}
		o.Tuning = rules
		return d, true
	case "implementation":
		o.Implementation = map[gcl.Implementation]gcl.Implementation{gcl.Syncful: gcl.Syncless}[o.Implementation]
		if o.Implementation == gcl.AutoImplementation {
			o.Implementation = gcl.Syncful
		}
		return d, true
	case "reproducible":
		o.Reproducible = !o.Reproducible
		return d, true
	case "segment":
		o.MaxBytesPerTile = 77
		return d, true
	case "stage":
		o.StageFragments = !o.StageFragments
		return d, true
	case "broadcastsize":
		o.MaxBroadcastSize = 4321
		return d, true
	case "dtype":
		if len(c.opds) == 0 || c.k == barrier {
			return nil, false
		}
		for range 50 {
			i := r.IntN(len(d.opds))
			if !d.tensors {
				i = 0
			}
			dt := dtypes[r.IntN(len(dtypes))]
			combines := c.k.combines() || c.k == execute && c.ex.s.Contract().Combines
			if dt != c.opds[i].dt && (!combines || takes(c.op, dt)) {
				if d.tensors {
					d.opds[i].dt = dt
				} else {
					for i := range d.opds {
						d.opds[i].dt = dt
					}
				}
				return d, true
			}
		}
		return nil, false
	case "number":
		if c.k >= mappedScatter || len(c.opds) == 0 {
			return nil, false
		}
		d.several = true
		d.opds = append(d.opds, d.opds[0])
		if c.several && len(c.opds) > 1 && r.IntN(2) == 0 {
			d.opds = slices.Clone(c.opds[:len(c.opds)-1])
		}
		return d, true
	case "mapping":
		if c.k != mappedScatter && c.k != mappedGather {
			return nil, false
		}
		// as many elements, cut elsewhere
		d.mapping = append(chunks.Mapping{}, c.mapping...)
		if d.mapping[0] > 0 {
			d.mapping[0]--
			d.mapping = append(d.mapping, 1)
			return d, true
		}
		return nil, false
	case "execute":
		if c.k != execute {
			return nil, false
		}
		for range 20 {
			d = &call{id: mix(seed, r.Uint64()), k: execute, g: c.g, runs: 1}
			d.exec(source(d.id, 2), false)
			if d.ex.s.Digest() != c.ex.s.Digest() {
				return d, true
			}
		}
		return nil, false
	}
	return d, true
}

// partitionOdd divides the replicas in another way: the members of a group less its last, and the others.
func partitionOdd(n int, members []int) [][]int {
	cut := members[:len(members)-1]
	var rest []int
	for x := range n {
		if !slices.Contains(cut, x) {
			rest = append(rest, x)
		}
	}
	return [][]int{cut, rest}
}
