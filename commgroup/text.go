package commgroup

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the text form that [Parse] reads: the type, then in brackets the size and the stride, as far as they
// are given, or the lists.
//
//	ALL   CONSECUTIVE(4)   CONSECUTIVE(4, stride 2)   CONSECUTIVE(stride 2)   ORTHOGONAL(2)   LISTS({0 3} {1 2 4})
func (g Group) String() string {
	switch {
	case g.Type == Listed:
		return fmt.Sprintf("%v(%s)", g.Type, g.lists)
	case g.Size == 0 && g.Stride == 0:
		return g.Type.String()
	case g.Stride == 0:
		return fmt.Sprintf("%v(%d)", g.Type, g.Size)
	case g.Size == 0:
		return fmt.Sprintf("%v(stride %d)", g.Type, g.Stride)
	}
	return fmt.Sprintf("%v(%d, stride %d)", g.Type, g.Size, g.Stride)
}

// Parse reads the text form of a group. Letters count as written; spaces are free between the words. A 0 is the
// default, as in the struct. Whether the group suits a number of replicas is for [Group.Resolve] to say.
func Parse(text string) (Group, error) {
	name, rest, bracket := strings.Cut(strings.TrimSpace(text), "(")
	var g Group
	var found bool
	if g.Type, found = typeNames.Lookup(strings.TrimSpace(name)); !found {
		return Group{}, fmt.Errorf("commgroup: unknown group %q: want ALL, CONSECUTIVE or ORTHOGONAL, then maybe "+
			"(size, stride s), or LISTS({0 3} {1 2 4})", text)
	}
	if !bracket && g.Type != Listed {
		return g, nil
	}
	inside, closed := strings.CutSuffix(rest, ")")
	if !closed {
		return Group{}, fmt.Errorf("commgroup: group %q does not end in a bracket", text)
	}
	if g.Type == Listed {
		groups, err := parseLists(inside)
		if err == nil {
			groups, err = sortLists(groups)
		}
		if err != nil {
			return Group{}, fmt.Errorf("commgroup: lists of group %q: %w", text, err)
		}
		return Group{Type: Listed, lists: listsText(groups)}, nil
	}
	size, stride, both := strings.Cut(inside, ",")
	if !both && strings.HasPrefix(strings.TrimSpace(inside), "stride") {
		size, stride, both = "0", inside, true
	}
	var err error
	if g.Size, err = parseNumber(size); err != nil {
		return Group{}, fmt.Errorf("commgroup: size of group %q: %w", text, err)
	}
	if !both {
		return g, nil
	}
	number, ok := strings.CutPrefix(strings.TrimSpace(stride), "stride ")
	if !ok {
		return Group{}, fmt.Errorf("commgroup: group %q: want \"stride\" and a number after the comma", text)
	}
	if g.Stride, err = parseNumber(number); err != nil {
		return Group{}, fmt.Errorf("commgroup: stride of group %q: %w", text, err)
	}
	return g, nil
}

// parseNumber takes decimal digits only: no sign.
func parseNumber(text string) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a whole number of 0 or more", text)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s is too large a number", text)
	}
	return n, nil
}

// MarshalText returns the text form. A group that no number of replicas could suit (an unknown type, a negative number)
// is an error.
func (g Group) MarshalText() ([]byte, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	return []byte(g.String()), nil
}

// UnmarshalText sets the group from its text form. After an error it is what it was.
func (g *Group) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*g = parsed
	return nil
}
