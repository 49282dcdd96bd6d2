package main

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/measure"
	"gogcl.dev/internal/plot"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

func TestPicture(t *testing.T) {
	s := &settings{Settings: &measure.Settings{
		Implementations: []gcl.Implementation{gcl.AutoImplementation},
		Collectives:     collectives(schedule.AllReduce, schedule.Broadcast),
		N:               8, Transport: "inproc",
		Methods: append([]methods.Method{methods.Auto}, thinned.Constants()...),
		DType:   tensor.F32, Op: gcl.Add, Sizes: []int{8, 64 << 20},
	}, places: both}
	var seen []measurement
	for i, m := range s.Methods {
		for size := 8; size <= 64<<20; size *= 8 {
			for _, c := range s.Collectives {
				for _, p := range s.places {
					seen = append(seen, measurement{Collective: c.String(), Method: m.String(), Implementation: "Auto",
						Place: p.String(), N: 8, Bytes: size, Origin: sample()[0].Origin,
						P50: (.5 + float64(i)*math.Sqrt(float64(i))/3) * (1 + float64(size)/float64(2000+200*i))})
				}
			}
		}
	}
	s.floor = []floorPoint{{8, 8, 4, "oop", .21}, {8, 1024, 4, "oop", .57}, {8, 32768, 4, "oop", 6.5},
		{8, 1 << 20, 4, "oop", 300}, {8, 1 << 20, 4, "oop", 174}, {8, 64 << 20, 4, "oop", 22000},
		{8, 1 << 20, 4, "ip", 1}, {4, 1 << 20, 4, "oop", 1}, {8, 1 << 30, 4, "oop", 1}}
	var b, again bytes.Buffer
	if err := picture(s, seen).Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := picture(s, seen).Write(&again); err != nil || again.String() != b.String() {
		t.Error("the same picture is not the same twice")
	}
	golden(t, "sample.svg", b.Bytes())
}

// TestPictureOfImplementations wants a line of its own for each implementation, with its own points.
func TestPictureOfImplementations(t *testing.T) {
	s := &settings{Settings: &measure.Settings{
		Collectives: collectives(schedule.AllReduce), N: 8, Transport: "inproc",
		Methods: []methods.Method{methods.Auto}, DType: tensor.F32, Op: gcl.Add,
		Implementations: []gcl.Implementation{gcl.Syncless, gcl.Syncful}, Sizes: []int{8},
	}, places: both[:1]}
	seen := twoImplementations()
	seen[0].P50, seen[1].P50 = 3, 2
	lines := picture(s, seen).Rows[0][0].Lines
	if len(lines) != 2 || lines[0].Name != "auto, Syncless" || lines[1].Name != "auto, Syncful" ||
		!slices.Equal(lines[0].Points, []plot.Point{{X: 8, Y: 3}}) ||
		!slices.Equal(lines[1].Points, []plot.Point{{X: 8, Y: 2}}) {
		t.Errorf("%+v", lines)
	}
}

func TestParseFloor(t *testing.T) {
	got, err := parseFloor("arlimit,2,8,oop,reg,2,0.120,0.100,0.067,0.067\r\n\narlimit,8,1048576,ip,nt,4,174.0,170.0,6.0,10.5\n")
	if err != nil || len(got) != 2 || got[0] != (floorPoint{2, 8, 2, "oop", .12}) ||
		got[1] != (floorPoint{8, 1 << 20, 4, "ip", 174}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "\n", "x", "arlimit,2,8,oop,reg,2,0.120,0.100,0.067",
		"other,2,8,oop,reg,2,0.120,0.100,0.067,0.067", "arlimit,x,8,oop,reg,2,1,1,1,1",
		"arlimit,2,-8,oop,reg,2,1,1,1,1", "arlimit,2,8,oop,reg,2,0,1,1,1", "arlimit,2,8,oop,reg,2,NaN,1,1,1",
		"arlimit,2,8,oop,reg,thp,1,1,1,1", "arlimit,2,8,oop,reg,0,1,1,1,1"} {
		if got, err := parseFloor(bad); err == nil {
			t.Errorf("%q: %v, want an error", bad, got)
		}
	}
}

func FuzzParseFloor(f *testing.F) {
	f.Add("arlimit,2,8,oop,reg,2,0.120,0.100,0.067,0.067\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseFloor(text)
		for _, p := range all {
			if err != nil || p.n < 1 || p.bytes < 1 || !(p.micro > 0) {
				t.Fatalf("%+v, %v", p, err)
			}
		}
	})
}
