package wire

import (
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
)

// TestGroupID tries all groups of up to 64 replicas: members have one number, others another, and a number has its
// members' name.
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
					id := GroupID(all)
					if have, known := members[id]; known && have != name {
						t.Fatalf("%#x is %s and %s", id, have, name)
					}
					members[id] = name
					if size > 8 {
						name = fmt.Sprintf("%d, %d, ..., %d", all[0], all[1], all[size-1])
					}
					if got := GroupName(id); got != "{"+name+"}" {
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

// TestGroupIDWithoutName: members that the number has no room for, or that lie apart by this and that.
func TestGroupIDWithoutName(t *testing.T) {
	seen := map[uint64]bool{}
	for _, members := range [][]int{{1 << 21}, {0, 1 << 21}, {0, 1<<21 - 1, 1<<22 - 2}, {0, 2, 3}, {0, 2, 4, 5}, {3, 1},
		{0, 0}} {
		id := GroupID(members)
		if name := GroupName(id); name != fmt.Sprintf("%#x", id) || seen[id] {
			t.Errorf("%v: %#x is called %s", members, id, name)
		}
		seen[id] = true
	}
	for _, id := range []uint64{0, 1, 1 << 21} { // not from here
		if name := GroupName(id); name != fmt.Sprintf("%#x", id) {
			t.Errorf("%#x is called %s", id, name)
		}
	}
	if name := GroupName(GroupID([]int{0, 1<<21 - 1})); name != "{0, 2097151}" {
		t.Errorf("the last replica that has a name: %s", name)
	}
}
