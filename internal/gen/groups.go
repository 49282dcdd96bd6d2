package main

import (
	"math/rand/v2"
	"slices"

	"gogcl.dev/commgroup"
)

// partition divides the replicas by what of says of them.
func partition(n int, of func(int) int) [][]int {
	var out [][]int
	index := map[int]int{}
	for x := range n {
		c := of(x)
		if _, ok := index[c]; !ok {
			index[c] = len(out)
			out = append(out, nil)
		}
		out[index[c]] = append(out[index[c]], x)
	}
	return out
}

// randomGroup draws a division into groups, and says which groups it has: the least member first.
func randomGroup(r *rand.Rand, n int) (commgroup.Group, [][]int) {
	switch r.IntN(5) {
	case 0:
		return commgroup.Group{}, partition(n, func(int) int { return 0 })
	case 1, 2:
		var sk [][2]int
		for s := 1; s <= n; s++ {
			for k := 1; k <= n; k++ {
				if n%(s*k) == 0 {
					sk = append(sk, [2]int{s, k})
				}
			}
		}
		p := sk[r.IntN(len(sk))]
		s, k := p[0], p[1]
		return commgroup.Group{Type: commgroup.Consecutive, Size: k, Stride: s},
			partition(n, func(x int) int { return x%s + s*(x/(s*k)) })
	case 3:
		var ks []int
		for k := 1; k <= n; k++ {
			if n%k == 0 {
				ks = append(ks, k)
			}
		}
		k := ks[r.IntN(len(ks))]
		return commgroup.Group{Type: commgroup.Orthogonal, Size: k},
			partition(n, func(x int) int { return x % (n / k) })
	}
	colours := make([]int, n)
	for x := range colours {
		colours[x] = r.IntN(1 + r.IntN(4))
	}
	groups := partition(n, func(x int) int { return colours[x] })
	lists := make([][]int, len(groups))
	for i, p := range r.Perm(len(groups)) {
		lists[i] = slices.Clone(groups[p])
		r.Shuffle(len(lists[i]), func(a, b int) { lists[i][a], lists[i][b] = lists[i][b], lists[i][a] })
	}
	g, err := commgroup.Lists(lists)
	if err != nil {
		panic(err)
	}
	return g, groups
}

// groupOf is the place of the group that replica x is in.
func groupOf(groups [][]int, x int) int {
	return slices.IndexFunc(groups, func(g []int) bool { return slices.Contains(g, x) })
}
