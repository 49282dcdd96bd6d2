package ir

import (
	"errors"
	"fmt"
	"reflect"
)

// Program is what is built once and run on every replica. It is built on one goroutine.
type Program struct {
	replicas    int
	main        *Graph
	graphs      []*Graph // main first, in the order of their making
	names       map[string]int
	streams     []*Stream
	variables   []*Variable
	err         error
	checkFinite bool // sessions begin with Session.CheckFinite
	sessions    bool // one exists: nothing can be added or changed
	tensors     int  // made so far
	attached    map[any]any
	atEnd       []func()
}

// maxReplicas is how many replicas a program may have: as many as package inproc connects.
const maxReplicas = 1 << 13

func checkReplicas(n int) error {
	if n < 1 || n > maxReplicas {
		return fmt.Errorf("ir: %d replicas, want 1 to %d", n, maxReplicas)
	}
	return nil
}

// New returns a program for that number of replicas, with an empty main graph. Fewer than 1 or more than 8,192 are
// an error, which sticks.
func New(replicas int) *Program {
	p := &Program{replicas: replicas, names: map[string]int{}}
	p.main = p.newGraph("main")
	if err := checkReplicas(replicas); err != nil {
		p.fail(err)
	}
	return p
}

// Main returns the main graph, which a session runs.
func (p *Program) Main() *Graph { return p.orNone().main }

// Replicas returns the replication factor.
func (p *Program) Replicas() int {
	if p == nil {
		return 0
	}
	return p.replicas
}

// SetReplicas changes the replication factor. What New refuses is an error, and so is any change once a session exists.
func (p *Program) SetReplicas(n int) error {
	switch {
	case p == nil || p.main == nil:
		return errNoProgram
	case p.sessions:
		return fmt.Errorf("ir: the replication factor is %d and cannot become %d: a session exists", p.replicas, n)
	}
	if err := checkReplicas(n); err != nil {
		return err
	}
	p.replicas = n
	return nil
}

// Graphs returns all graphs, the main one first, in the order of their making.
func (p *Program) Graphs() []*Graph { return append([]*Graph(nil), p.orNone().graphs...) }

// Err returns the error that sticks, or nil.
func (p *Program) Err() error { return p.orNone().err }

// Fail makes an error stick, if it is the first: for packages of operations that refuse something which is no
// operation. The error says what was to be done, and the line of the package's caller.
func (p *Program) Fail(what string, err error) {
	if p == nil || p.main == nil || err == nil {
		return
	}
	p.main.refuse(what, callerOf(), err)
}

// Attached returns what a package of operations keeps with a program, found by key or made. With no program, or a key
// that cannot be compared, it is made and not kept; without a function to make it, it is nil.
func (p *Program) Attached(key any, make func() any) any {
	if make == nil {
		return nil
	}
	if p == nil || key != nil && !reflect.ValueOf(key).Comparable() {
		return make()
	}
	if p.attached == nil {
		p.attached = map[any]any{}
	}
	if p.attached[key] == nil {
		p.attached[key] = make()
	}
	return p.attached[key]
}

// AtEnd has the first NewSession call f before it plans: f may add operations to the main graph, whatever was built
// after AtEnd was called, and say AtEnd again. Several are called in the order in which they were given. Errors,
// which stick: no function, a session that exists.
func (p *Program) AtEnd(f func()) {
	p = p.orNone()
	var err error
	switch {
	case f == nil:
		err = errors.New("no function")
	case p.sessions:
		err = errSession
	}
	if err != nil {
		p.main.refuse("at end", caller(""), err)
		return
	}
	p.atEnd = append(p.atEnd, f)
}

// end calls what AtEnd was given, and returns the error that sticks.
func (p *Program) end() error {
	for p.err == nil && len(p.atEnd) > 0 {
		f := p.atEnd[0]
		p.atEnd = p.atEnd[1:]
		p.whole(f)
	}
	return p.err
}

// fail makes an error stick, if it is the first.
func (p *Program) fail(err error) {
	if p.err != nil {
		return
	}
	if e, is := err.(*BuildError); is {
		e.Frames = framesFrom(e.Position)
	}
	p.err = err
}

// unique makes a name that no other graph has.
func (p *Program) unique(name string) string {
	p.names[name]++
	if n := p.names[name]; n > 1 {
		return p.unique(fmt.Sprintf("%s_%d", name, n))
	}
	return name
}

var errSession = errors.New("a session of the program exists")
