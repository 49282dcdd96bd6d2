package commgroup_test

import (
	"fmt"

	"gogcl.dev/commgroup"
)

func Example() {
	group := commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 2}
	layout, err := group.Resolve(8)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(group, "of 8 replicas:")
	for g := range layout.Groups() {
		fmt.Println("group", g, "is", layout.Members(g))
	}
	fmt.Println("replica 6 has rank", layout.RankOf(6), "in group", layout.GroupOf(6))
	// Output:
	// CONSECUTIVE(2, stride 2) of 8 replicas:
	// group 0 is [0 2]
	// group 1 is [1 3]
	// group 2 is [4 6]
	// group 3 is [5 7]
	// replica 6 has rank 1 in group 2
}

func ExampleGroup_Resolve_error() {
	_, err := commgroup.Group{Type: commgroup.Consecutive, Size: 1, Stride: 3}.Resolve(8)
	fmt.Println(err)
	_, err = commgroup.Group{Type: commgroup.All, Size: 4}.Resolve(8)
	fmt.Println(err)
	_, err = commgroup.Group{Type: commgroup.Orthogonal, Size: 2, Stride: 4}.Resolve(8)
	fmt.Println(err)
	// Output:
	// commgroup: 8 replicas are not a multiple of size 1 times stride 3: with size 1 want a stride of 1, 2, 4 or 8
	// commgroup: an ALL group of 8 replicas has size 8 or 0, not 4
	// commgroup: an ORTHOGONAL group of size 2 of 8 replicas takes no explicit stride, not 4
}

func ExampleLists() {
	group, err := commgroup.Lists([][]int{{0, 3}, {4, 1, 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	layout, err := group.Resolve(5)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(group)
	fmt.Println("replica 4 has rank", layout.RankOf(4), "of", layout.SizeOf(1), "in group", layout.GroupOf(4))
	_, err = commgroup.Lists([][]int{{0, 3}, {1, 2, 3}})
	fmt.Println(err)
	_, err = group.Resolve(6)
	fmt.Println(err)
	// Output:
	// LISTS({0 3} {1 2 4})
	// replica 4 has rank 2 of 3 in group 1
	// commgroup: replica 3 is in two groups, {0 3} and {1 2 3}
	// commgroup: replica 5 is in no group of LISTS({0 3} {1 2 4}): want every one of the 6 replicas in a group, alone if it sits out
}

func ExampleLayout_Transpose() {
	pairs, err := commgroup.Group{Type: commgroup.Consecutive, Size: 2}.Resolve(8)
	if err != nil {
		fmt.Println(err)
		return
	}
	across, err := pairs.Transpose()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(across.Group(), across.Members(0), across.Members(1))
	// Output: CONSECUTIVE(4, stride 2) [0 2 4 6] [1 3 5 7]
}

func ExampleParse() {
	group, err := commgroup.Parse("ORTHOGONAL(4)")
	fmt.Println(group.Type, group.Size, group.Stride, err)
	_, err = commgroup.Parse("DIAGONAL(4)")
	fmt.Println(err)
	// Output:
	// ORTHOGONAL 4 0 <nil>
	// commgroup: unknown group "DIAGONAL(4)": want ALL, CONSECUTIVE or ORTHOGONAL, then maybe (size, stride s), or LISTS({0 3} {1 2 4})
}
