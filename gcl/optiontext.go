package gcl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gogcl.dev/internal/closest"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
)

// ParseOptions returns the options of GCL's keys and values:
//
//	collectiveImplementation    Auto, Syncless, Syncful, Hybrid; deprecated: auto, hybrid
//	useSynclessCollectives      deprecated: true (Syncless), false (Syncful), hybrid, auto, Syncless, Syncful, Hybrid
//	maxBytesPerTile             1 to 64000; default 35000
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
//	cacheBytes                  1 or more; default: the machine's last-level cache
//
// A key that is not there leaves its option at the default. Any other key or value is an *OptionError, which names the
// closest and lists those that there are. Both keys for the implementation may be given if they agree. The first use of
// useSynclessCollectives in a process logs a warning by package slog. Options.Map is the inverse; docs/options.md says
// what each option does.
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
	for _, t := range optionTexts {
		if value := t.text(o); value != "" && t.key != synclessKey {
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

// wantObject ends the errors about a text that is no JSON object.
const wantObject = "want one JSON object, as in {\"method\": \"broadcast\"}"

// parseObject reads a JSON object of strings, booleans and numbers.
func parseObject(data []byte) (map[string]string, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	notObject := errors.New("gcl: options: " + wantObject)
	broken := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the text ends inside the object")
		}
		return fmt.Errorf("gcl: options: after byte %d of %d: %w: %s", d.InputOffset(), len(data), err, wantObject)
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

// override returns the options with what text says in place of their own.
func (o Options) override(text map[string]string) (Options, error) {
	for _, key := range slices.Sorted(maps.Keys(text)) {
		value, before := text[key], o.Implementation
		refuse := func(reason string) (Options, error) {
			return Options{}, &OptionError{Option: key, Value: value, Reason: reason}
		}
		i := slices.IndexFunc(optionTexts, func(t optionText) bool { return t.key == key })
		if i < 0 {
			keys := make([]string, len(optionTexts))
			for i, t := range optionTexts {
				keys[i] = t.key
			}
			return refuse("no such option" + wantOne(key, keys))
		}
		if t := &optionTexts[i]; !t.set(&o, value) {
			return refuse(t.wants(value))
		}
		// The other key comes before this one.
		if other, both := text[implementationKey]; both && key == synclessKey && o.Implementation != before {
			return refuse(fmt.Sprintf("contradicts %s=%s; leave it out, it is deprecated", implementationKey, other))
		}
	}
	if value, deprecated := text[synclessKey]; deprecated {
		warnSyncless.Do(func() {
			slog.Warn("gcl: option "+synclessKey+" is deprecated, use "+implementationKey, "value", value, "instead", o.Implementation)
		})
	}
	return o, nil
}

// warnSyncless sees to it that a process is warned once.
var warnSyncless sync.Once

// The two keys for the implementation.
const (
	implementationKey = "collectiveImplementation"
	synclessKey       = "useSynclessCollectives"
)

// optionText is one option as text.
type optionText struct {
	key, field string   // field is its name in Options
	values     []string // nil: it is a number
	low, high  int      // of a number

	set  func(o *Options, value string) bool // false: there is no such value, and o is as it was
	text func(o Options) string              // "" for the default
}

// optionTexts lists the options: GCL's in the order of its documentation, then ours.
var optionTexts = []optionText{
	choice(implementationKey, "Implementation", func(o *Options) *Implementation { return &o.Implementation },
		append(named(AutoImplementation, Syncless, Syncful, Hybrid), name[Implementation]{"auto", AutoImplementation}, name[Implementation]{"hybrid", Hybrid})),
	choice(synclessKey, "Implementation", func(o *Options) *Implementation { return &o.Implementation },
		append([]name[Implementation]{{"true", Syncless}, {"false", Syncful}, {"hybrid", Hybrid}, {"auto", AutoImplementation}}, named(Syncless, Syncful, Hybrid)...)),
	number("maxBytesPerTile", "MaxBytesPerTile", 1, MaxBytesPerTileLimit, func(o *Options) *int { return &o.MaxBytesPerTile }),
	choice("topology", "Topology", func(o *Options) *topology.RingName { return &o.Topology },
		named(topology.Auto, topology.RungRing2, topology.RungRing4, topology.RungRing8, topology.RingOnLine, topology.PeripheralRing)),
	choice("link", "Link", func(o *Options) *Link { return &o.Link }, named(AutoLink, IPULink, GWLink)),
	choice("method", "Method", func(o *Options) *methods.Method { return &o.Method },
		named(append([]methods.Method{methods.Auto}, methods.All()...)...)),
	choice("syncful.useOptimisedLayout", "StageFragments", func(o *Options) *bool { return &o.StageFragments },
		[]name[bool]{{"true", false}, {"false", true}}),
	number("syncful.maxBroadcastSize", "MaxBroadcastSize", 0, math.MaxInt, func(o *Options) *int { return &o.MaxBroadcastSize }),
	choice("reproducible", "Reproducible", func(o *Options) *bool { return &o.Reproducible },
		[]name[bool]{{"true", true}, {"false", false}}),
	number("ipusPerRank", "IPUsPerRank", 1, math.MaxInt, func(o *Options) *int { return &o.IPUsPerRank }),
	number("cacheBytes", "CacheBytes", 1, math.MaxInt, func(o *Options) *int { return &o.CacheBytes }),
}

// wants says what is wrong with a value, and which would be right.
func (t *optionText) wants(value string) string {
	if t.values == nil {
		return fmt.Sprintf("want a whole number from %d to %d", t.low, t.high)
	}
	return "no such value" + wantOne(value, t.values)
}

// wantOne says which words there are in place of one that there is not.
func wantOne(word string, words []string) string {
	return fmt.Sprintf(", the closest is %s; want one of %s", closest.Of(word, words), strings.Join(words, ", "))
}

// name is a value that an option has by name.
type name[T any] struct {
	name  string
	value T
}

// named lists values by their own names.
func named[T fmt.Stringer](values ...T) []name[T] {
	out := make([]name[T], len(values))
	for i, v := range values {
		out[i] = name[T]{v.String(), v}
	}
	return out
}

// choice is an option whose values have names, of which text has the first. The zero value is the default.
func choice[T comparable](key, field string, at func(*Options) *T, names []name[T]) optionText {
	values := make([]string, len(names))
	for i, n := range names {
		values[i] = n.name
	}
	return optionText{
		key: key, field: field, values: values,
		set: func(o *Options, value string) bool {
			i := slices.Index(values, value)
			if i >= 0 {
				*at(o) = names[i].value
			}
			return i >= 0
		},
		text: func(o Options) string {
			var usual T
			value := *at(&o)
			if value == usual {
				return ""
			}
			return values[slices.IndexFunc(names, func(n name[T]) bool { return n.value == value })]
		},
	}
}

// number is an option that is a number. Its field is 0 when it is not set, and -1 for a 0 that is, as NoBroadcast.
func number(key, field string, low, high int, at func(*Options) *int) optionText {
	return optionText{
		key: key, field: field, low: low, high: high,
		set: func(o *Options, value string) bool {
			n, err := strconv.Atoi(value)
			if err != nil || n < low || n > high {
				return false
			}
			if n == 0 {
				n = -1
			}
			*at(o) = n
			return true
		},
		text: func(o Options) string {
			switch n := *at(&o); n {
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
