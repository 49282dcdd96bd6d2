package main

import (
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// i32 is the spec of a number.
var i32 = ir.Spec{DType: tensor.I32}

// program is built once; each of its parts is an example.
type program struct {
	*ir.Program

	runs *remote.Variable // how often it has run on these entries: 0 in a new buffer

	x      *remote.Variable // the remote variable
	output *ir.Stream       // what it is after the run

	entries [2]*ir.Stream // what was loaded from the two entries
	before  [2]*ir.Stream // and what was in them before anything was stored
}

// build makes the program, on buffers that live in a storage.
func build(storage remote.Storage) *program {
	p := &program{Program: ir.New(1)}
	remote.UseStorage(p.Program, storage)
	p.remoteVariable()
	p.twoEntries()
	p.countRuns()
	return p
}

// remoteVariable loads a variable of 1, adds a variable of 2 to it in place, and stores what that gives where it was.
// Nothing is in the replica's memory but for that time.
func (p *program) remoteVariable() {
	main := p.Main()
	buffer := remote.NewBuffer(p.Program, i32, 1)
	// int64 data becomes int32 on the way, as PopXL's downcast has it. The buffer is named as its variable: x.0.remote
	// is its file.
	p.x = remote.NewVariable(p.Program, tensor.Scalar(int64(1)), buffer, 0, remote.Name("x"))
	y := p.Variable(tensor.Scalar(int32(2)), ir.VariableName("y"))
	p.output = p.DeviceToHost("output", i32)

	loaded := p.x.Load(main)
	loaded = ops.Accumulate(loaded, y.Tensor)
	p.x.Store(loaded)
	main.HostStore(p.output, loaded)
}

// twoEntries stores 1 at entry 0 of a buffer and 2 at entry 1, and loads both back: the first by a number that is known
// now, the second by one that is computed when the program runs. What is done to one buffer is done in the order in
// which it is written here.
func (p *program) twoEntries() {
	main := p.Main()
	buffer := remote.NewBuffer(p.Program, i32, 2).Named("entries")
	for i := range p.before {
		p.before[i] = p.DeviceToHost([]string{"before 0", "before 1"}[i], i32)
		main.HostStore(p.before[i], remote.Load(main, buffer, i))
	}
	remote.Store(main.Constant(tensor.Scalar(int32(1))), buffer, 0)
	remote.Store(main.Constant(tensor.Scalar(int32(2))), buffer, 1)

	p.entries[0] = p.DeviceToHost("entry 0", i32)
	main.HostStore(p.entries[0], remote.Load(main, buffer, 0))
	second := ops.AddScalar(main.Constant(tensor.Scalar(int32(0))), 1)
	p.entries[1] = p.DeviceToHost("entry 1", i32)
	main.HostStore(p.entries[1], remote.LoadAt(buffer, second))
}

// countRuns has an entry that says how often the program has run, so that it is known what the others must hold.
func (p *program) countRuns() {
	buffer := remote.NewBuffer(p.Program, i32, 1)
	p.runs = remote.NewVariable(p.Program, tensor.Scalar(int32(0)), buffer, 0, remote.Name("runs"))
	p.runs.Store(ops.AddScalar(p.runs.Load(p.Main()), 1))
}
