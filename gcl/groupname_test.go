package gcl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
)

// TestGroupID tries all groups of up to 64 replicas: members have one number, others another, and a number has its members' name.
func TestGroupID(t *testing.T) {
	members := map[uint64]string{}
	for _, n := range []int{1, 2, 3, 4, 6, 8, 12, 16, 30, 64} {
		for size := 1; size <= n; size++ {
			for stride := 1; size*stride <= n; stride++ {
				g := commgroup.Group{Type: commgroup.Consecutive, Size: size, Stride: stride}
				l, err := g.Resolve(n)
				if err != nil {
					continue
				}
				for r := range n {
					all := l.Members(l.GroupOf(r))
					name := strings.ReplaceAll(strings.Trim(fmt.Sprint(all), "[]"), " ", ", ")
					id := gcl.GroupID(g, n, r)
					if have, known := members[id]; known && have != name {
						t.Fatalf("%#x is %s and %s", id, have, name)
					}
					members[id] = name
					if size > 8 {
						name = fmt.Sprintf("%d, %d, ..., %d", all[0], all[1], all[size-1])
					}
					if got := gcl.GroupName(id); got != "{"+name+"}" {
						t.Fatalf("%v of %d: replica %d is in %s, want {%s}", g, n, r, got, name)
					}
				}
			}
		}
	}
	names := map[string]bool{}
	for _, name := range members {
		if names[name] {
			t.Errorf("%s has two numbers", name)
		}
		names[name] = true
	}
}

// TestGroupIDOfMany: more replicas than the number has room for.
func TestGroupIDOfMany(t *testing.T) {
	const n = 1 << 22
	var ids []uint64
	for _, r := range []int{0, 1, 2, n - 1} {
		ids = append(ids, gcl.GroupID(commgroup.Group{Type: commgroup.Consecutive, Size: n / 4, Stride: 2}, n, r))
	}
	if ids[0] != ids[2] || ids[0] == ids[1] || ids[1] == ids[3] || slices.Contains(ids, 0) {
		t.Errorf("%#x", ids)
	}
	for _, id := range append(ids, 0, 1<<21, 1) {
		if got := gcl.GroupName(id); got != fmt.Sprintf("%#x", id) {
			t.Errorf("%#x is called %s", id, got)
		}
	}
}
