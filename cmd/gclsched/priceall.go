package main

import (
	"cmp"
	"slices"

	"gogcl.dev/internal/cheapest"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
)

// all prices the schedules of all methods, those of each size in the order of their times. A method that makes no such
// schedule is left out, and the table says why. The error is that of the first one where none is left.
func (p *pricing) all() (*priceTable, error) {
	model, name, err := p.model(p.from.size)
	if err != nil {
		return nil, err
	}
	t := p.table(p.from.spec.Collective, p.from.spec.Root, p.from.size, model, name)
	var first error
	priced := false
	for _, m := range p.from.methods {
		best, err := p.of(m, model)
		if err != nil {
			first = cmp.Or(first, err)
			t.leftOut = append(t.leftOut, err.Error())
			continue
		}
		priced = true
		for i := range best {
			t.prices[i] = append(t.prices[i], best[i])
		}
	}
	if !priced {
		return nil, first
	}
	for _, prices := range t.prices {
		slices.SortStableFunc(prices, func(a, b price) int { return cmp.Compare(a.Time, b.Time) })
	}
	return t, nil
}

// of prices a method at each size. Of a pipeline it is the price of the number of pieces that is best there.
func (p *pricing) of(m methods.Method, model cost.Model) ([]price, error) {
	one := *p.from
	one.method, one.spec.Method = m.String(), m
	best := make([]price, len(p.sizes))
	for _, pieces := range cheapest.Cuts(one.spec) {
		one.spec.Pieces = pieces
		f, err := one.build()
		if err != nil {
			return nil, err
		}
		for i, bytes := range p.sizes {
			e, err := p.estimate(model, f.Schedule, bytes)
			if err != nil {
				return nil, err
			}
			if best[i].method == "" || e.Time < best[i].Time {
				best[i] = price{one.method, pieces, e}
			}
		}
	}
	return best, nil
}
