package gcl

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gogcl.dev/internal/closest"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
)

// environment is the variable that overrides options.
const environment = "GCL_OPTIONS"

// ParseOptions returns the options of GCL's keys and values:
//
//	collectiveImplementation    Auto, Syncless, Syncful, Hybrid; deprecated: auto, hybrid
//	useSynclessCollectives      deprecated: auto, true (Syncless), false (Syncful), hybrid, Syncless, Syncful, Hybrid
//	maxBytesPerTile             1 to 64000
//	topology                    auto, rung-ring-2, rung-ring-4, rung-ring-8, ring-on-line, peripheral-ring
//	link                        auto-link, ipu-link, gw-link
//	method                      auto, broadcast, clockwise_ring, anticlockwise_ring, bidirectional_ring_pair,
//	                            meet_in_middle_ring, quad_directional_ring, and ours: direct, recursive_doubling
//	syncful.useOptimisedLayout  true, false
//	syncful.maxBroadcastSize    0 or more
//
// and of ours:
//
//	reproducible                true, false
//	ipusPerRank                 1 or more
//
// What is not there has its default. Options.Map is the inverse. Any other key or value is an *OptionError, which lists
// those that there are and names the closest. Both keys for the implementation may be given if they agree. The first
// use of useSynclessCollectives in a process logs a warning by package slog.
//
// Run and New read the environment variable GCL_OPTIONS, a JSON object of the same keys and values, once: what it says
// overrides the options that a Comm is given there and by Comm.With.
func ParseOptions(text map[string]string) (Options, error) {
	return Options{}.override(text)
}

// Map returns the options as text, such that ParseOptions gives them back: in the new spellings, and without what has
// its default. A value that is out of range is an *OptionError.
func (o Options) Map() (map[string]string, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	text := map[string]string{}
	for _, t := range optionTexts {
		if value := t.text(o); value != "" {
			text[t.key] = value
		}
	}
	return text, nil
}

// MarshalJSON returns what Map does as a JSON object.
func (o Options) MarshalJSON() ([]byte, error) {
	text, err := o.Map()
	if err != nil {
		return nil, err
	}
	return json.Marshal(text)
}

// UnmarshalJSON sets the options that a JSON object has, by the keys and values of ParseOptions. Values may be strings
// or, without quotes, true, false and numbers. Options that it does not have stay as they are, and all do after an
// error.
func (o *Options) UnmarshalJSON(data []byte) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	text, err := parseObject(data)
	if err != nil {
		return err
	}
	changed, err := o.override(text)
	if err == nil {
		*o = changed
	}
	return err
}

// environmentOptions returns what the environment overrides.
func environmentOptions() (map[string]string, error) {
	value := os.Getenv(environment)
	if value == "" {
		return nil, nil
	}
	text, err := parseObject([]byte(value))
	if err == nil {
		_, err = ParseOptions(text)
	}
	if err != nil {
		return nil, fmt.Errorf("gcl: environment variable %s: %w", environment, err)
	}
	return text, nil
}

// parseObject reads a JSON object of strings, booleans and numbers.
func parseObject(data []byte) (map[string]string, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	notObject := errors.New("gcl: options: want one JSON object, as in {\"method\": \"broadcast\"}")
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, notObject
	}
	text := map[string]string{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("gcl: options: %w", err)
		}
		key := token.(string) // as every key is
		if token, err = d.Token(); err != nil {
			return nil, fmt.Errorf("gcl: options: %w", err)
		}
		value := ""
		switch v := token.(type) {
		case string:
			value = v
		case bool, json.Number:
			value = fmt.Sprint(v)
		default: // null, or the beginning of an object or array
			return nil, &OptionError{Option: key, Value: strings.Replace(fmt.Sprint(v), "<nil>", "null", 1), Reason: "want a string, true, false or a number"}
		}
		if other, twice := text[key]; twice {
			return nil, &OptionError{Option: key, Value: value, Reason: "given twice, first as " + other}
		}
		text[key] = value
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, fmt.Errorf("gcl: options: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, notObject
	}
	return text, nil
}

const (
	implementationKey = "collectiveImplementation"
	synclessKey       = "useSynclessCollectives"
)

// override returns the options with what text says in place of their own.
func (o Options) override(text map[string]string) (Options, error) {
	for _, key := range slices.Sorted(maps.Keys(text)) {
		t := textOf(key)
		if t == nil {
			keys := make([]string, len(optionTexts))
			for i := range optionTexts {
				keys[i] = optionTexts[i].key
			}
			return Options{}, &OptionError{Option: key, Value: text[key],
				Reason: fmt.Sprintf("no such option; the closest is %s of %s", closest.Of(key, keys), strings.Join(keys, ", "))}
		}
		if err := t.set(&o, text[key]); err != nil {
			return Options{}, &OptionError{Option: key, Value: text[key], Reason: t.wants(text[key])}
		}
	}
	old, deprecated := text[synclessKey]
	if !deprecated {
		return o, nil
	}
	if value, both := text[implementationKey]; both {
		var other Options
		if err := textOf(implementationKey).set(&other, value); err != nil || other.Implementation != o.Implementation {
			return Options{}, &OptionError{Option: synclessKey, Value: old,
				Reason: fmt.Sprintf("contradicts %s=%s; leave it out, it is deprecated", implementationKey, value)}
		}
	}
	warnSyncless.Do(func() {
		slog.Warn("gcl: option "+synclessKey+" is deprecated, use "+implementationKey, "value", old, "instead", o.Implementation)
	})
	return o, nil
}

