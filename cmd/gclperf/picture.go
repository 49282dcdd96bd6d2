package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/measure"
	"gogcl.dev/internal/plot"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// picture draws what was measured: a row for each collective, with time to the left and bus bandwidth to the right.
func picture(s *settings, seen []measurement) *plot.Figure {
	var title []string
	title = append(title, fmt.Sprintf("%d replicas", s.N))
	if len(s.Transports) < 2 {
		title = append(title, s.Transport)
	}
	if len(distinct(seen, func(m measurement) string { return m.DType })) < 2 {
		title = append(title, s.DType.String())
	}
	if len(s.Implementations) == 1 && s.Implementations[0] != gcl.AutoImplementation {
		title = append(title, s.Implementations[0].String())
	}
	if s.reproducible {
		title = append(title, "reproducible")
	}
	fig := &plot.Figure{Title: strings.Join(title, ", ")}
	if len(seen) > 0 {
		o := seen[0].Origin
		fig.Foot = fmt.Sprintf("gclperf %s, %s, %s, %d cores, GOMAXPROCS %d", o.Version, o.Date, o.Machine, o.Cores,
			o.GOMAXPROCS)
	}
	for _, c := range s.Collectives {
		place := s.places[0]
		// its root has nothing to copy in place, which is what other libraries measure
		if c.Contract().Input == schedule.AtRoot {
			place = s.places[len(s.places)-1]
		}
		fig.Rows = append(fig.Rows, row(s, c, place, seen))
	}
	return fig
}

// row draws one collective.
func row(s *settings, c measure.Collective, p measure.Place, seen []measurement) []plot.Panel {
	what := c.String()
	variants := variantsOf(c, seen)
	if ops := distinct(variants, func(v variant) string { return v.Op }); c.Reduces() && len(ops) < 2 {
		what += " " + s.Op.String()
	}
	what += map[measure.Place]string{measure.OutOfPlace: ", out of place", measure.InPlace: ", in place"}[p]
	x := plot.Axis{Label: "size (bytes of the larger buffer of a replica)", Base: 2, Tick: func(v float64) string {
		return measure.FormatSize(int(v))
	}}
	times := plot.Panel{Title: what + ": time", X: x,
		Y: plot.Axis{Label: "time of a call (p50)", Base: 10, Tick: plot.Micro}}
	speeds := plot.Panel{Title: what + ": bus bandwidth",
		X: x, Y: plot.Axis{Label: "bus bandwidth (GB/s)", Tick: plot.Plain}}
	add := func(l plot.Line) {
		times.Lines = append(times.Lines, l)
		fast := l
		fast.Points = nil
		for _, pt := range l.Points {
			if f := c.BusFactor(s.N); f > 0 {
				fast.Points = append(fast.Points, plot.Point{X: pt.X, Y: pt.X / pt.Y / 1e3 * f})
			}
		}
		speeds.Lines = append(speeds.Lines, fast)
	}
	for _, m := range s.Methods {
		for _, i := range s.Implementations {
			for _, v := range variants {
				l := plot.Line{Name: m.String()}
				if len(s.Implementations) > 1 {
					l.Name += ", " + i.String()
				}
				l.Name += v.name
				for _, r := range seen {
					if r.Collective == c.String() && r.Method == m.String() && r.Implementation == i.String() &&
						r.Place == p.String() && v.has(r) {
						l.Points = append(l.Points, plot.Point{X: float64(r.Bytes), Y: r.P50})
					}
				}
				add(l)
			}
		}
	}
	if c == measure.Collective(schedule.AllReduce) && s.Op == gcl.Add && s.DType == tensor.F32 && len(s.floor) > 0 {
		var l plot.Line
		known := lowest(s.floor, s.N, p.String())
		for _, size := range slices.Sorted(maps.Keys(known)) {
			if size >= s.Sizes[0] && size <= s.Sizes[len(s.Sizes)-1] {
				l.Name = fmt.Sprintf("floor: %d pinned threads, one address space", known[size].threads)
				l.Points = append(l.Points, plot.Point{X: float64(size), Y: known[size].micro})
			}
		}
		if len(l.Points) > 0 {
			l.Reference = true
			add(l)
		}
	}
	return []plot.Panel{times, speeds}
}

// variant is a line's transport, element type and operator, of which the picture may have several.
type variant struct {
	Transport, DType, Op string
	name                 string // what tells the variant from the others
}

func (v variant) has(m measurement) bool {
	return v.Transport == m.Transport && v.DType == m.DType && v.Op == m.Op
}

// variantsOf are those in which a collective was measured, and at least one.
func variantsOf(c measure.Collective, seen []measurement) []variant {
	var out []variant
	for _, m := range seen {
		if m.Collective == c.String() && !slices.ContainsFunc(out, func(v variant) bool { return v.has(m) }) {
			out = append(out, variant{Transport: m.Transport, DType: m.DType, Op: m.Op})
		}
	}
	if out == nil {
		return make([]variant, 1)
	}
	for _, part := range []func(variant) string{
		func(v variant) string { return v.Transport },
		func(v variant) string { return v.DType },
		func(v variant) string { return v.Op },
	} {
		if len(distinct(out, part)) > 1 {
			for i := range out {
				out[i].name += ", " + part(out[i])
			}
		}
	}
	return out
}

// distinct lists the texts that a part of things has, each once.
func distinct[T any](all []T, part func(T) string) (out []string) {
	for _, v := range all {
		if text := part(v); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
