package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
)

// makeComms makes the Comms of a program, in order.
func (p *prog) makeComms(ctx context.Context, base *gcl.Comm) (comms []*gcl.Comm, dups []*gcl.Comm, err error) {
	comms = []*gcl.Comm{base}
	for i, d := range p.comms[1:] {
		parent := comms[d.parent]
		var c *gcl.Comm
		switch d.what {
		case "group", "split", "with":
			o := d.opt
			if d.rules != "" && d.what == "with" {
				if o.Tuning, err = methods.ParseRules([]byte(d.rules)); err != nil {
					return nil, dups, err
				}
			}
			switch d.what {
			case "group":
				c, err = parent.Group(d.g)
			case "split":
				c, err = parent.Split(ctx, d.colours[base.Replica()])
			case "with":
				c, err = parent.With(o)
				made.options.Add(1)
			}
			refused := int32(0)
			if _, ok := errors.AsType[*gcl.OptionError](err); ok {
				refused = 1
			} else if err != nil {
				return nil, dups, fmt.Errorf("comm %d (%s): %w", i+1, d.what, err)
			}
			// Options that one group does not allow are taken off everywhere, so that members agree later on.
			flag, e := gcl.AllReduce(ctx, base, []int32{refused}, gcl.Max)
			if e != nil {
				return nil, dups, e
			}
			err = nil
			if flag[0] == 1 {
				made.refused.Add(1)
				o = gcl.Options{Reproducible: d.opt.Reproducible}
				if c, err = parent.With(o); err == nil {
					var g commgroup.Group
					if g, err = commgroup.Lists(d.groups); err == nil {
						c, err = c.Group(g)
					}
				}
				if err != nil {
					return nil, dups, fmt.Errorf("comm %d (%s) without options: %w", i+1, d.what, err)
				}
			}
			made.byMethod.add(c.Options().Method.String() + " " + c.Options().Implementation.String())
		case "dup":
			if c, err = parent.Dup(ctx); err == nil {
				dups = append(dups, c)
			}
		case "named":
			c = parent.Named(fmt.Sprint("c", i))
		}
		if err != nil {
			return nil, dups, fmt.Errorf("comm %d (%s): %w", i+1, d.what, err)
		}
		g := d.groups[groupOf(d.groups, base.Replica())]
		if !slices.Equal(c.Members(), g) || c.Size() != len(g) || g[c.Rank()] != base.Replica() {
			return nil, dups, &wrong{fmt.Sprintf("WRONG members %v, want %v", c.Members(), g)}
		}
		comms = append(comms, c)
	}
	return comms, dups, nil
}
