package gcl

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/price"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// strict is a Comm, for the questions of its Caller about calls that the method of its options does not do.
type strict Comm

// Skips has such a call refused by Options.Strict. Without it the first one of the method and the collective on the
// connection is logged. w may be that of a phase of Hybrid. IPUs say nothing.
func (s *strict) Skips(w *carry.Caller, a *job.Ask, byCounts bool) error {
	c := (*Comm)(s)
	what := warning{c.options.Method, a.Collective, byCounts, a.Reduction.InOrder}
	if c.options.Strict {
		return c.notDone(w, a, what)
	}
	warned := c.conn.warned
	if c.Rank() == 0 && warned != nil && !warned[what] {
		warned[what] = true
		slog.Warn("gcl: a call goes as by auto, since the method does not do it", "method", c.options.Method,
			"collective", what.String()+what.operator(), "ranks", w.Size())
	}
	return nil
}

// warning is what has been logged on a connection.
type warning struct {
	method     methods.Method
	collective schedule.Collective
	byCounts   bool
	inOrder    bool // by an operator that does not commute
}

// String is what is not done.
func (w warning) String() string {
	if w.byCounts {
		return w.collective.String() + " by counts"
	}
	return w.collective.String()
}

// operator says what is not done by which operators.
func (w warning) operator() string {
	if w.inOrder {
		return " by an operator that does not commute"
	}
	return ""
}

// notDone is the error of a call that the method of the options does not do.
func (c *Comm) notDone(w *carry.Caller, a *job.Ask, what warning) error {
	do := []string{methods.Auto.String()}
	if what.byCounts {
		do = append(do, methods.Direct.String())
	} else {
		for _, m := range methods.All() {
			if !m.Own() {
				do = append(do, m.String())
			}
		}
	}
	why := errors.ErrUnsupported
	for _, m := range c.conn.ownMethods() {
		many := m.method.InGallery() && m.method != c.options.Method && w.Size() > price.MostOffered
		if what.byCounts || what.inOrder || many {
			continue
		}
		switch _, err := w.Prove(m.prover, w.Spec(a, m.method, 0, false)); {
		case m.method == c.options.Method && errors.Is(err, errors.ErrUnsupported):
			why = err
		case err == nil:
			do = append(do, m.method.String())
		}
	}
	return fmt.Errorf("the method %v does not do %s of %d ranks%s, which Options.Strict refuses: want one of %s: %w",
		c.options.Method, what, w.Size(), what.operator(), strings.Join(do, ", "), why)
}
