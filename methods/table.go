package methods

import (
	"sync"
	"sync/atomic"

	"gogcl.dev/internal/enum"
	"gogcl.dev/methods/schedule"
)

// row is all that there is to say about a method.
type row struct {
	name    string
	rings   int     // the ring orders that it follows: none, Spec.Ring, or Spec.Second too
	recipes recipes // none: it makes no schedules, as unscheduled says

	// inOrder are the recipes of the collectives that combine if each element must be the left fold of the inputs in
	// the order of the ranks. nil: it always is.
	inOrder recipes

	// unscheduled says why the method makes no schedules.
	unscheduled string

	own     *Prover // of a method whose schedules a Generator makes
	gallery bool    // the Generator is one of Gallery
}

// recipes has how a method carries out each collective that it can, by number. It is no map: a call asks it.
type recipes []recipe

// recipe is how a method carries out a collective.
type recipe struct {
	chunks  func(s Spec) int                        // into how many the data is cut
	program func(s Spec, rank int) schedule.Program // of two ranks or more
	reach   func(size int) int                      // hops of the chain that Pieces is for; nil: there is no chain
	folds   bool                                    // ranks above a power of two take a round before and one after

	// traffic adds the orders and the rounds of the messages of two ranks or more, for Spec.Traffic. nil: nothing
	// describes them without steps.
	traffic func(s Spec, t *schedule.Traffic)

	// proved is the schedule of a Generator. nil: the schedules of the method are proved by the tests.
	proved func(s Spec) (*Proved, error)

	// described is Spec.Traffic of a Generator.
	described func(s Spec) (*schedule.Traffic, error)
}

// methodTable has a row for each method, by its number: the constants, the gallery, and then those of programs, in the
// order in which they were named. It is not changed: a new name, or a registration, makes a new one.
type methodTable struct {
	rows  []row
	names *enum.Names[Method]
}

// current is the table. Calls read it without a lock.
var current atomic.Pointer[methodTable]

// naming is held by whoever makes a new table out of the current one.
var naming sync.Mutex

// setTable makes rows the current table.
func setTable(rows []row) {
	names := make([]string, len(rows))
	for m := range rows {
		names[m] = rows[m].name
	}
	current.Store(&methodTable{rows, enum.New[Method]("method", names...)})
}

// row is that of a method, or nil.
func (m Method) row() *row {
	if rows := current.Load().rows; int(m) < len(rows) {
		return &rows[m]
	}
	return nil
}

// Into how many chunks the data is cut.
func whole(Spec) int     { return 1 }
func perRank(s Spec) int { return s.Size }
