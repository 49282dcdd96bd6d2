package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/measure"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// leastGain is how many times as long as by a rule a call takes without it, at least and on each machine, for the rule
// to be in a table of several machines.
const leastGain = 1.3

// fewestSizes is how many measured sizes on end such a rule is for, at least.
const fewestSizes = 2

// gainsOn is a table, as text, of what gains on each of several machines:
//
//	size                            8     32    128   512   2048    from   rule
//	without a rule                  pat   pat   pat   ring  ring    32     direct
//	direct gains on one machine     1.1   1.5   1.6   1.4   0.9     2048   ring
//	and on another                  2.0   1.4   1.7   1.5   1.0
//
// Where the rules for some sizes are followed by sizes that have none there is a line for what is taken there without.
func gainsOn(all []samples) ([]byte, error) {
	var heading strings.Builder
	heading.WriteString("# What is 1.3 times as fast as what auto takes without a rule, and by more than the spread, on each machine.\n")
	for _, s := range all {
		heading.WriteString(s.heading())
	}
	common := all[0].points
	for _, s := range all[1:] {
		common = slices.DeleteFunc(slices.Clone(common), func(p point) bool { return s.at(p) == nil })
	}
	return tableBy(common, heading.String(), func(of []point, without []string) []choice {
		return gaining(all, of, without)
	})
}

// at is the same point in other samples, or nil.
func (s *samples) at(as point) *point {
	i := slices.IndexFunc(s.points, func(p point) bool {
		return p.N == as.N && p.Collective == as.Collective && p.Size == as.Size
	})
	if i < 0 {
		return nil
	}
	return &s.points[i]
}

// gaining are the rules of points that differ in size only, smaller ones first, of all ways but some: those that gain
// at sizes on end, what gains most first.
func gaining(all []samples, of []point, without []string) (out []choice) {
	usual := make([]string, len(of))    // by size, what is taken without a rule
	measured := make([]string, len(of)) // and what stands for it among the ways
	gains := map[string][]float64{}     // by way and size: the least of all machines, 0 where one does not gain
	var names []string
	for i, p := range of {
		usual[i], measured[i] = all[0].usual(p)
		for _, t := range p.Ways {
			if slices.Contains(without, t.Way) {
				continue
			}
			if gains[t.Way] == nil {
				gains[t.Way], names = make([]float64, len(of)), append(names, t.Way)
			}
			gains[t.Way][i] = leastOf(all, p, t.Way, measured[i])
		}
	}
	taken := make([]string, len(of)) // by size, "" where there is no rule
	for {
		way, from, to := longest(names, gains, taken)
		if way == "" {
			break
		}
		for i := from; i < to; i++ {
			taken[i] = way
		}
	}
	now := ""
	for i, p := range of {
		ruled, way := taken[i] != "", taken[i]
		if !ruled && now != "" {
			way = usual[i]
		}
		if way == now {
			continue
		}
		from := p.Size
		if i == 0 {
			from = 0
		}
		says := "as without a rule"
		if ruled {
			says = said(all, p, way, measured[i])
		}
		out, now = append(out, choice{from, way, says}), way
	}
	return out
}

// longest is the way, and the sizes from one to another, that gain most of those that no rule is for yet: by the
// product of the gains. The way is "" if none gains at enough sizes on end.
func longest(names []string, gains map[string][]float64, taken []string) (way string, from, to int) {
	most := 0.0
	for _, name := range names {
		sum, first := 0.0, 0
		for i := 0; i <= len(taken); i++ {
			if i < len(taken) && taken[i] == "" && gains[name][i] > 0 {
				sum += math.Log(gains[name][i])
				continue
			}
			if i-first >= fewestSizes && sum > most {
				way, from, to, most = name, first, i, sum
			}
			sum, first = 0, i+1
		}
	}
	return way, from, to
}

// leastOf is the least of what a way gains on the machines, over what is usual, or 0 if it gains too little on one.
func leastOf(all []samples, p point, way, usual string) float64 {
	least := math.Inf(1)
	for _, s := range all {
		at := s.at(p)
		x, y := at.way(way), at.way(usual)
		if x == nil || y == nil {
			return 0
		}
		gain := measure.Median(y.Times) / measure.Median(x.Times)
		if gain < leastGain || gain <= 1+max(x.spread(), y.spread()) {
			return 0
		}
		least = min(least, gain)
	}
	return least
}

// said is what a rule says: how long the way and the usual one take on each machine.
func said(all []samples, p point, way, usual string) string {
	var on []string
	for _, s := range all {
		at := s.at(p)
		on = append(on, fmt.Sprintf("%s us, %s %s on %s", measure.Digits(measure.Median(at.way(way).Times)), usual,
			measure.Digits(measure.Median(at.way(usual).Times)), s.Name))
	}
	return measure.FormatSize(p.Size) + ": " + strings.Join(on, "; ")
}

// links has what auto goes by without a rule over a transport between processes.
var links = map[string]func() methods.Tuning{
	"tcp": methods.SocketLinks, "unix": methods.SocketLinks, "shm": methods.SocketLinks,
	"mpi": methods.EngineLinks,
}

// usual is the way that auto takes without a rule at a point of the samples, and the one that was measured of those
// that make the same calls: "" if none was.
func (s *samples) usual(p point) (way, measured string) {
	coll, _ := collectiveNamed(p.Collective)
	way = methods.Direct.String() + "/" + gcl.Syncful.String() // one pass over peer memory
	if tuning := links[s.Transport]; tuning != nil {
		t := tuning()
		way = t.ByLinks(&methods.Case{Collective: schedule.Collective(coll), Ranks: p.N, Bytes: int64(p.Size)}).String()
		if i := implementationOver(s.Transport); i != gcl.AutoImplementation {
			way += "/" + i.String()
		}
	}
	shape := shapeOfWay(way, coll, p.N)
	for _, t := range p.Ways {
		if other := shapeOfWay(t.Way, coll, p.N); other != nil && shape != nil && *other == *shape {
			return way, t.Way
		}
	}
	return way, ""
}

// shapeOfWay is the shape of a way by its name over n ranks, or nil where it does not do the collective.
func shapeOfWay(way string, coll measure.Collective, n int) *shape {
	name, how, _ := strings.Cut(way, "/")
	m, err := methods.Parse(name)
	i := gcl.AutoImplementation
	if how != "" && err == nil {
		i, err = gcl.ParseImplementation(how)
	}
	if err != nil {
		return nil
	}
	s, does, err := shapeOf(new(measure.Settings), m, i, coll, n)
	if err != nil || !does {
		return nil
	}
	return &s
}

// collectiveNamed is a collective by its name.
func collectiveNamed(name string) (measure.Collective, bool) {
	for _, c := range schedule.Collectives() {
		if c.String() == name {
			return measure.Collective(c), true
		}
	}
	return 0, false
}
