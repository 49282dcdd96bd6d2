package gcl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
)

// ParseOptions returns the options of GCL's keys and values:
//
//	collectiveImplementation     Auto, Syncless, Syncful, Hybrid, auto (old spelling), hybrid (old spelling)
//	useSynclessCollectives       auto, true (Syncless), false (Syncful), hybrid, Syncless, Syncful, Hybrid
//	maxBytesPerTile              1 to 64000; default: 35000
//	topology                     auto, rung-ring-2, rung-ring-4, rung-ring-8, ring-on-line, peripheral-ring
//	link                         auto-link, ipu-link, gw-link
//	method                       auto, broadcast, clockwise_ring, anticlockwise_ring, bidirectional_ring_pair,
//	                             meet_in_middle_ring, quad_directional_ring, direct, recursive_doubling, native,
//	                             halving_doubling, circulant, bruck, pat, binomial_tree, knomial_4_tree,
//	                             double_binary_tree, torus_2d, torus_3d, hierarchical_8, swing, swing_2d
//	strict                       false, true
//	syncful.useOptimisedLayout   true, false
//	syncful.maxBroadcastSize     0 or more; default: what was measured
//	reproducible                 false, true
//	tuning                       a file, or with a line break the table itself; default: the machine's
//	ipusPerRank                  1 or more; default: 1
//	cacheBytes                   1 or more; default: what the machine has
//	sharedAlloc                  true, false
//	checkFinite                  false, true
//	checkEqual                   0 or more; default: never
//
// A key that is not there leaves its option at the default. Any other key or value is an *OptionError, which names the
// closest and lists those that there are. Both keys for the implementation may be given if they agree. The first use of
// useSynclessCollectives in a process logs a warning by package slog. Options.Map is the inverse;
// docs/design/options.md says what each option does.
//
// # Environment
//
// Run and New read the environment variable GCL_OPTIONS, a JSON object of the same keys and values. What it says takes
// the place of what the program says, key by key, there and in Comm.With. An *OptionError about such a value names the
// variable.
func ParseOptions(text map[string]string) (Options, error) {
	return Options{}.override(text)
}

// Map returns the options as text, such that ParseOptions gives them back: in the new spellings, without what has its
// default, and without Trace. A value that is out of range is an *OptionError.
func (o Options) Map() (map[string]string, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	text := map[string]string{}
	for _, row := range optionRows {
		if value, usual := row.value.text(&o); !usual && row.instead == "" {
			text[row.key] = value
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

// wantObject ends the errors about a text that is no JSON object.
const wantObject = "want one JSON object, as in {\"method\": \"broadcast\"}"

// parseObject reads a JSON object of strings, booleans and numbers.
func parseObject(data []byte) (map[string]string, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	notObject := newError("options: " + wantObject)
	broken := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the text ends inside the object")
		}
		return errorf("options: after byte %d of %d: %w: %s", d.InputOffset(), len(data), err, wantObject)
	}
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, notObject
	}
	text := map[string]string{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, broken(err)
		}
		token, err := d.Token()
		if err != nil {
			return nil, broken(err)
		}
		option := OptionError{Option: key.(string), Value: fmt.Sprint(token)} // every key is a string
		switch token.(type) {
		case nil, json.Delim: // null, or the beginning of an object or array
			option.Value = strings.Replace(option.Value, "<nil>", "null", 1)
			option.Reason = "want a string, true, false or a number"
			return nil, &option
		}
		if other, twice := text[option.Option]; twice {
			option.Reason = "given twice, first as " + other
			return nil, &option
		}
		text[option.Option] = option.Value
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, broken(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, notObject
	}
	return text, nil
}

// override returns the options with what text says in place of their own. Where there are several mistakes, the error
// names an unknown key, else the key of the first row.
func (o Options) override(text map[string]string) (Options, error) {
	for _, key := range slices.Sorted(maps.Keys(text)) {
		if optionBy(key) == nil {
			return Options{}, &OptionError{Option: key, Value: text[key],
				Reason: "no such option" + wantOne(key, optionKeys())}
		}
	}
	for _, row := range optionRows {
		value, given := text[row.key]
		if !given {
			continue
		}
		before := o
		if !row.value.set(&o, value) {
			line, _, more := strings.Cut(value, "\n")
			if more {
				line += "..."
			}
			return Options{}, &OptionError{Option: row.key, Value: line, Reason: row.value.wants(value)}
		}
		// The row of the key that replaces this one stands before this one.
		if other, both := text[row.instead]; both && o != before {
			reason := fmt.Sprintf("contradicts %s=%s; leave it out, it is deprecated", row.instead, other)
			return Options{}, &OptionError{Option: row.key, Value: value, Reason: reason}
		}
	}
	for _, row := range optionRows {
		if value, given := text[row.key]; given && row.instead != "" {
			row.warn(value, o)
		}
	}
	return o, nil
}

// warn logs that a deprecated key was used, once in a process.
func (r *optionRow) warn(value string, o Options) {
	if _, warned := warnedOptions.LoadOrStore(r.key, true); warned {
		return
	}
	instead, _ := optionBy(r.instead).value.text(&o)
	slog.Warn("gcl: option "+r.key+" is deprecated, use "+r.instead, "value", value, "instead", instead)
}

// warnedOptions has the keys that were warned of.
var warnedOptions sync.Map
