package commgroup_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
)

func partition(l commgroup.Layout) [][]int {
	groups := [][]int{}
	for g := range l.Groups() {
		groups = append(groups, l.Members(g))
	}
	return groups
}

// The numbers of SEMANTICS.md, "Communication groups", and those of the table in doc.go.
var partitions = []struct {
	n    int
	g    commgroup.Group
	want string
}{
	{16, commgroup.Group{Type: commgroup.Consecutive, Size: 4}, "[[0 1 2 3] [4 5 6 7] [8 9 10 11] [12 13 14 15]]"},
	{16, commgroup.Group{Type: commgroup.Consecutive, Size: 4, Stride: 1}, "[[0 1 2 3] [4 5 6 7] [8 9 10 11] [12 13 14 15]]"},
	{16, commgroup.Group{Type: commgroup.Consecutive, Size: 4, Stride: 4}, "[[0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]]"},
	{16, commgroup.Group{Type: commgroup.Orthogonal, Size: 4}, "[[0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]]"},
	{16, commgroup.Group{Type: commgroup.Orthogonal, Size: 4, Stride: 1}, "[[0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]]"},
	{8, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 2}, "[[0 2] [1 3] [4 6] [5 7]]"},
	{8, commgroup.Group{}, "[[0 1 2 3 4 5 6 7]]"},
	{8, commgroup.Group{Size: 8}, "[[0 1 2 3 4 5 6 7]]"},
	{8, commgroup.Group{Stride: 1}, "[[0 1 2 3 4 5 6 7]]"},
	{8, commgroup.Group{Type: commgroup.Consecutive}, "[[0 1 2 3 4 5 6 7]]"},
	{8, commgroup.Group{Type: commgroup.Orthogonal}, "[[0 1 2 3 4 5 6 7]]"},
	{8, commgroup.Group{Type: commgroup.Consecutive, Size: 4}, "[[0 1 2 3] [4 5 6 7]]"},
	{8, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 4}, "[[0 4] [1 5] [2 6] [3 7]]"},
	{8, commgroup.Group{Type: commgroup.Orthogonal, Size: 2}, "[[0 4] [1 5] [2 6] [3 7]]"},
	{8, commgroup.Group{Type: commgroup.Orthogonal, Size: 4}, "[[0 2 4 6] [1 3 5 7]]"},
	{3, commgroup.Group{Type: commgroup.Consecutive, Size: 1, Stride: 3}, "[[0] [1] [2]]"},
	{3, commgroup.Group{Type: commgroup.Orthogonal, Size: 1}, "[[0] [1] [2]]"},
	{1, commgroup.Group{}, "[[0]]"},
	{12, commgroup.Group{Type: commgroup.Consecutive, Size: 3, Stride: 2}, "[[0 2 4] [1 3 5] [6 8 10] [7 9 11]]"},
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	for _, c := range partitions {
		t.Run(fmt.Sprintf("n=%d/group=%v", c.n, c.g), func(t *testing.T) {
			l, err := c.g.Resolve(c.n)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(partition(l)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// The table in doc.go says what the code does.
func TestDocTable(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(doc)) {
		text, groups, ok := strings.Cut(strings.TrimPrefix(line, "//\t"), "  ")
		if !ok || !strings.Contains(groups, "{") {
			continue
		}
		g, err := commgroup.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		l, err := g.Resolve(8)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.NewReplacer("[[", "{", "]]", "}", "[", "{", "]", "}").Replace(fmt.Sprint(partition(l)))
		if got != strings.TrimSpace(groups) {
			t.Errorf("%s: doc.go has %s, the code %s", text, strings.TrimSpace(groups), got)
		}
		rows++
	}
	if rows != 7 {
		t.Errorf("found %d rows in doc.go, want 7", rows)
	}
}

func TestResolveErrors(t *testing.T) {
	t.Parallel()
	const huge = math.MaxInt
	for _, c := range []struct {
		n    int
		g    commgroup.Group
		want string
	}{
		{8, commgroup.Group{Type: commgroup.Consecutive, Size: 1, Stride: 3}, "8 replicas are not a multiple of size 1 times stride 3: with size 1 want a stride of 1, 2, 4 or 8"},
		{8, commgroup.Group{Type: commgroup.Consecutive, Size: 3}, "8 replicas are not a multiple of size 3: want a size of 1, 2, 4 or 8"},
		{8, commgroup.Group{Type: commgroup.Consecutive, Size: 4, Stride: 4}, "8 replicas are not a multiple of size 4 times stride 4: with stride 4 want a size of 1 or 2"},
		{8, commgroup.Group{Type: commgroup.Consecutive, Size: 16}, "8 replicas are not a multiple of size 16: want a size of 1, 2, 4 or 8"},
		{8, commgroup.Group{Type: commgroup.Consecutive, Stride: 2}, "8 replicas are not a multiple of size 8 times stride 2: with stride 2 want a size of 1, 2 or 4"},
		{8, commgroup.Group{Type: commgroup.Consecutive, Size: 3, Stride: 5}, "8 replicas are not a multiple of size " +
			"3 times stride 5: " +
			"want a size of 1, 2, 4 or 8, and a stride that divides 8 by it"},
		{7, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 7}, "7 replicas are not a multiple of size 2 times stride 7: with stride 7 want a size of 1"},
		{720, commgroup.Group{Type: commgroup.Consecutive, Size: 7}, "720 replicas are not a multiple of size 7: " +
			"want a size of 3, 4, 5, 6, 8, 9, 10 or 12 (of 30 that would do)"},
		{720, commgroup.Group{Type: commgroup.Consecutive, Size: 721}, "want a size of 80, 90, 120, 144, 180, 240, 360 or 720 (of 30 that would do)"},
		{8, commgroup.Group{Type: commgroup.Orthogonal, Size: 3}, "8 replicas are not a multiple of size 3: want a size of 1, 2, 4 or 8"},
		{8, commgroup.Group{Stride: 2}, "8 replicas are not a multiple of size 8 times stride 2"},
		{8, commgroup.Group{Size: 4}, "an ALL group of 8 replicas has size 8 or 0, not 4"},
		{8, commgroup.Group{Type: commgroup.Orthogonal, Size: 2, Stride: 4}, "size 2 of 8 replicas takes no explicit stride, not 4"},
		{8, commgroup.Group{Type: commgroup.Orthogonal, Size: 3, Stride: 2}, "takes no explicit stride, not 2"},
		{8, commgroup.Group{Type: commgroup.Consecutive, Size: -1}, "negative size -1"},
		{8, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: -2}, "negative stride -2"},
		{8, commgroup.Group{Type: 7}, "Type(7) is no group type, want one of ALL, CONSECUTIVE, ORTHOGONAL, LISTS"},
		{0, commgroup.Group{}, "ALL needs at least one replica, not 0"},
		{-8, commgroup.Group{Type: commgroup.Consecutive, Size: 2}, "CONSECUTIVE(2) needs at least one replica, not -8"},
		// Products that overflow, to 0 and to small numbers.
		{8, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: huge}, "size 2 times stride"},
		{8, commgroup.Group{Type: commgroup.Consecutive, Size: huge, Stride: huge}, "not a multiple"},
		{1 << 30, commgroup.Group{Type: commgroup.Consecutive, Size: 1 << 16, Stride: 1 << 16}, "not a multiple"},
		{huge, commgroup.Group{Type: commgroup.Consecutive, Size: huge - 1, Stride: 2}, "not a multiple"},
	} {
		l, err := c.g.Resolve(c.n)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("n=%d %+v: error %v, want %q in it", c.n, c.g, err, c.want)
		}
		if l != (commgroup.Layout{}) {
			t.Errorf("n=%d %+v: a layout %v beside the error", c.n, c.g, l)
		}
	}
}

