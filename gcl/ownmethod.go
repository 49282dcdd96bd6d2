package gcl

import (
	"errors"
	"slices"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
)

// ownMethod is a method of a generator: of the program's own by WithMethod or methods.Register, or one of the gallery.
type ownMethod struct {
	method methods.Method
	prover *methods.Prover
}

// WithMethod gives the replicas a method of the program's own by a name, as methods.Register does for the whole
// process: Options.Method, their text form and GCL_OPTIONS have it, and [Comm.Explain]. The number is that of the name:
//
//	star, err := methods.Named("star")
//	err = gcl.Run(ctx, 8, body, gcl.WithMethod("star", g), gcl.WithOptions(gcl.Options{Method: star}))
//
// Other calls of Run may have another method by the same name. Replicas in several processes each give their own; the
// members compare the schedules of every call, and a difference is an ErrMismatch. A name of methods.Gallery stands for
// g in these replicas.
//
// A schedule that does not prove is the error of the call, with the rank, the round, and what is missing or doubled.
// Nothing has been sent then. A call of a collective that the method does not do goes as by Auto, or is an error with
// Options.Strict: Explain says why, and Trace which method it took. A Barrier goes by methods.SendToAll in any case.
//
// Run, New and Join refuse a name that is malformed, that a constant or a registered method has or another WithMethod
// of theirs, and a nil generator.
func WithMethod(name string, g methods.Generator) CommOption {
	p, err := methods.NewProver(name, g)
	m := methods.Auto
	if err == nil {
		m, err = methods.Named(name)
	}
	return func(c *config) {
		own, err := ownMethod{m, p}, err
		if err == nil {
			err = own.taken(c.own)
		}
		if err != nil && c.ownErr == nil {
			c.ownErr = errorf("WithMethod: %w", err)
		}
		c.own = append(c.own[:len(c.own):len(c.own)], own)
	}
}

// taken says which method has the name, beside others of the same communicator.
func (m ownMethod) taken(others []ownMethod) error {
	switch {
	case !m.method.Own():
		return errors.New("the name " + m.method.String() + " is taken: a built-in method has it")
	case m.method.Prover() != nil && !m.method.InGallery():
		return errors.New("the name " + m.method.String() + " is taken: a method has been registered by it")
	}
	if !m.isNew(others) {
		return errors.New("the name " + m.method.String() + " is given twice")
	}
	return nil
}

// prover is that of a method of a generator, by WithMethod before others; nil: there is none.
func (l *connection) prover(m methods.Method) *methods.Prover {
	if !m.Own() {
		return nil
	}
	for _, o := range l.own {
		if o.method == m {
			return o.prover
		}
	}
	return m.Prover()
}

// ownMethods are the methods of generators that the connection has: by WithMethod, of the gallery and registered.
func (l *connection) ownMethods() []ownMethod {
	out := append([]ownMethod(nil), l.own...)
	for _, m := range methods.All() {
		if m.Own() && (ownMethod{method: m}).isNew(out) {
			out = append(out, ownMethod{m, m.Prover()})
		}
	}
	return out
}

// isNew reports whether no other method has the same number.
func (m ownMethod) isNew(among []ownMethod) bool {
	return !slices.ContainsFunc(among, func(o ownMethod) bool { return o.method == m.method })
}

// checkOwn returns an *OptionError for a method without a generator in this communicator.
func (c *Comm) checkOwn() error {
	m := c.options.Method
	if !m.Own() || c.conn.prover(m) != nil {
		return nil
	}
	return &OptionError{
		Option: "Method", Value: m.String(),
		Reason: "the name has no generator in this communicator; want methods.Register, or gcl.WithMethod among the " +
			"options of Run, New or Join",
	}
}

// namedMethods lists the methods that all communicators have, or else those that some have by WithMethod.
func namedMethods(some bool) []name[methods.Method] {
	return named(slices.DeleteFunc(methods.Values(), func(m methods.Method) bool {
		return (m.Own() && m.Prover() == nil) != some
	})...)
}

// bySchedule reports whether two calls go by methods of generators, whose schedules differ where the digests do.
func bySchedule(a, b uint8) bool { return a == wire.OwnMethod && b == wire.OwnMethod }

// how is by what a call goes, as errors have it.
func how(c transport.Call) string {
	if c.Collective == wire.Execute {
		return "by its schedule"
	}
	return methodName(c.Method)
}

// methodName is the text of a method by its number in a call.
func methodName(m uint8) string {
	if m == wire.OwnMethod {
		return "a generator's method"
	}
	return methods.Method(m).String()
}
