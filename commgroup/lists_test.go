package commgroup_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
)

// lists is the Group of lists that are right.
func lists(t *testing.T, groups ...[]int) commgroup.Group {
	t.Helper()
	g, err := commgroup.Lists(groups)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestLists(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		groups [][]int
		want   string
	}{
		{[][]int{{0, 3}, {1, 2, 4}}, "LISTS({0 3} {1 2 4})"},
		{[][]int{{4, 1, 2}, {3, 0}}, "LISTS({0 3} {1 2 4})"},
		{[][]int{{0}}, "LISTS({0})"},
		{[][]int{{2}, {1}, {0}}, "LISTS({0} {1} {2})"},
		{[][]int{{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}}, "LISTS({0 1 2 3 4 5 6 7 8 9 10 11})"},
	} {
		given := fmt.Sprint(c.groups)
		g := lists(t, c.groups...)
		if g.String() != c.want || g.Type != commgroup.Listed {
			t.Errorf("%s prints as %s, want %s", given, g, c.want)
		}
		if fmt.Sprint(c.groups) != given {
			t.Errorf("%s has become %v", given, c.groups)
		}
	}
	if a, b := lists(t, []int{0, 3}, []int{1, 2, 4}), lists(t, []int{2, 4, 1}, []int{3, 0}); a != b {
		t.Errorf("%v is not %v", a, b)
	}
}

func TestListsErrors(t *testing.T) {
	t.Parallel()
	long := make([]int, 100)
	for i := range long {
		long[i] = i
	}
	for _, c := range []struct {
		groups [][]int
		want   string
	}{
		{nil, "lists without a group, want at least one"},
		{[][]int{}, "lists without a group, want at least one"},
		{[][]int{{}}, "group 0 of the lists is empty, want at least one replica"},
		{[][]int{{0}, {1}, nil}, "group 2 of the lists is empty, want at least one replica"},
		{[][]int{{0, -1}}, "replica -1 in group {0 -1}, want 0 or more"},
		{[][]int{{0, 3}, {1, 2, 3}}, "replica 3 is in two groups, {0 3} and {1 2 3}"},
		{[][]int{{1, 2, 3}, {0}, {3}, {3}}, "replica 3 is in two groups, {1 2 3} and {3}"},
		{[][]int{{0, 2, 2}, {1}}, "replica 2 is twice in group {0 2 2}"},
		{[][]int{{1}}, "replica 0 is in no group: every replica must be in one, alone if it sits out"},
		{[][]int{{0, 3}, {1, 4}}, "replica 2 is in no group"},
		{[][]int{{0}, {5}}, "replicas 1 to 4 are in no group"},
		{[][]int{{0, math.MaxInt}}, fmt.Sprintf("replicas 1 to %d are in no group", math.MaxInt-1)},
		{[][]int{long, {100, 7}}, "replica 7 is in two groups, {0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 ... and 84 more} " +
			"and {7 100}"},
	} {
		g, err := commgroup.Lists(c.groups)
		if err == nil || !strings.HasPrefix(err.Error(), "commgroup: "+c.want) {
			t.Errorf("%v: error %v, want %q", c.groups, err, c.want)
		}
		if g != (commgroup.Group{}) {
			t.Errorf("%v: %#v beside the error", c.groups, g)
		}
	}
}

func TestListsResolveErrors(t *testing.T) {
	t.Parallel()
	g := lists(t, []int{0, 3}, []int{1, 2, 4})
	sized, strided, untyped := g, g, g
	sized.Size, strided.Stride, untyped.Type = 2, 1, commgroup.All
	for _, c := range []struct {
		n    int
		g    commgroup.Group
		want string
	}{
		{6, g, "replica 5 is in no group of LISTS({0 3} {1 2 4}): want every one of the 6 replicas in a group, alone if " +
			"it sits out"},
		{8, g, "replicas 5 to 7 are in no group of LISTS({0 3} {1 2 4})"},
		{4, g, "replica 4 of group {1 2 4} does not exist among 4 replicas, want 0 to 3"},
		{2, g, "replica 3 of group {0 3} does not exist among 2 replicas, want 0 to 1"},
		{0, g, "LISTS({0 3} {1 2 4}) needs at least one replica, not 0"},
		{5, commgroup.Group{Type: commgroup.Listed}, "LISTS group without lists, want one made by Lists or Parse"},
		{5, sized, "LISTS group with size 2 and stride 0, want 0 for both"},
		{5, strided, "LISTS group with size 0 and stride 1, want 0 for both"},
		{5, untyped, "ALL group with lists, want type LISTS"},
	} {
		l, err := c.g.Resolve(c.n)
		if err == nil || !strings.HasPrefix(err.Error(), "commgroup: "+c.want) {
			t.Errorf("n=%d %+v: error %v, want %q", c.n, c.g, err, c.want)
		}
		if l != (commgroup.Layout{}) {
			t.Errorf("n=%d %+v: a layout %v beside the error", c.n, c.g, l)
		}
	}
	for _, g := range []commgroup.Group{{Type: commgroup.Listed}, sized, strided, untyped} {
		if text, err := g.MarshalText(); err == nil {
			t.Errorf("%#v is written as %s", g, text)
		}
	}
}

