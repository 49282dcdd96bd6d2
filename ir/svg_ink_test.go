package ir

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/internal/ink"
	"gogcl.dev/tensor"
)

// TestSVGInks wants outlines to stand out from the page by 3 to 1, and text from what it is written on by 4.5 to 1.
func TestSVGInks(t *testing.T) {
	page := looks[""].inks()[0]
	stands := func(a, b ink.Ink, least float64) {
		t.Helper()
		if light := ink.Contrast(a.Light, b.Light); light < least {
			t.Errorf("%s on %s: %.2f, want %v", a.Light, b.Light, light, least)
		}
		if dark := ink.Contrast(a.Dark, b.Dark); dark < least {
			t.Errorf("%s on %s: %.2f, want %v", a.Dark, b.Dark, dark, least)
		}
	}
	for _, l := range append(slices.Clone(others), slices.Collect(maps.Values(looks))...) {
		fill, stroke := l.inks()[0], l.inks()[1]
		stands(stroke, page, 3)
		for _, text := range inks {
			switch text.Light {
			case "#000000", "#333333", softColor:
				stands(text, fill, 4.5)
			default:
				stands(text, page, 3)
			}
		}
	}
}

// TestSVGInksAll wants every colour of a drawing to have its like for dark pages, those of kinds not known among them.
func TestSVGInksAll(t *testing.T) {
	p := New(1)
	spec := Spec{DType: tensor.F32, Shape: []int{2}}
	x := p.Main().HostLoad(p.HostToDevice("in", spec))
	for _, kind := range []string{"one", "two", "three", "four", "collective", "remote", "code load"} {
		x = ToyOfKind("toy", kind, x)
	}
	p.Main().HostStore(p.DeviceToHost("out", spec), x)
	var b bytes.Buffer
	if err := p.Main().WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(?:fill|stroke)="(#[0-9a-f]+)"`).FindAllStringSubmatch(b.String(), -1)
	if len(all) < 20 {
		t.Fatalf("%d colours in\n%s", len(all), &b)
	}
	for _, color := range all {
		if !strings.Contains(b.String(), `[fill="`+color[1]+`"] {`) {
			t.Errorf("%s has no like on a dark page", color[1])
		}
	}
}
