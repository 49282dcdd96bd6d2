package msccl

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/methods/schedule"
)

// File is what a file of the format says.
type File struct {
	// Name is the algorithm's.
	Name string

	// Protocol is how the runtime moves data: "Simple", "LL" or "LL128". Write takes "" for Simple.
	Protocol string

	// MinBytes and MaxBytes are for which sizes of the larger buffer the runtime takes the algorithm. A file without
	// them has 0 and 32 GiB, which is the runtime's default. Write takes 0 as MaxBytes for that.
	MinBytes, MaxBytes int64

	// Schedule is what the steps do.
	Schedule *schedule.Schedule
}

// defaultMaxBytes is what MSCCL's runtime takes for maxBytes where a file has none. Source: microsoft/msccl,
// src/graph/topo.cc.
const defaultMaxBytes = 1 << 35

// Bounds of a file, which keep what is made of a short one small. Offsets are 16 bits in the runtime.
const (
	maxGPUs     = 1 << 16
	maxChunks   = 1 << 15
	maxChannels = 1 << 10
	maxBuffers  = 1 << 22 // nchunksperloop * ngpus
	maxNamed    = 1 << 20 // chunks that steps name, if the file is short
	namedBytes  = 32      // ... and if it is long, of the file for each
)

// names are the collectives of the format, by ours.
var names = []struct {
	collective schedule.Collective
	name       string
}{
	{schedule.AllReduce, "allreduce"},
	{schedule.ReduceScatter, "reduce_scatter"},
	{schedule.AllGather, "allgather"},
	{schedule.AllToAll, "alltoall"},
}

// protocols are those of the format.
var protocols = []string{"Simple", "LL", "LL128"}

// kind is a type of step: a row of the table in the package comment.
type kind struct {
	name            string
	receives, sends bool
	src, dst        bool // which places it uses
}

var kinds = []kind{
	{name: "s", sends: true, src: true},
	{name: "r", receives: true, dst: true},
	{name: "rcs", receives: true, sends: true, dst: true},
	{name: "rrc", receives: true, src: true, dst: true},
	{name: "rrs", receives: true, sends: true, src: true},
	{name: "rrcs", receives: true, sends: true, src: true, dst: true},
	{name: "cpy", src: true, dst: true},
	{name: "re", src: true, dst: true},
	{name: "nop"},
}

// The buffers, as the format has them, and one for what goes through a gpu without being kept.
const (
	input   = 'i'
	output  = 'o'
	scratch = 's'
	passing = 't'
)

// area is consecutive chunks of a buffer.
type area struct {
	buf          byte
	first, count int
}

// algorithm is a file before its steps are put into rounds.
type algorithm struct {
	File
	collective schedule.Collective
	chunks     int
	inPlace    bool  // input and output are one memory
	apart      bool  // they never are
	want       int   // gpus
	gpus       []gpu // by id
}

type gpu struct {
	line    int
	chunks  map[byte]int // by buffer
	blocks  []block
	present bool
}

type block struct {
	line                int
	send, recv, channel int // -1: none
	steps               []step
	present             bool
}

type step struct {
	line              int
	kind              kind
	src, dst          area
	depBlock, depStep int // -1: none
	hasDep            bool
}

// where is a step, or less than that, for errors.
type where struct{ line, gpu, block, step int }

// nowhere is the place of what stands in no gpu.
func nowhere(line int) where { return where{line, -1, -1, -1} }

func (w where) errorf(format string, a ...any) error {
	place := fmt.Sprintf("line %d", w.line)
	if name := w.name(); name != "" {
		place += ": " + name
	}
	return fmt.Errorf("msccl: %s: %w", place, fmt.Errorf(format, a...))
}

// name is the gpu, thread block and step.
func (w where) name() string {
	switch {
	case w.gpu < 0:
		return ""
	case w.block < 0:
		return fmt.Sprintf("gpu %d", w.gpu)
	case w.step < 0:
		return fmt.Sprintf("gpu %d thread block %d", w.gpu, w.block)
	}
	return fmt.Sprintf("gpu %d thread block %d step %d", w.gpu, w.block, w.step)
}

// Read reads a file. The schedule has a legal form and is not proved: [schedule.Check] says whether it does what the
// file's name for the collective says.
//
// Errors name the line, and the gpu, thread block and step: XML that is none; an element or attribute that is missing,
// twice there or out of its range; an unknown collective, type, buffer or protocol; a dependency on a step that does
// not exist or has hasdep="0"; a send without a receive or the other way round, or of another count; steps that wait
// for each other in a circle, which is a deadlock; two steps that use a chunk, one of which writes it, in an order that
// nothing settles. Collectives of the format that are not in the table of the package comment are
// errors.ErrUnsupported. Memory is bounded: see the errors of too many chunks.
func Read(text []byte) (*File, error) {
	a, err := parse(text)
	if err != nil {
		return nil, err
	}
	g, err := newGraph(a)
	if err != nil {
		return nil, err
	}
	f := a.File
	if f.Schedule, err = place(g); err != nil {
		return nil, err
	}
	return &f, nil
}

// collectiveOf finds a collective by its name in the format.
func collectiveOf(w where, name string) (schedule.Collective, error) {
	var known []string
	for _, n := range names {
		if n.name == name {
			return n.collective, nil
		}
		known = append(known, n.name)
	}
	if slices.Contains([]string{"reduce", "broadcast", "custom"}, name) {
		return 0, w.errorf("coll=%q, want one of %v: %w", name, known, errors.ErrUnsupported)
	}
	return 0, w.errorf("coll=%q, want one of %v", name, known)
}