// randomPartition deals n replicas out to groups of any sizes, in any order.
func randomPartition(r *rand.Rand, n int) [][]int {
	groups := make([][]int, 1+r.IntN(n))
	for _, replica := range r.Perm(n) {
		g := r.IntN(len(groups))
		groups[g] = append(groups[g], replica)
	}
	return slices.DeleteFunc(groups, func(members []int) bool { return len(members) == 0 })
}

// canonical has the groups by their first members, and these ascending.
func canonical(groups [][]int) [][]int {
	var out [][]int
	for _, members := range groups {
		out = append(out, slices.Sorted(slices.Values(members)))
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

func TestListsAgainstOracle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(17, 4))
	irregular := 0
	for range 3000 {
		n := 1 + r.IntN(12)
		groups := randomPartition(r, n)
		want := canonical(groups)
		g := lists(t, groups...)
		l, err := g.Resolve(n)
		if err != nil {
			t.Fatal(err)
		}
		if got := partition(l); fmt.Sprint(got) != fmt.Sprint(want) || l.Replicas() != n || l.Groups() != len(want) {
			t.Fatalf("%v of %d: %v, want %v", g, n, got, want)
		}
		size := len(want[0])
		for k, members := range want {
			if l.SizeOf(k) != len(members) {
				t.Fatalf("%v: group %d has %d members, want %d", g, k, l.SizeOf(k), len(members))
			}
			for rank, replica := range members {
				if l.GroupOf(replica) != k || l.RankOf(replica) != rank || l.Member(k, rank) != replica {
					t.Fatalf("%v: replica %d is in group %d at %d, want %d at %d", g, replica, l.GroupOf(replica),
						l.RankOf(replica), k, rank)
				}
			}
			if l.Member(k, len(members)) != -1 || l.Member(k, -1) != -1 {
				t.Fatalf("%v: group %d has a rank that is none", g, k)
			}
			if len(members) != len(want[0]) {
				size = 0
			}
		}
		if l.Size() != size {
			t.Fatalf("%v: size %d, want %d", g, l.Size(), size)
		}
		if back, err := l.Group().Resolve(n); err != nil || back != l {
			t.Fatalf("%v: describes itself as %v, which is %v, %v", g, l.Group(), back, err)
		}
		if l.Stride() == 0 {
			irregular++
			if l.Group() != g {
				t.Fatalf("%v describes itself as %v", g, l.Group())
			}
		}
		for _, id := range []int{-1, n, math.MaxInt} {
			if l.GroupOf(id) != -1 || l.RankOf(id) != -1 || l.Members(id) != nil || l.SizeOf(id) != -1 ||
				l.Member(id, 0) != -1 {
				t.Fatalf("%v: replica or group %d exists", g, id)
			}
		}
	}
	if irregular < 1000 {
		t.Errorf("%d of the partitions were irregular", irregular)
	}
}

