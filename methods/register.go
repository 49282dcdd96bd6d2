package methods

import (
	"fmt"
	"slices"

	"gogcl.dev/methods/schedule"
)

// Register adds a method of a program's own to this process: a row of the table like the others. From then on [Parse]
// knows the name, so that options, GCL_OPTIONS and flags have it, and [All] lists it, so that Explain, the benchmarks
// and gclperf have it. A name of [Gallery] stands for the program's method from then on: a Generator that goes on to
// the library's for some requests takes that from Gallery, since Build would ask itself: an error, or from a goroutine
// that it starts an endless wait.
//
//	if err := methods.Register("star", star); err != nil { ... }
//	m, err := methods.Parse("star")
//	mine, err := c.With(gcl.Options{Method: m})
//
// Schedules are proved before they are used: see [Prover.Prove]. A call of a collective that the Generator cannot do
// goes as by Auto, or is an error with gcl.Options.Strict. All processes of a job register alike: members compare the
// schedules of each call.
//
// A name is a lower case letter, and at most 63 lower case letters, digits and underscores. Errors: a name that is
// malformed, or that a constant or a registered method has, a nil Generator, and more names than MaxNames.
func Register(name string, g Generator) error {
	p, err := NewProver(name, g)
	if err != nil {
		return err
	}
	naming.Lock()
	defer naming.Unlock()
	m, err := named(name)
	if err != nil {
		return err
	}
	r := m.row()
	switch {
	case !m.Own():
		return fmt.Errorf("methods: the name %s is taken: a built-in method has it", name)
	case r.own != nil && !r.gallery:
		return fmt.Errorf("methods: the name %s is taken: a method has been registered by it", name)
	}
	rows := slices.Clone(current.Load().rows)
	rows[m] = row{name: name, own: p, recipes: provedRecipes(p)}
	setTable(rows)
	return nil
}

// Named returns the method that a name stands for: a constant, one of Gallery, a registered one, or one to which only
// gcl.WithMethod gives a Generator, in some programs another than in others. A name gets its number when this process
// first hears of it. Errors: a name that is malformed, and more names than MaxNames.
func Named(name string) (Method, error) {
	naming.Lock()
	defer naming.Unlock()
	return named(name)
}

// MaxNames bounds the names of methods of programs in a process, but for those of Gallery. A Method has room for more.
// The library keeps it for its own, and the last number for gcl, which has one for all methods of programs.
const MaxNames = 200

// named is Named for who holds naming.
func named(name string) (Method, error) {
	t := current.Load()
	if m, known := t.names.Lookup(name); known {
		return m, nil
	}
	if err := checkName(name); err != nil {
		return 0, err
	}
	if most := int(numMethods) + len(Gallery()) + MaxNames; len(t.rows) == most {
		return 0, fmt.Errorf("methods: no room for the method %s: this process has %d names already, which is the most",
			name, MaxNames)
	}
	m := Method(len(t.rows))
	setTable(append(slices.Clone(t.rows), row{name: name, unscheduled: "it is not registered"}))
	return m, nil
}

// provedRecipes are the recipes of a method of a Generator: what that makes, for each collective with data.
func provedRecipes(p *Prover) recipes {
	proved := func(s Spec) (*Proved, error) {
		s.Pieces = 0 // which other schedules than pipelines ignore
		return p.Prove(Request{Spec: s})
	}
	w := recipe{
		chunks: func(s Spec) int {
			made, _ := proved(s) // of a Spec that has been checked
			return made.Chunks
		},
		program: func(s Spec, rank int) schedule.Program {
			made, _ := proved(s)
			return made.Programs[rank]
		},
		proved:    proved,
		described: p.described,
	}
	var out recipes
	for range schedule.Collectives() {
		out = append(out, w)
	}
	return out
}

func init() {
	rows := slices.Clone(builtin[:])
	for _, l := range Gallery() {
		p, err := NewProver(l.Name, l.Generator)
		if err != nil {
			panic(err) // a name is malformed, which a test would show
		}
		rows = append(rows, row{name: l.Name, own: p, gallery: true, recipes: provedRecipes(p)})
	}
	setTable(rows)
}
