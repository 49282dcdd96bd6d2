package main

import (
	"slices"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/topology"
)

// commDef says how a Comm of a program is made.
type commDef struct {
	parent  int
	what    string
	g       commgroup.Group
	groups  [][]int
	colours []int
	opt     gcl.Options
	rules   string
	conn    int
}

// step is what all replicas do next on one Comm.
type step struct {
	comm    int
	start   bool
	byGroup [][]*call // the calls, by group; nil: the group does nothing
}

// prog is a program: what all replicas do.
type prog struct {
	seed     uint64
	n        int
	topo     *topology.Config
	comms    []commDef
	steps    []step
	parallel bool
}

// newProg makes the program of a seed, for n replicas. topo is the machine; nil: one process may draw one. A job of
// processes has the machine that it is given.
func newProg(seed uint64, n int, topo *topology.Config, job bool, steps int) *prog {
	r := source(seed, 1)
	p := &prog{seed: seed, n: n, topo: topo, parallel: r.IntN(4) == 0}
	if !job && p.topo == nil && r.IntN(2) == 0 {
		c := topology.Config{Shape: topology.Shape(r.IntN(3)), Replicas: []int{n},
			IPUsPerReplica: pick(r, 1, 1, 2, 4), IOTiles: pick(r, 0, 1, 2)}
		for _, d := range []int{2, 3, 4, 5, 8} {
			if n%d == 0 && r.IntN(2) == 0 {
				c.Replicas = slices.Repeat([]int{n / d}, d)
				break
			}
		}
		if c.Shape == topology.Clique && r.IntN(4) == 0 && n > 1 {
			c.Domains, c.Replicas = make([]int, n), nil
			d := 1 + r.IntN(min(3, n))
			for x := range c.Domains {
				c.Domains[x] = x % d
			}
		}
		if _, err := topology.New(c); err == nil {
			p.topo = &c
		}
	}
	all := partition(n, func(int) int { return 0 })
	p.comms = []commDef{{what: "base", groups: all, parent: -1}}
	conns := 1
	for range r.IntN(7) {
		parent := r.IntN(len(p.comms))
		d := p.comms[parent]
		d.parent = parent
		switch d.what = pick(r, "group", "group", "with", "with", "with", "split", "dup", "named"); d.what {
		case "group":
			d.g, d.groups = randomGroup(r, n)
		case "split":
			d.colours = make([]int, n)
			for x := range d.colours {
				d.colours[x] = r.IntN(1+r.IntN(4))*7 - 3
			}
			d.groups = partition(n, func(x int) int { return d.colours[x] })
		case "with":
			d.opt, d.rules = randomOptions(r, p.topo)
		case "dup":
			if conns == 4 {
				d.what = "named"
				break
			}
			d.conn = conns
			conns++
		}
		p.comms = append(p.comms, d)
	}
	for s := range steps {
		st := step{comm: r.IntN(len(p.comms)), start: r.IntN(5) == 0}
		groups := p.comms[st.comm].groups
		st.byGroup = make([][]*call, len(groups))
		for g := range groups {
			if r.IntN(12) == 0 {
				continue
			}
			calls := 1
			if st.start {
				calls = 1 + r.IntN(3)
			}
			for i := range calls {
				id := mix(seed, uint64(s), uint64(g), uint64(i))
				st.byGroup[g] = append(st.byGroup[g], newCall(id, len(groups[g]), p.comms[st.comm].opt.Reproducible))
			}
		}
		p.steps = append(p.steps, st)
	}
	return p
}
