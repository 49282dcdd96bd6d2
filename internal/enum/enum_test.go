package enum

import (
	"encoding/json"
	"strings"
	"testing"
)

type colour uint8

// Number 2 is no colour.
var colours = New[colour]("colour", "red", "green", "", "blue")

func (c colour) String() string                   { return colours.String(c) }
func (c colour) MarshalText() ([]byte, error)     { return colours.MarshalText(c) }
func (c *colour) UnmarshalText(text []byte) error { return colours.UnmarshalText(c, text) }

func TestRoundTrip(t *testing.T) {
	valid := map[colour]string{0: "red", 1: "green", 3: "blue"}
	for i := range 256 {
		c := colour(i)
		name, ok := valid[c]
		text, err := c.MarshalText()
		if colours.Valid(c) != ok || (err == nil) != ok || (colours.Check(c) == nil) != ok || string(text) != name {
			t.Errorf("%d: %q, %v", i, text, err)
		}
		if !ok {
			continue
		}
		if got, err := colours.Parse(name); got != c || err != nil || c.String() != name {
			t.Errorf("%d is %v: %v, %v", i, c, got, err)
		}
	}
}

func TestNoValue(t *testing.T) {
	for _, c := range []colour{2, 4, 255} {
		want := map[colour]string{2: "colour(2)", 4: "colour(4)", 255: "colour(255)"}[c]
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if _, err := c.MarshalText(); err == nil || err.Error() != "enum: "+want+" is no colour, want one of red, "+
			"green, blue" {
			t.Errorf("%v", err)
		}
		if err := colours.Check(c); err == nil || err.Error() != want+" is no colour, want one of red, green, blue" {
			t.Errorf("%v", err)
		}
	}
}

func TestUnknownName(t *testing.T) {
	for name, want := range map[string]string{
		"bleu":                    `enum: unknown colour "bleu", the closest is blue; want one of red, green, blue`,
		"Red":                     `enum: unknown colour "Red", the closest is red; want one of red, green, blue`,
		"":                        `enum: unknown colour "", the closest is red; want one of red, green, blue`,
		"colour(2)":               `enum: unknown colour "colour(2)", the closest is `,
		strings.Repeat("x", 1000): `enum: unknown colour "` + strings.Repeat("x", 100) + `", the closest is `,
	} {
		c := colour(1)
		if err := c.UnmarshalText([]byte(name)); err == nil || !strings.HasPrefix(err.Error(), want) || c != 1 {
			t.Errorf("%.20q: %v, %v, want %s", name, c, err, want)
		}
		if _, ok := colours.Lookup(name); ok {
			t.Errorf("%.20q is found", name)
		}
	}
}

func TestJSON(t *testing.T) {
	var c []colour
	if err := json.Unmarshal([]byte(`["blue","red"]`), &c); err != nil || len(c) != 2 || c[0] != 3 || c[1] != 0 {
		t.Errorf("%v, %v", c, err)
	}
	if data, err := json.Marshal(c); err != nil || string(data) != `["blue","red"]` {
		t.Errorf("%s, %v", data, err)
	}
}

// All gives a list of its own.
func TestAll(t *testing.T) {
	all := colours.All()
	if strings.Join(all, " ") != "red green blue" {
		t.Errorf("%q", all)
	}
	all[0] = "black"
	if colours.String(0) != "red" {
		t.Error("a change of the list changed the names")
	}
}
