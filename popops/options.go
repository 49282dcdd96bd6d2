package popops

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

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

// planKeys says how each option of a plan is read and written, by the interface's key. A value that is the default is
// not written.
var planKeys = map[string]planKey{
	"usedForSlice":  turnedOff(func(o *PlanOptions) *bool { return &o.NotForSlice }),
	"usedForUpdate": turnedOff(func(o *PlanOptions) *bool { return &o.NotForUpdate }),
	"operationForUpdate": {
		func(o *PlanOptions, v string) error { return parseName(operationNames, v, &o.Operation) },
		func(o *PlanOptions) string { return unless(o.Operation == UpdateAdd, o.Operation.String()) },
	},
	"availableMemoryProportion": {
		func(o *PlanOptions, v string) error {
			p, err := strconv.ParseFloat(v, 64)
			if err != nil || !(p >= 0 && p <= 1) {
				return fmt.Errorf("want a number from 0 to 1")
			}
			if o.AvailableMemoryProportion = p; p == 0 {
				o.AvailableMemoryProportion = NoMemory
			}
			return nil
		},
		func(o *PlanOptions) string {
			return unless(o.AvailableMemoryProportion == 0, strconv.FormatFloat(o.proportion(), 'g', -1, 64))
		},
	},
	"indicesDistribution": {
		func(o *PlanOptions, v string) error { return parseName(distributionNames, v, &o.Distribution) },
		func(o *PlanOptions) string { return unless(o.Distribution == Uniform, o.Distribution.String()) },
	},
	"indicesAreSorted": turnedOn(func(o *PlanOptions) *bool { return &o.IndicesAreSorted }),
	"validateIndices":  turnedOn(func(o *PlanOptions) *bool { return &o.ValidateIndices }),
	"partialType": {
		func(o *PlanOptions, v string) error {
			switch v {
			case "half":
				o.PartialType = tensor.F16
			case "float":
				o.PartialType = tensor.F32
			default:
				t, err := tensor.ParseDType(v)
				if err != nil {
					return fmt.Errorf("want half, float, or the name of a type such as bfloat16")
				}
				o.PartialType = t
			}
			return nil
		},
		func(o *PlanOptions) string {
			switch o.PartialType {
			case tensor.F16:
				return "half"
			case tensor.F32:
				return "float"
			}
			return unless(o.PartialType == 0, o.PartialType.String())
		},
	},
	"workers": {
		func(o *PlanOptions, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > maxWorkers {
				return fmt.Errorf("want 1 to %d", maxWorkers)
			}
			o.Workers = n
			return nil
		},
		func(o *PlanOptions) string { return unless(o.Workers == 0, strconv.Itoa(o.Workers)) },
	},
}

// planKey is an entry of planKeys.
type planKey struct {
	parse func(o *PlanOptions, value string) error
	text  func(o *PlanOptions) string // "" for the default
}

// turnedOn is a flag that is off unless something is said, turnedOff one that is on, of which the field is the
// opposite.
func turnedOn(field func(*PlanOptions) *bool) planKey { return flag(field, false) }

func turnedOff(field func(*PlanOptions) *bool) planKey { return flag(field, true) }

func flag(field func(*PlanOptions) *bool, byDefault bool) planKey {
	return planKey{
		func(o *PlanOptions, v string) error {
			if v != "true" && v != "false" {
				return fmt.Errorf("want true or false")
			}
			*field(o) = (v == "true") != byDefault
			return nil
		},
		func(o *PlanOptions) string {
			return unless(!*field(o), strconv.FormatBool(!byDefault))
		},
	}
}

func unless(isDefault bool, text string) string {
	if isDefault {
		return ""
	}
	return text
}

func parseName[E ~uint8](names []string, v string, e *E) error {
	i := slices.Index(names, v)
	if i < 0 {
		return fmt.Errorf("want %s", strings.Join(names, ", "))
	}
	*e = E(i)
	return nil
}

// ParsePlanOptions is the options with the interface's keys and values, such as "operationForUpdate": "max"; ours is
// "workers". A key that is not there or a value that makes no sense is an error. Whether the options go together
// NewPlan finds out.
func ParsePlanOptions(options map[string]string) (PlanOptions, error) {
	var o PlanOptions
	for _, key := range slices.Sorted(maps.Keys(options)) {
		k, ok := planKeys[key]
		if !ok {
			return PlanOptions{}, fmt.Errorf("popops: no option %q, want one of %s",
				key, strings.Join(slices.Sorted(maps.Keys(planKeys)), ", "))
		}
		if err := k.parse(&o, options[key]); err != nil {
			return PlanOptions{}, fmt.Errorf("popops: option %s is %q, %w", key, options[key], err)
		}
	}
	return o, nil
}

// Map is what ParsePlanOptions makes the same options of, without what is the default.
func (o PlanOptions) Map() map[string]string {
	m := map[string]string{}
	for key, k := range planKeys {
		if text := k.text(&o); text != "" {
			m[key] = text
		}
	}
	return m
}
