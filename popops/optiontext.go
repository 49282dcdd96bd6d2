package popops

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gogcl.dev/tensor"
)

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
func turnedOn(field func(*PlanOptions) *bool) planKey  { return flag(field, false) }
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