// dumbGroups deals replicas out one by one, as a person would: block after block, round robin within a block.
func dumbGroups(n, size, stride int) [][]int {
	groups := make([][]int, n/size)
	for r := range n {
		block, within := r/(size*stride), r%(size*stride)
		g := block*stride + within%stride
		groups[g] = append(groups[g], r)
	}
	return groups
}

func TestLayoutAgainstOracle(t *testing.T) {
	t.Parallel()
	resolved := 0
	for n := 1; n <= 48; n++ {
		for size := 1; size <= n+1; size++ {
			for stride := 1; stride <= n+1; stride++ {
				g := commgroup.Group{Type: commgroup.Consecutive, Size: size, Stride: stride}
				l, err := g.Resolve(n)
				if (err == nil) != (n%(size*stride) == 0) {
					t.Fatalf("n=%d %v: error %v", n, g, err)
				}
				if err != nil {
					continue
				}
				resolved++
				checkLayout(t, l, dumbGroups(n, size, stride))
				back, err := l.Group().Resolve(n)
				if err != nil || back != l {
					t.Fatalf("n=%d %v: layout %v describes itself as %v, which is %v, %v",
						n, g, l, l.Group(), back, err)
				}
			}
			orthogonal, err := commgroup.Group{Type: commgroup.Orthogonal, Size: size}.Resolve(n)
			if (err == nil) != (n%size == 0) {
				t.Fatalf("n=%d ORTHOGONAL(%d): error %v", n, size, err)
			}
			if err == nil {
				checkLayout(t, orthogonal, dumbGroups(n, size, n/size))
			}
		}
	}
	t.Logf("%d layouts", resolved)
}

func checkLayout(t *testing.T, l commgroup.Layout, want [][]int) {
	t.Helper()
	if l.Groups() != len(want) || l.Size() != len(want[0]) || l.Replicas() != len(want)*len(want[0]) {
		t.Fatalf("%v: %d groups of %d of %d replicas, want %d of %d",
			l, l.Groups(), l.Size(), l.Replicas(), len(want), len(want[0]))
	}
	for g, members := range want {
		if got := l.Members(g); !slices.Equal(got, members) {
			t.Fatalf("%v: group %d is %v, want %v", l, g, got, members)
		}
		if got := l.AppendMembers([]int{-7}, g); !slices.Equal(got[1:], members) || got[0] != -7 {
			t.Fatalf("%v: group %d appended is %v, want %v", l, g, got, members)
		}
		for rank, replica := range members {
			if l.GroupOf(replica) != g || l.RankOf(replica) != rank || l.Member(g, rank) != replica {
				t.Fatalf("%v: replica %d is in group %d at %d, want %d at %d",
					l, replica, l.GroupOf(replica), l.RankOf(replica), g, rank)
			}
			if rank > 0 && replica-members[rank-1] != l.Stride() {
				t.Fatalf("%v: stride %d, members %v", l, l.Stride(), members)
			}
		}
	}
}