// warnSyncless sees to it that a process is warned once.
var warnSyncless sync.Once

// optionText is one option as text.
type optionText struct {
	key    string
	values []string                             // which there are; of a number, none
	low    int                                  // of a number, the least
	high   int                                  // of a number, the greatest
	set    func(o *Options, value string) error // leaves o alone when value is none of them; what it says is not looked at
	text   func(o Options) string               // "" for the default
}

// optionTexts lists the options: GCL's in the order of its documentation, then ours.
var optionTexts = []optionText{
	implementationText(),
	synclessText(),
	number("maxBytesPerTile", 1, MaxBytesPerTileLimit, func(o *Options) *int { return &o.MaxBytesPerTile }),
	named("topology", ringNames(), func(o *Options) textField { return &o.Topology }),
	named("link", linkNames[:], func(o *Options) textField { return &o.Link }),
	named("method", methodNames(), func(o *Options) textField { return &o.Method }),
	boolean("syncful.useOptimisedLayout", true, func(o *Options) *bool { return &o.StageFragments }),
	number("syncful.maxBroadcastSize", 0, math.MaxInt, func(o *Options) *int { return &o.MaxBroadcastSize }),
	boolean("reproducible", false, func(o *Options) *bool { return &o.Reproducible }),
	number("ipusPerRank", 1, math.MaxInt, func(o *Options) *int { return &o.IPUsPerRank }),
}

// textOf finds an option, or returns nil.
func textOf(key string) *optionText {
	for i := range optionTexts {
		if optionTexts[i].key == key {
			return &optionTexts[i]
		}
	}
	return nil
}

// wants says what is wrong with a value, and which would be right.
func (t *optionText) wants(value string) string {
	switch {
	case t.values != nil:
		return fmt.Sprintf("no such value; the closest is %s of %s", closest.Of(value, t.values), strings.Join(t.values, ", "))
	case t.high == math.MaxInt:
		return fmt.Sprintf("want a number of %d or more", t.low)
	}
	return fmt.Sprintf("want a number from %d to %d", t.low, t.high)
}

// errValue is what set says.
var errValue = errors.New("no such value")

// textField is a field of Options that has a text form.
type textField interface {
	encoding.TextUnmarshaler
	fmt.Stringer
}

// named is an option whose values are names, the first of which is the default.
func named(key string, values []string, field func(*Options) textField) optionText {
	return optionText{
		key: key, values: values,
		set: func(o *Options, value string) error { return field(o).UnmarshalText([]byte(value)) },
		text: func(o Options) string {
			if value := field(&o).String(); value != values[0] {
				return value
			}
			return ""
		},
	}
}

// boolean is an option that is true or false, whose field says that it is not what is usual.
func boolean(key string, usual bool, field func(*Options) *bool) optionText {
	return optionText{
		key: key, values: []string{"true", "false"},
		set: func(o *Options, value string) error {
			if value != "true" && value != "false" {
				return errValue
			}
			*field(o) = (value == "true") != usual
			return nil
		},
		text: func(o Options) string {
			if *field(&o) {
				return strconv.FormatBool(!usual)
			}
			return ""
		},
	}
}

// number is an option that is a number from low to high. Its field is 0 when it is not set, and -1 for a 0 that is.
func number(key string, low, high int, field func(*Options) *int) optionText {
	return optionText{
		key: key, low: low, high: high,
		set: func(o *Options, value string) error {
			n, err := strconv.Atoi(value)
			switch {
			case err != nil || n < low || n > high:
				return errValue
			case n == 0:
				n = -1
			}
			*field(o) = n
			return nil
		},
		text: func(o Options) string {
			switch n := *field(&o); n {
			case 0:
				return ""
			case -1:
				return "0"
			default:
				return strconv.Itoa(n)
			}
		},
	}
}

// implementationText is an option whose values may be spelled in an old way too.
func implementationText() optionText {
	t := named(implementationKey, slices.Clone(implementationNames[:]), func(o *Options) textField { return &o.Implementation })
	t.values = append(t.values, "auto", "hybrid")
	set := t.set
	t.set = func(o *Options, value string) error {
		switch value {
		case "auto":
			o.Implementation = AutoImplementation
		case "hybrid":
			o.Implementation = Hybrid
		default:
			return set(o, value)
		}
		return nil
	}
	return t
}

// synclessText is the old way to say the same.
func synclessText() optionText {
	means := map[string]Implementation{
		"auto": AutoImplementation, "true": Syncless, "false": Syncful, "hybrid": Hybrid,
		"Syncless": Syncless, "Syncful": Syncful, "Hybrid": Hybrid,
	}
	return optionText{
		key:    synclessKey,
		values: []string{"auto", "true", "false", "hybrid", "Syncless", "Syncful", "Hybrid"},
		set: func(o *Options, value string) error {
			i, known := means[value]
			if !known {
				return errValue
			}
			o.Implementation = i
			return nil
		},
		text: func(Options) string { return "" },
	}
}

func methodNames() []string {
	values := []string{methods.Auto.String()}
	for _, m := range methods.All() {
		values = append(values, m.String())
	}
	return values
}

func ringNames() []string {
	var values []string
	for r := topology.Auto; ; r++ {
		name, err := r.MarshalText()
		if err != nil {
			return values
		}
		values = append(values, string(name))
	}
}
