package commgroup_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		g    commgroup.Group
		want string
	}{
		{commgroup.Group{}, "ALL"},
		{commgroup.Group{Size: 8}, "ALL(8)"},
		{commgroup.Group{Type: commgroup.Consecutive}, "CONSECUTIVE"},
		{commgroup.Group{Type: commgroup.Consecutive, Size: 4}, "CONSECUTIVE(4)"},
		{commgroup.Group{Type: commgroup.Consecutive, Size: 4, Stride: 1}, "CONSECUTIVE(4, stride 1)"},
		{commgroup.Group{Type: commgroup.Consecutive, Size: 4, Stride: 2}, "CONSECUTIVE(4, stride 2)"},
		{commgroup.Group{Type: commgroup.Consecutive, Stride: 2}, "CONSECUTIVE(stride 2)"},
		{commgroup.Group{Type: commgroup.Orthogonal, Size: 2}, "ORTHOGONAL(2)"},
		{lists(t, []int{0, 3}, []int{1, 2, 4}), "LISTS({0 3} {1 2 4})"},
	} {
		if got := c.g.String(); got != c.want {
			t.Errorf("%#v prints as %s, want %s", c.g, got, c.want)
		}
		if got, err := commgroup.Parse(c.want); err != nil || got != c.g {
			t.Errorf("%s parses as %#v, %v, want %#v", c.want, got, err, c.g)
		}
	}
}

func TestParseForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]commgroup.Group{
		" ALL ":                          {},
		"ALL(0)":                         {},
		"CONSECUTIVE( 4 ,stride 2 )":     {Type: commgroup.Consecutive, Size: 4, Stride: 2},
		"CONSECUTIVE (4)":                {Type: commgroup.Consecutive, Size: 4},
		"CONSECUTIVE(0, stride 2)":       {Type: commgroup.Consecutive, Stride: 2},
		"ORTHOGONAL(0004, stride   000)": {Type: commgroup.Orthogonal, Size: 4},
	} {
		if got, err := commgroup.Parse(text); err != nil || got != want {
			t.Errorf("%q: %#v, %v, want %#v", text, got, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            `unknown group ""`,
		"all":                         `unknown group "all"`,
		"DIAGONAL(2)":                 "want ALL, CONSECUTIVE or ORTHOGONAL",
		"CONSECUTIVE(":                "does not end in a bracket",
		"CONSECUTIVE(4":               "does not end in a bracket",
		"CONSECUTIVE(4) 2":            "does not end in a bracket",
		"CONSECUTIVE()":               `size of group "CONSECUTIVE()": "" is not a whole number`,
		"CONSECUTIVE(-4)":             `"-4" is not a whole number`,
		"CONSECUTIVE(+4)":             `"+4" is not a whole number`,
		"CONSECUTIVE(4.5)":            `"4.5" is not a whole number`,
		"CONSECUTIVE(4, 2)":           `want "stride"`,
		"CONSECUTIVE(4, stride)":      `want "stride"`,
		"CONSECUTIVE(4, stride2)":     `want "stride"`,
		"CONSECUTIVE(4, stride -2)":   `stride of group "CONSECUTIVE(4, stride -2)": "-2"`,
		"CONSECUTIVE(4, stride 2, 3)": `"2, 3" is not a whole number`,
		"CONSECUTIVE(4))":             `"4)" is not a whole number`,
		"ALL(99999999999999999999)":   "99999999999999999999 is too large",
	} {
		if g, err := commgroup.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, error %v, want %q in it", text, g, err, want)
		}
	}
}

func TestTextMarshaling(t *testing.T) {
	t.Parallel()
	in := map[string]commgroup.Group{"group": {Type: commgroup.Consecutive, Size: 4, Stride: 2}}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"group":"CONSECUTIVE(4, stride 2)"}`; string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	var out map[string]commgroup.Group
	if err := json.Unmarshal(text, &out); err != nil || out["group"] != in["group"] {
		t.Errorf("got %v, %v, want %v", out, err, in)
	}
	for _, g := range []commgroup.Group{{Type: 4}, {Size: -1}, {Stride: -1}} {
		if text, err := g.MarshalText(); err == nil {
			t.Errorf("%#v is written as %s", g, text)
		}
	}
	g := commgroup.Group{Size: 5}
	if err := g.UnmarshalText([]byte("?")); err == nil || g.Size != 5 {
		t.Errorf("after an error: %v, %v", g, err)
	}
	if got := commgroup.Type(9).String(); got != "Type(9)" {
		t.Errorf("unknown type prints as %s", got)
	}
}

// FuzzParse: whatever parses prints to a text that parses to the same group, and resolving never panics.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"ALL", "CONSECUTIVE(4)",
		"CONSECUTIVE(4, stride 2)", "CONSECUTIVE(stride 2)", "ORTHOGONAL(2)", "ALL(8", "X(1)", "ALL(,)",
		"LISTS({0 3} {1 2 4})", "LISTS({4,2,1},{3 0})", "LISTS({0}{1})", "LISTS({0} {0})", "LISTS({1})", "LISTS({}"} {
		f.Add(text, 8)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		g, err := commgroup.Parse(text)
		if err != nil {
			if g != (commgroup.Group{}) {
				t.Fatalf("%q: %#v beside the error %v", text, g, err)
			}
			return
		}
		back, err := commgroup.Parse(g.String())
		if err != nil || back != g {
			t.Fatalf("%q is %#v, printed %s, parsed back %#v, %v", text, g, g, back, err)
		}
		l, err := g.Resolve(n)
		if err != nil {
			return
		}
		if described, err := l.Group().Resolve(n); err != nil || described != l {
			t.Fatalf("%v of %d describes itself as %v, which is %v, %v", g, n, l.Group(), described, err)
		}
		for _, r := range []int{0, n / 2, n - 1} {
			if got := l.Member(l.GroupOf(r), l.RankOf(r)); got != r {
				t.Fatalf("%v of %d: replica %d is %d", g, n, r, got)
			}
		}
	})
}
