package commgroup

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Lists describes a partition by the replicas of each group. Groups may have different sizes. A group is a set: the
// order of its replicas and the order of the groups mean nothing, ranks go by ascending replica id, and lists with the
// same groups make equal values.
//
//	Lists([][]int{{3, 0}, {1, 2, 4}})     LISTS({0 3} {1 2 4})
//
// Every replica must be in exactly one group. One that is to sit out is a group of its own. Errors: no groups, an empty
// group, a negative replica, a replica that is listed twice, a replica below the highest that is in no group.
// [Group.Resolve] finds the replicas above the highest. The lists are copied.
func Lists(groups [][]int) (Group, error) {
	sorted, err := sortLists(groups)
	if err != nil {
		return Group{}, fmt.Errorf("commgroup: %w", err)
	}
	return Group{Type: Listed, lists: listsText(sorted)}, nil
}

// sortLists returns the groups in canonical order: members ascending, groups by their first members.
func sortLists(groups [][]int) ([][]int, error) {
	if len(groups) == 0 {
		return nil, errors.New("lists without a group, want at least one")
	}
	type place struct{ replica, group int }
	var all []place
	sorted := make([][]int, len(groups))
	for g, members := range groups {
		if len(members) == 0 {
			return nil, fmt.Errorf("group %d of the lists is empty, want at least one replica", g)
		}
		sorted[g] = slices.Sorted(slices.Values(members))
		if r := sorted[g][0]; r < 0 {
			return nil, fmt.Errorf("replica %d in group %s, want 0 or more", r, setText(members))
		}
		for _, r := range sorted[g] {
			all = append(all, place{r, g})
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.replica, b.replica), cmp.Compare(a.group, b.group))
	})
	for want, p := range all {
		if want > 0 && p.replica == all[want-1].replica {
			first := all[want-1].group
			if first == p.group {
				return nil, fmt.Errorf("replica %d is twice in group %s", p.replica, setText(sorted[first]))
			}
			return nil, fmt.Errorf("replica %d is in two groups, %s and %s",
				p.replica, setText(sorted[first]), setText(sorted[p.group]))
		}
		if p.replica != want {
			return nil, fmt.Errorf("%s: every replica must be in one, alone if it sits out",
				inNoGroup(want, p.replica-1))
		}
	}
	slices.SortFunc(sorted, func(a, b []int) int { return a[0] - b[0] })
	return sorted, nil
}

// inNoGroup is the error text for the replicas first to last, both included.
func inNoGroup(first, last int) string {
	if first == last {
		return fmt.Sprintf("replica %d is in no group", first)
	}
	return fmt.Sprintf("replicas %d to %d are in no group", first, last)
}

// listsText is the text of groups: "{0 3} {1 2 4}".
func listsText(groups [][]int) string {
	var b []byte
	for g, members := range groups {
		if g > 0 {
			b = append(b, ' ')
		}
		b = appendSet(b, members)
	}
	return string(b)
}

func appendSet(b []byte, members []int) []byte {
	for i, r := range members {
		before := byte(' ')
		if i == 0 {
			before = '{'
		}
		b = strconv.AppendInt(append(b, before), int64(r), 10)
	}
	return append(b, '}')
}

// mostQuoted is how many members of a group an error lists.
const mostQuoted = 16

// setText is a group for an error: "{0 3}", "{0 1 2 ... 15 and 84 more}".
func setText(members []int) string {
	if len(members) <= mostQuoted {
		return string(appendSet(nil, members))
	}
	text := string(appendSet(nil, members[:mostQuoted]))
	return fmt.Sprintf("%s ... and %d more}", strings.TrimSuffix(text, "}"), len(members)-mostQuoted)
}

// parseLists reads groups as listsText writes them. Spaces are free around brackets and numbers; a comma may stand for
// the space between two numbers, or between two groups.
func parseLists(text string) ([][]int, error) {
	var groups [][]int
	rest := strings.TrimSpace(text)
	for rest != "" {
		inside, found := strings.CutPrefix(rest, "{")
		if !found {
			return nil, fmt.Errorf("want groups such as {0 3} {1 2 4}, not %.*q", maxQuoted, rest)
		}
		members, after, closed := strings.Cut(inside, "}")
		if !closed {
			return nil, fmt.Errorf("group %.*q does not end in \"}\"", maxQuoted, rest)
		}
		group := []int{}
		for part := range strings.SplitSeq(members, ",") {
			before := len(group)
			for word := range strings.FieldsFuncSeq(part, func(r rune) bool { return r == ' ' }) {
				r, err := parseNumber(word)
				if err != nil {
					return nil, err
				}
				group = append(group, r)
			}
			if len(group) == before && part != members { // there is a comma, and nothing on one side of it
				return nil, fmt.Errorf("group {%.*s}: want a number on both sides of a comma", maxQuoted, members)
			}
		}
		groups = append(groups, group)
		comma := false
		if rest, comma = strings.CutPrefix(strings.TrimSpace(after), ","); comma && strings.TrimSpace(rest) == "" {
			return nil, fmt.Errorf("want a group after the comma behind group {%.*s}", maxQuoted, members)
		}
		rest = strings.TrimSpace(rest)
	}
	return groups, nil
}

// maxQuoted bounds how much of a wrong text an error quotes.
const maxQuoted = 40

// resolveLists fits lists to n replicas. Lists that a size and a stride can say too make the layout of these.
func (g Group) resolveLists(n int) (Layout, error) {
	groups, err := parseLists(g.lists) // which Lists wrote
	if err != nil {
		return Layout{}, err
	}
	total := 0
	for _, members := range groups {
		total += len(members)
	}
	if total < n {
		return Layout{}, fmt.Errorf("commgroup: %s of %v: want every one of the %d replicas in a group, alone if it "+
			"sits out", inNoGroup(total, n-1), g, n)
	}
	for _, members := range groups {
		if last := members[len(members)-1]; last >= n {
			return Layout{}, fmt.Errorf("commgroup: replica %d of group %s does not exist among %d replicas, want 0 "+
				"to %d", last, setText(members), n, n-1)
		}
	}
	return layoutOf(groups, n), nil
}
