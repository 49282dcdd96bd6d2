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
					id := GroupID(all, 0)
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

// TestGroupIDOfSets: members that lie apart by this and that, and groups of lists. A number is of one set, and tells
// lists apart.
func TestGroupIDOfSets(t *testing.T) {
	for _, c := range []struct {
		members   []int
		partition uint64
		want      string
	}{
		{[]int{0, 2, 3}, 0, "{0, 2, 3}"},
		{[]int{0, 2, 4, 5}, 0, "{0, 2, 4, 5}"},
		{[]int{0, 47}, 7, "{0, 47} of lists 8"},
		{[]int{0, 1}, 7, "{0, 1} of lists 8"},
		{[]int{0, 1}, 1<<14 - 1, "{0, 1} of lists 1"},
		{[]int{47}, 1<<14 - 2, "{47} of lists 3fff"},
		{[]int{0, 2, 3, 5, 7, 11, 13, 17, 19}, 0, "{0, 2, ..., 19}"},
	} {
		if got := GroupName(GroupID(c.members, c.partition)); got != c.want {
			t.Errorf("%v of %d is called %s, want %s", c.members, c.partition, got, c.want)
		}
	}
	seen := map[uint64]string{}
	for partition := range uint64(3) {
		for set := 1; set < 1<<10; set++ {
			var members []int
			for r := range 10 {
				if set>>r&1 != 0 {
					members = append(members, r)
				}
			}
			id := GroupID(members, partition)
			name := fmt.Sprint(members, partition)
			if have, known := seen[id]; known {
				t.Fatalf("%#x is %s and %s", id, have, name)
			}
			seen[id] = name
		}
	}
	big := []int{0, 50}
	if a, b := GroupID(big, 1), GroupID(big, 2); a == b {
		t.Errorf("two lists have one number, %#x", a)
	}
	if id := OwnGroup(3, 128); GroupName(id) != fmt.Sprintf("%#x", id) || id&HashedGroup == 0 {
		t.Errorf("%#x has a name, %s", id, GroupName(id))
	}
}

// TestGroupIDWithoutName: members that the number has no room for.
func TestGroupIDWithoutName(t *testing.T) {
	seen := map[uint64]bool{}
	for _, members := range [][]int{{1 << 21}, {0, 1 << 21}, {0, 1<<21 - 1, 1<<22 - 2}, {0, 2, 48}, {3, 1},
		{0, 2, 1}, {0, 0}} {
		id := GroupID(members, 0)
		if name := GroupName(id); name != fmt.Sprintf("%#x", id) || seen[id] {
			t.Errorf("%v: %#x is called %s", members, id, name)
		}
		seen[id] = true
	}
	for _, id := range []uint64{0, 1, 1 << 21, HashedGroup, HashedGroup | setGroup} { // not from here
		if name := GroupName(id); name != fmt.Sprintf("%#x", id) {
			t.Errorf("%#x is called %s", id, name)
		}
	}
	if name := GroupName(GroupID([]int{0, 1<<21 - 1}, 0)); name != "{0, 2097151}" {
		t.Errorf("the last replica that has a name: %s", name)
	}
}
