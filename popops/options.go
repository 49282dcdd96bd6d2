package popops

import (
	"fmt"
	"math"

	"gogcl.dev/tensor"
)

// Options of a call that slices or updates several times. The zero value is a good choice.
type Options struct {
	// ValidateIndices makes an offset out of range an error, found before anything is written. Without it such a
	// look-up gives zeros, and such an update is left out. A plan with ValidateIndices has the same effect.
	ValidateIndices bool

	// IndicesAreSorted promises that the offsets of an update (of each group) never decrease, which saves finding out
	// what rows they are of; if they do, the call is an error. With a plan it must be what the plan was made with.
	// Look-ups take no advantage of it.
	IndicesAreSorted bool

	// PartialType is what updates that add are summed in; 0 is the plan's, which must not be another, or float32 for
	// floats of 16 bits and the data's type for others. See MultiUpdateAdd. Other operations take no notice.
	PartialType tensor.DType
}

// UpdateOperation is what an update does with the entry that is there.
type UpdateOperation uint8

// The operations.
const (
	UpdateAdd  UpdateOperation = iota // MultiUpdateAdd: "add"
	UpdateNone                        // MultiUpdate: "none"
	UpdateMax                         // MultiUpdateMax: "max"
)

var operationNames = []string{UpdateAdd: "add", UpdateNone: "none", UpdateMax: "max"}

// String is the operation's name in the text form of options.
func (o UpdateOperation) String() string { return nameOf(operationNames, o, "UpdateOperation") }

// Distribution is how offsets are expected to be distributed over the entries.
type Distribution uint8

// The distributions.
const (
	Uniform  Distribution = iota // all entries alike: "uniform"
	OnePoint                     // all offsets are equal: "onePoint"
)

var distributionNames = []string{Uniform: "uniform", OnePoint: "onePoint"}

// String is the distribution's name in the text form of options.
func (d Distribution) String() string { return nameOf(distributionNames, d, "Distribution") }

func nameOf[E ~uint8](names []string, e E, of string) string {
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("%s(%d)", of, uint8(e))
}

// PlanOptions say what a plan is for and what it may assume. The zero value is that of the interface's defaults.
// ParsePlanOptions makes them of its keys and values, Map the other way round.
type PlanOptions struct {
	// NotForSlice and NotForUpdate are usedForSlice and usedForUpdate turned off: a call of that kind with the plan is
	// an error. Both together are one.
	NotForSlice, NotForUpdate bool

	// Operation is what updates with the plan do; with NotForUpdate it does not matter.
	Operation UpdateOperation

	// AvailableMemoryProportion is how much of a worker's memory (WorkerBytes) a call may take for temporaries, above 0
	// and up to 1; 0 is 0.6, NoMemory is 0. What a call cannot do without (some KiB, and for updates that add floats
	// of 16 bits a row of float32s, and 2 bytes for each look-up) it takes in any case. It is about time: no result
	// depends on it.
	AvailableMemoryProportion float64

	// Distribution is what the cost model expects offsets to be. No result depends on it.
	Distribution Distribution

	// IndicesAreSorted and ValidateIndices are those of Options. The first must be given with each update too.
	IndicesAreSorted bool
	ValidateIndices  bool

	// PartialType is that of Options, for UpdateAdd: never less precise than the data. 0 is the default.
	PartialType tensor.DType

	// Workers is how many workers there are at most; 0 is as many as Go runs at the same time when the plan is made. On
	// an IPU it is the number of tiles. No result depends on it.
	Workers int
}

// NoMemory is the AvailableMemoryProportion of 0.
const NoMemory = -1

// defaultProportion is what the interface has for availableMemoryProportion when nothing is said.
const defaultProportion = 0.6

// WorkerBytes is a worker's memory, which AvailableMemoryProportion is of: the second-level cache of one core of the
// machine that the cost model was measured on, where temporaries are as near as a tile's memory is to the tile.
const WorkerBytes = 1 << 20

// maxWorkers bounds Workers: more than that is a mistake. An IPU has 1472 tiles.
const maxWorkers = 1 << 16

// check returns what is wrong with the options of a plan for a type.
func (o *PlanOptions) check(dtype tensor.DType) error {
	switch p := o.AvailableMemoryProportion; {
	case o.NotForSlice && o.NotForUpdate:
		return fmt.Errorf("options NotForSlice and NotForUpdate: the plan would be of no use")
	case int(o.Operation) >= len(operationNames):
		return fmt.Errorf("option Operation %v, want UpdateAdd, UpdateNone or UpdateMax", o.Operation)
	case int(o.Distribution) >= len(distributionNames):
		return fmt.Errorf("option Distribution %v, want Uniform or OnePoint", o.Distribution)
	case math.IsNaN(p) || p > 1 || p < 0 && p != NoMemory:
		return fmt.Errorf("option AvailableMemoryProportion %v, want 0 to 1, where 0 is the default and NoMemory none",
			p)
	case o.Workers < 0 || o.Workers > maxWorkers:
		return fmt.Errorf("option Workers %d, want 1 to %d, or 0 for as many as Go runs at the same time",
			o.Workers, maxWorkers)
	}
	if o.NotForUpdate {
		return nil
	}
	if o.Operation != UpdateNone && !dtype.IsNumber() {
		return fmt.Errorf("option Operation %v on %v, want a number", o.Operation, dtype)
	}
	if o.Operation == UpdateAdd {
		return checkPartial(o.PartialType, dtype)
	}
	return nil
}

// proportion is AvailableMemoryProportion as a number from 0 to 1.
func (o *PlanOptions) proportion() float64 {
	switch o.AvailableMemoryProportion {
	case 0:
		return defaultProportion
	case NoMemory:
		return 0
	}
	return o.AvailableMemoryProportion
}

// pairBytes is what a pair takes that is sorted: itself, and room beside it.
const pairBytes = 16

// pairsWithin is how many of n pairs may be sorted at once: so many that always may take 4 KiB.
func pairsWithin(proportion float64, n int) int {
	return min(n, max(fewPairs, int(proportion*WorkerBytes)/pairBytes))
}

// is16 reports whether a type is a float of 16 bits.
func is16(t tensor.DType) bool { return t == tensor.F16 || t == tensor.BF16 }

// checkPartial returns an error for a partial type that data of dtype cannot be summed in.
func checkPartial(partial, dtype tensor.DType) error {
	if partial == 0 || partial == dtype || is16(dtype) && partial == tensor.F32 {
		return nil
	}
	if is16(dtype) {
		return fmt.Errorf("option PartialType %v for %v, want float32 or %[2]v", partial, dtype)
	}
	return fmt.Errorf("option PartialType %v for %v, want %[2]v", partial, dtype)
}

// sumsWide reports whether sums of dtype are kept in float32 and rounded once.
func sumsWide(partial, dtype tensor.DType) bool { return is16(dtype) && partial != dtype }

// sumType is what sums of dtype are kept in.
func sumType(partial, dtype tensor.DType) tensor.DType {
	if sumsWide(partial, dtype) {
		return tensor.F32
	}
	return dtype
}