// Lists that a size and a stride can say are the layout of these, and no others are.
func TestListsEqualRegularLayouts(t *testing.T) {
	t.Parallel()
	regular := map[string]commgroup.Layout{}
	const n = 12
	for size := 1; size <= n; size++ {
		for stride := 1; stride <= n; stride++ {
			g := commgroup.Group{Type: commgroup.Consecutive, Size: size, Stride: stride}
			l, err := g.Resolve(n)
			if err != nil {
				continue
			}
			regular[fmt.Sprint(partition(l))] = l
			if got, err := lists(t, partition(l)...).Resolve(n); err != nil || got != l {
				t.Errorf("%v by lists is %v, %v", g, got, err)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		groups := canonical(randomPartition(r, n))
		l, err := lists(t, groups...).Resolve(n)
		if err != nil {
			t.Fatal(err)
		}
		if same, is := regular[fmt.Sprint(groups)]; is != (l.Stride() > 0) || is && same != l {
			t.Fatalf("%v has stride %d", groups, l.Stride())
		}
	}
}

func TestListsTranspose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		groups [][]int
		want   string // of the transpose, or in the error
	}{
		{[][]int{{0, 1, 4, 5}, {2, 3, 6, 7}}, "[[0 2] [1 3] [4 6] [5 7]]"},
		{[][]int{{0, 2}, {1, 5}, {3, 6}, {4, 7}}, "[[0 1 3 4] [2 5 6 7]]"},
		{[][]int{{0, 3}, {1, 2}}, "groups {0 3} and {1 2} have no transpose: at rank 1 want replicas that ascend, not 3 " +
			"before 2"},
		{[][]int{{0, 3}, {1, 2, 4}}, "different sizes, {0 3} and {1 2 4}, have no transpose"},
	} {
		n := len(slices.Concat(c.groups...))
		l, err := lists(t, c.groups...).Resolve(n)
		if err != nil {
			t.Fatal(err)
		}
		across, err := l.Transpose()
		if err != nil {
			if !strings.Contains(err.Error(), c.want) || across != (commgroup.Layout{}) {
				t.Errorf("%v: error %v, want %q in it", c.groups, err, c.want)
			}
			continue
		}
		if got := fmt.Sprint(partition(across)); got != c.want {
			t.Errorf("%v across is %s, want %s", c.groups, got, c.want)
		}
		for r := range n {
			if across.GroupOf(r) != l.RankOf(r) || across.RankOf(r) != l.GroupOf(r) {
				t.Errorf("%v across: replica %d is (%d, %d) and (%d, %d)", c.groups, r, l.GroupOf(r), l.RankOf(r),
					across.GroupOf(r), across.RankOf(r))
			}
		}
	}
}

func TestParseLists(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"LISTS({0 3} {1 2 4})":           "LISTS({0 3} {1 2 4})",
		" LISTS ( { 4,2 , 1}, {3 , 0} )": "LISTS({0 3} {1 2 4})",
		"LISTS({0}{1})":                  "LISTS({0} {1})",
	} {
		if g, err := commgroup.Parse(text); err != nil || g.String() != want {
			t.Errorf("%q: %v, %v, want %s", text, g, err, want)
		}
	}
	for text, want := range map[string]string{
		"LISTS":                         "does not end in a bracket",
		"LISTS({0 3} {1 2 4}":           "does not end in a bracket",
		"LISTS()":                       `lists of group "LISTS()": lists without a group`,
		"LISTS({})":                     "group 0 of the lists is empty",
		"LISTS(0 3)":                    `want groups such as {0 3} {1 2 4}, not "0 3"`,
		"LISTS({0 3} 1)":                `want groups such as {0 3} {1 2 4}, not "1"`,
		"LISTS({0 3)":                   `group "{0 3" does not end in "}"`,
		"LISTS({0 -1})":                 `"-1" is not a whole number`,
		"LISTS({0 x})":                  `"x" is not a whole number`,
		"LISTS({0 1} {1})":              "replica 1 is in two groups, {0 1} and {1}",
		"LISTS({0 2})":                  "replica 1 is in no group",
		"LISTS({0}, , {1})":             `not ", {1}"`,
		"LISTS({0},)":                   `lists of group "LISTS({0},)": want a group after the comma behind group {0}`,
		"LISTS({0} {1} , )":             "want a group after the comma behind group {1}",
		"LISTS({0,})":                   "group {0,}: want a number on both sides of a comma",
		"LISTS({,0})":                   "group {,0}: want a number on both sides of a comma",
		"LISTS({0 , ,1})":               "group {0 , ,1}: want a number on both sides of a comma",
		"LISTS({,})":                    "group {,}: want a number on both sides of a comma",
		"LISTS({99999999999999999999})": "99999999999999999999 is too large",
	} {
		g, err := commgroup.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || g != (commgroup.Group{}) {
			t.Errorf("%q: %v, error %v, want %q in it", text, g, err, want)
		}
	}
}

// TestListsSizeTimesStride: in 32 bits the size of the first group times its stride is 0, by which nothing divides.
func TestListsSizeTimesStride(t *testing.T) {
	t.Parallel()
	const n = 1 << 17
	first, rest := []int{0}, []int{n - 1}
	for r := 1; r < n-1; r++ {
		if r >= n/2 {
			first = append(first, r)
		} else {
			rest = append(rest, r)
		}
	}
	l, err := lists(t, first, rest).Resolve(n)
	if err != nil {
		t.Fatal(err)
	}
	if l.Stride() != 0 || l.Groups() != 2 || !slices.Equal(l.Members(0), first) {
		t.Errorf("stride %d, %d groups, %d members of the first", l.Stride(), l.Groups(), l.SizeOf(0))
	}
}