func TestTranspose(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 48; n++ {
		for size := 1; size <= n; size++ {
			for stride := 1; stride <= n; stride++ {
				if n%(size*stride) != 0 {
					continue
				}
				l, err := commgroup.Group{Type: commgroup.Consecutive, Size: size, Stride: stride}.Resolve(n)
				if err != nil {
					t.Fatal(err)
				}
				across, err := l.Transpose()
				if want := stride == 1 || stride*size == n || size == 1; (err == nil) != want {
					t.Fatalf("n=%d size=%d stride=%d: error %v, want one: %v", n, size, stride, err, !want)
				}
				if err != nil {
					if want := fmt.Sprintf("size %d and stride %d of %d",
						size, stride, n); !strings.Contains(err.Error(), want) {
						t.Fatalf("error %q does not name %q", err, want)
					}
					continue
				}
				if back, err := across.Transpose(); err != nil || back != l {
					t.Fatalf("n=%d: %v across is %v, back is %v, %v", n, l, across, back, err)
				}
				// Every group across is the set of the members of equal rank.
				for r := range n {
					if across.GroupOf(r) != l.RankOf(r) || across.RankOf(r) != l.GroupOf(r) {
						t.Fatalf("n=%d: %v across %v: replica %d is (%d, %d) and (%d, %d)", n, l, across, r,
							l.GroupOf(r), l.RankOf(r), across.GroupOf(r), across.RankOf(r))
					}
				}
			}
		}
	}
	if _, err := (commgroup.Layout{}).Transpose(); err == nil {
		t.Error("the zero layout has a transpose")
	}
}

func TestGroupsOfOneAreEqual(t *testing.T) {
	t.Parallel()
	want, err := commgroup.Group{Type: commgroup.Consecutive, Size: 1}.Resolve(8)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []commgroup.Group{
		{Type: commgroup.Consecutive, Size: 1, Stride: 2},
		{Type: commgroup.Consecutive, Size: 1, Stride: 8},
		{Type: commgroup.Orthogonal, Size: 1},
	} {
		if got, err := g.Resolve(8); err != nil || got != want {
			t.Errorf("%v: %v, %v, want %v", g, got, err, want)
		}
	}
}

func TestOutOfRange(t *testing.T) {
	t.Parallel()
	pairs, err := commgroup.Group{Type: commgroup.Consecutive, Size: 2}.Resolve(8)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []commgroup.Layout{{}, pairs} {
		for _, id := range []int{-1, math.MinInt, 8, math.MaxInt} {
			if l.GroupOf(id) != -1 || l.RankOf(id) != -1 || l.Member(id, 0) != -1 || l.Member(0, id) != -1 {
				t.Errorf("%v: replica %d exists", l, id)
			}
			if l.Members(id) != nil || l.AppendMembers(nil, id) != nil {
				t.Errorf("%v: group %d exists", l, id)
			}
		}
	}
	if n := (commgroup.Layout{}).Groups(); n != 0 {
		t.Errorf("the zero layout has %d groups", n)
	}
}

// Sizes and strides that an error names would do, and the others of up to 35 replicas would not.
func TestNamedSizesWouldDo(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(`want a (size|stride) of ([0-9, or]*[0-9])`)
	number := regexp.MustCompile(`[0-9]+`)
	named := 0
	for n := 1; n <= 35; n++ { // eight divisors at most: all are named
		for size := 1; size <= n+2; size++ {
			for stride := 1; stride <= n+2; stride++ {
				g := commgroup.Group{Type: commgroup.Consecutive, Size: size, Stride: stride}
				_, err := g.Resolve(n)
				if err == nil {
					continue
				}
				found := pattern.FindStringSubmatch(err.Error())
				if found == nil {
					t.Fatalf("n=%d %+v: %v", n, g, err)
				}
				for k := 1; k <= n; k++ {
					tried := g
					switch {
					case found[1] == "stride":
						tried.Stride = k
					case strings.Contains(err.Error(), "and a stride"):
						tried.Size, tried.Stride = k, 1
					default:
						tried.Size = k
					}
					_, does := tried.Resolve(n)
					if says := slices.Contains(number.FindAllString(found[2], -1),
						fmt.Sprint(k)); says != (does == nil) {
						t.Fatalf("n=%d %+v: %v: of %s %d it says %v", n, g, err, found[1], k, says)
					}
					named++
				}
			}
		}
	}
	if named < 10_000 {
		t.Errorf("%d numbers were looked at", named)
	}
}
