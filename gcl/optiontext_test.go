package gcl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
)

// optionValues is every key, with each value that it takes as a name and some of those that it takes as a number, and
// what they mean.
var optionValues = map[string]map[string]gcl.Options{
	"collectiveImplementation": {
		"Auto": {}, "Syncless": {Implementation: gcl.Syncless}, "Syncful": {Implementation: gcl.Syncful},
		"Hybrid": {Implementation: gcl.Hybrid},
		"auto":   {}, "hybrid": {Implementation: gcl.Hybrid},
	},
	"useSynclessCollectives": {
		"auto": {}, "true": {Implementation: gcl.Syncless}, "false": {Implementation: gcl.Syncful},
		"hybrid":   {Implementation: gcl.Hybrid},
		"Syncless": {Implementation: gcl.Syncless}, "Syncful": {Implementation: gcl.Syncful},
		"Hybrid": {Implementation: gcl.Hybrid},
	},
	"maxBytesPerTile": {"1": {MaxBytesPerTile: 1}, "35000": {MaxBytesPerTile: 35000},
		"64000": {MaxBytesPerTile: 64000}},
	"topology": {
		"auto": {}, "rung-ring-2": {Topology: topology.RungRing2}, "rung-ring-4": {Topology: topology.RungRing4},
		"rung-ring-8": {Topology: topology.RungRing8}, "ring-on-line": {Topology: topology.RingOnLine},
		"peripheral-ring": {Topology: topology.PeripheralRing},
	},
	"link": {"auto-link": {}, "ipu-link": {Link: gcl.IPULink}, "gw-link": {Link: gcl.GWLink}},
	"method": {
		"auto": {}, "broadcast": {Method: methods.SendToAll}, "clockwise_ring": {Method: methods.ClockwiseRing},
		"anticlockwise_ring":      {Method: methods.AnticlockwiseRing},
		"bidirectional_ring_pair": {Method: methods.BidirectionalRingPair},
		"meet_in_middle_ring":     {Method: methods.MeetInMiddleRing},
		"quad_directional_ring":   {Method: methods.QuadDirectionalRing},
		"direct":                  {Method: methods.Direct}, "recursive_doubling": {Method: methods.RecursiveDoubling},
	},
	"syncful.useOptimisedLayout": {"true": {}, "false": {StageFragments: true}},
	"syncful.maxBroadcastSize": {"0": {MaxBroadcastSize: gcl.NoBroadcast}, "1": {MaxBroadcastSize: 1},
		"2048": {MaxBroadcastSize: 2048}},
	"reproducible": {"true": {Reproducible: true}, "false": {}},
	"ipusPerRank":  {"1": {IPUsPerRank: 1}, "4": {IPUsPerRank: 4}},
	"cacheBytes":   {"1": {CacheBytes: 1}, "67108864": {CacheBytes: 64 << 20}},
	"sharedAlloc":  {"true": {}, "false": {PrivateAlloc: true}},
	"checkFinite":  {"false": {}, "true": {CheckFinite: true}},
	"checkEqual":   {"0": {}, "1": {CheckEqual: 1}, "1000": {CheckEqual: 1000}},
}

func TestParseOptions(t *testing.T) {
	for key, values := range optionValues {
		for value, want := range values {
			if got, err := gcl.ParseOptions(map[string]string{key: value}); err != nil || got != want {
				t.Errorf("%s=%s: %+v, %v, want %+v", key, value, got, err, want)
			}
		}
	}
	for _, none := range []map[string]string{nil, {}} {
		if got, err := gcl.ParseOptions(none); err != nil || got != (gcl.Options{}) {
			t.Errorf("%v: %+v, %v, want the defaults", none, got, err)
		}
	}
	got, err := gcl.ParseOptions(map[string]string{
		"collectiveImplementation": "Syncful", "maxBytesPerTile": "20000",
		"topology": "ring-on-line", "link": "gw-link", "method": "direct",
		"syncful.useOptimisedLayout": "false", "syncful.maxBroadcastSize": "4096",
		"reproducible": "true", "ipusPerRank": "2",
		"cacheBytes": "1000000", "sharedAlloc": "false", "checkFinite": "true", "checkEqual": "7",
	})
	want := gcl.Options{
		Implementation: gcl.Syncful, MaxBytesPerTile: 20000, Topology: topology.RingOnLine, Link: gcl.GWLink,
		Method:         methods.Direct,
		StageFragments: true, MaxBroadcastSize: 4096, Reproducible: true, IPUsPerRank: 2, CacheBytes: 1000000,
		PrivateAlloc: true, CheckFinite: true, CheckEqual: 7,
	}
	if err != nil || got != want {
		t.Errorf("all together: %+v, %v, want %+v", got, err, want)
	}
}

func TestParseOptionsErrors(t *testing.T) {
	keys := []string{"collectiveImplementation", "useSynclessCollectives",
		"maxBytesPerTile", "topology", "link", "method",
		"syncful.useOptimisedLayout", "syncful.maxBroadcastSize", "reproducible", "ipusPerRank", "cacheBytes",
		"sharedAlloc", "checkFinite", "checkEqual"}
	for _, x := range []struct {
		key, value string
		says       []string
	}{
		{"metod", "broadcast", append(keys, "no such option, the closest is method; want one of ")},
		{"Method", "broadcast", []string{"no such option, the closest is method; want one of "}}, // the case counts
		{"maxBroadcastSize", "1", []string{"the closest is syncful.maxBroadcastSize; want one of "}},
		{"useOptimizedLayout", "true", []string{"the closest is syncful.useOptimisedLayout; want one of "}},
		{"", "", []string{"the closest is "}},
		{"method", "clockwise", []string{"no such value, the closest is clockwise_ring; want one of auto, broadcast, " +
			"clockwise_ring, anticlockwise_ring, " +
			"bidirectional_ring_pair, meet_in_middle_ring, quad_directional_ring, direct, recursive_doubling"}},
		{"method", "Auto", []string{"the closest is auto; want one of "}},
		{"method", "", []string{"no such value"}},
		{"collectiveImplementation", "syncful", []string{"the closest is Syncful; want one of Auto, Syncless, Syncful, Hybrid, auto, hybrid"}},
		{"collectiveImplementation", "true", []string{"no such value"}}, // of the other key
		{"useSynclessCollectives", "Auto", []string{"the closest is auto; want one of true, false, hybrid, auto, Syncless, Syncful, Hybrid"}},
		{"topology", "rung-ring-3", []string{"the closest is rung-ring-2; want one of auto, rung-ring-2, rung-ring-4, rung-ring-8, ring-on-line, peripheral-ring"}},
		{"link", "ipulink", []string{"the closest is ipu-link; want one of auto-link, ipu-link, gw-link"}},
		{"syncful.useOptimisedLayout", "1", []string{"no such value", "want one of true, false"}},
		{"reproducible", "True", []string{"the closest is true; want one of true, false"}},
		{"maxBytesPerTile", "64001", []string{"want a whole number from 1 to 64000"}},
		{"maxBytesPerTile", "0", []string{"want a whole number from 1 to 64000"}},
		{"maxBytesPerTile", "-1", []string{"want a whole number from 1 to 64000"}},
		{"maxBytesPerTile", "35000.0", []string{"want a whole number from 1 to 64000"}},
		{"maxBytesPerTile", "", []string{"want a whole number from 1 to 64000"}},
		{"syncful.maxBroadcastSize", "-1", []string{"want a whole number from 0 to "}},
		{"syncful.maxBroadcastSize", "9223372036854775808", []string{"want a whole number from 0 to "}},
		{"ipusPerRank", "0", []string{"want a whole number from 1 to "}},
		{"cacheBytes", "0", []string{"want a whole number from 1 to "}},
		{"checkEqual", "-1", []string{"want a whole number from 0 to "}},
		{"checkEqual", "true", []string{"want a whole number from 0 to "}},
		{"checkFinite", "1", []string{"want one of false, true"}},
		{"cacheBytes", "32M", []string{"want a whole number from 1 to "}},
	} {
		got, err := gcl.ParseOptions(map[string]string{x.key: x.value})
		var option *gcl.OptionError
		if !errors.As(err, &option) || option.Option != x.key || option.Value != x.value || got != (gcl.Options{}) {
			t.Errorf("%s=%s: %+v, %v", x.key, x.value, got, err)
			continue
		}
		for _, want := range x.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s=%s: %q does not say %q", x.key, x.value, err, want)
			}
		}
	}
	// One bad option spoils the good ones, and of several it is always the same that is named.
	got, err := gcl.ParseOptions(map[string]string{"method": "direct", "b": "", "a": "", "c": ""})
	var option *gcl.OptionError
	if !errors.As(err, &option) || option.Option != "a" || got != (gcl.Options{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// logged is what is logged while body runs.
func logged(t *testing.T, body func()) string {
	t.Helper()
	var text bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	body()
	return text.String()
}

func TestUseSynclessCollectivesWarnsOnce(t *testing.T) {
	defer gcl.ForgetWarnings()
	parse := func(text map[string]string, works bool) func() {
		return func() {
			if _, err := gcl.ParseOptions(text); (err == nil) != works {
				t.Errorf("%v: error %v", text, err)
			}
		}
	}
	gcl.ForgetWarnings()
	if text := logged(t, parse(map[string]string{"collectiveImplementation": "hybrid"}, true)); text != "" {
		t.Errorf("another key: %q", text)
	}
	if text := logged(t, parse(map[string]string{"useSynclessCollectives": "maybe"}, false)); text != "" {
		t.Errorf("a value that does not parse: %q", text)
	}
	for i, values := range []string{"true", "true", "hybrid"} {
		text := logged(t, parse(map[string]string{"useSynclessCollectives": values}, true))
		if i > 0 && text != "" {
			t.Errorf("warned again: %q", text)
		}
		for _, want := range []string{"level=WARN",
			"useSynclessCollectives is deprecated, use collectiveImplementation", "value=true", "instead=Syncless"} {
			if i == 0 && (strings.Count(text, "\n") != 1 || !strings.Contains(text, want)) {
				t.Errorf("the first time: %q, want a line with %q", text, want)
			}
		}
	}
}

// Both keys of the implementation may be given when they say the same.
func TestBothImplementationKeys(t *testing.T) {
	for _, agree := range [][2]string{{"Syncless", "true"}, {"Syncful", "false"}, {"hybrid", "hybrid"},
		{"Auto", "auto"}} {
		if _, err := gcl.ParseOptions(map[string]string{"collectiveImplementation": agree[0],
			"useSynclessCollectives": agree[1]}); err != nil {
			t.Errorf("%v: %v", agree, err)
		}
	}
	for _, differ := range [][2]string{{"Syncless", "false"}, {"Auto", "true"}, {"Hybrid", "auto"}} {
		got, err := gcl.ParseOptions(map[string]string{"collectiveImplementation": differ[0],
			"useSynclessCollectives": differ[1]})
		var option *gcl.OptionError
		if !errors.As(err, &option) || option.Option != "useSynclessCollectives" || got != (gcl.Options{}) ||
			!strings.Contains(err.Error(), "contradicts collectiveImplementation="+differ[0]) {
			t.Errorf("%v: %+v, %v", differ, got, err)
		}
	}
}

// allOptions are options of which each field has each of its names, or a few numbers, others being default; and some
// mixtures.
func allOptions() []gcl.Options {
	out := []gcl.Options{{}, {
		Implementation: gcl.Hybrid, MaxBytesPerTile: 1, Topology: topology.RungRing8, Link: gcl.IPULink,
		Method:         methods.SendToAll,
		StageFragments: true, MaxBroadcastSize: gcl.NoBroadcast, Reproducible: true, IPUsPerRank: math.MaxInt,
		CheckFinite: true, CheckEqual: math.MaxInt,
	}, {MaxBytesPerTile: gcl.DefaultMaxBytesPerTile}, {MaxBytesPerTile: gcl.MaxBytesPerTileLimit},
		{MaxBroadcastSize: math.MaxInt}}
	for _, values := range optionValues {
		out = slices.AppendSeq(out, maps.Values(values))
	}
	return out
}

// roundTrip fails unless options survive both text forms.
func roundTrip(t *testing.T, o gcl.Options) {
	t.Helper()
	text, err := o.Map()
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	if _, old := text["useSynclessCollectives"]; old {
		t.Fatalf("%+v became %v, with a deprecated key", o, text)
	}
	if back, err := gcl.ParseOptions(text); err != nil || back != o {
		t.Fatalf("%+v became %v, and that %+v, %v", o, text, back, err)
	}
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	var back gcl.Options
	if err := json.Unmarshal(data, &back); err != nil || back != o {
		t.Fatalf("%+v became %s, and that %+v, %v", o, data, back, err)
	}
	var m map[string]string
	if err := json.Unmarshal(data, &m); err != nil || !maps.Equal(m, text) {
		t.Fatalf("%+v is %v and %s, %v", o, text, data, err)
	}
}

func TestOptionsRoundTrip(t *testing.T) {
	for _, o := range allOptions() {
		roundTrip(t, o)
	}
	data, err := json.Marshal(gcl.Options{Method: methods.MeetInMiddleRing, MaxBroadcastSize: gcl.NoBroadcast,
		StageFragments: true})
	if want := `{"method":"meet_in_middle_ring","syncful.maxBroadcastSize":"0","syncful.useOptimisedLayout":"false"}`; err != nil || string(data) != want {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
	if text, err := (gcl.Options{}).Map(); err != nil || len(text) != 0 {
		t.Errorf("the defaults are %v, %v", text, err)
	}
}

// Every value that there is has a name among the texts of its option.
func TestEveryNameIsAnOption(t *testing.T) {
	type name interface{ MarshalText() ([]byte, error) }
	for key, of := range map[string]func(uint8) (name, gcl.Options){
		"collectiveImplementation": func(i uint8) (name, gcl.Options) {
			return gcl.Implementation(i), gcl.Options{Implementation: gcl.Implementation(i)}
		},
		"topology": func(i uint8) (name, gcl.Options) {
			return topology.RingName(i), gcl.Options{Topology: topology.RingName(i)}
		},
		"link": func(i uint8) (name, gcl.Options) { return gcl.Link(i), gcl.Options{Link: gcl.Link(i)} },
		"method": func(i uint8) (name, gcl.Options) {
			return methods.Method(i), gcl.Options{Method: methods.Method(i)}
		},
	} {
		for i := range uint8(255) {
			value, want := of(i)
			text, err := value.MarshalText()
			if err != nil {
				break
			}
			roundTrip(t, want)
			if o, err := gcl.ParseOptions(map[string]string{key: string(text)}); err != nil || o != want {
				t.Errorf("%s=%s: %+v, %v, want %+v", key, text, o, err, want)
			}
			if m, _ := want.Map(); i > 0 && m[key] != string(text) {
				t.Errorf("%+v has the text %v, want %s=%s", want, m, key, text)
			}
		}
	}
}

// A Trace has no text, and stays when text is read into the options that have it.
func TestTraceHasNoText(t *testing.T) {
	trace := &gcl.Trace{}
	o := gcl.Options{Method: methods.Direct, Trace: trace}
	data, err := json.Marshal(o)
	if want := `{"method":"direct"}`; err != nil || string(data) != want {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
	if err := json.Unmarshal([]byte(`{"method":"auto"}`), &o); err != nil || o != (gcl.Options{Trace: trace}) {
		t.Errorf("%+v, %v", o, err)
	}
}

// The table in docs/design/options.md is made here. After a change: go test ./gcl -run TestOptionsPage -update, and
// read it.
func TestOptionsPage(t *testing.T) {
	const file, begin, end = "../docs/design/options.md", "<!-- table: begin -->\n", "<!-- table: end -->\n"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(page), begin)
	old, after, ok2 := strings.Cut(rest, end)
	table := gcl.OptionsTable()
	switch {
	case !ok1 || !ok2:
		t.Fatalf("%s has no place for the table", file)
	case old == table:
	case !*update:
		t.Errorf("the table in %s is not what the code gives:\n%s", file, table)
	default:
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for key, values := range optionValues {
		if !strings.Contains(table, "`"+key+"`") {
			t.Errorf("there is no `%s`", key)
		}
		for value := range values {
			if _, err := strconv.Atoi(value); err != nil && !strings.Contains(table, "`"+value+"`") {
				t.Errorf("%s: there is no `%s`", key, value)
			}
		}
	}
}

// The comment of ParseOptions has the rows.
func TestOptionsComment(t *testing.T) {
	source, err := os.ReadFile("optiontext.go")
	if err != nil {
		t.Fatal(err)
	}
	if want := gcl.OptionsComment(); !strings.Contains(string(source), "\n//\n"+want+"//\n") {
		t.Errorf("the comment of ParseOptions does not have\n%s", want)
	}
}

// Every field of Options but Trace has a row, and one key that is written.
func TestEveryOptionHasARow(t *testing.T) {
	var fields []string
	for f := range reflect.TypeFor[gcl.Options]().Fields() {
		if f.Name != "Trace" {
			fields = append(fields, f.Name)
		}
	}
	rows := gcl.OptionFields()
	slices.Sort(fields)
	slices.Sort(rows)
	if !slices.Equal(fields, rows) {
		t.Errorf("the fields %v have the rows %v", fields, rows)
	}
}

// Members must agree on an option where its row says so, and then only.
func TestAgreedOptions(t *testing.T) {
	machine, err := topology.New(topology.Config{Replicas: []int{1}, IPUsPerReplica: 4})
	if err != nil {
		t.Fatal(err)
	}
	agreed := map[string]bool{"Implementation": true, "MaxBytesPerTile": true, "StageFragments": true,
		"Reproducible": true, "Tuning": true, "CheckEqual": true}
	replicas(t, 1, func(_ context.Context, c *gcl.Comm) error {
		plain := gcl.DigestOf(withOptions(c, gcl.Options{}))
		for field, o := range map[string]gcl.Options{
			"Method": {Method: methods.Direct}, "Implementation": {Implementation: gcl.Syncful},
			"Reproducible": {Reproducible: true},
			"IPUsPerRank":  {IPUsPerRank: 2}, "Link": {Link: gcl.IPULink}, "MaxBytesPerTile": {MaxBytesPerTile: 1},
			"StageFragments":   {StageFragments: true},
			"MaxBroadcastSize": {MaxBroadcastSize: 1}, "CacheBytes": {CacheBytes: 1}, "PrivateAlloc": {PrivateAlloc: true},
			"Tuning": {Tuning: &methods.Rules{}}, "CheckEqual": {CheckEqual: 1}, "CheckFinite": {CheckFinite: true},
		} {
			if differs := gcl.DigestOf(withOptions(c, o)) != plain; differs != agreed[field] {
				t.Errorf("%s: the fingerprint differs: %v", field, differs)
			}
			if slices.Contains(gcl.AgreedFields(), field) != agreed[field] {
				t.Errorf("%s: the text of a mismatch does not fit", field)
			}
		}
		same := gcl.DigestOf(withOptions(c, gcl.Options{MaxBytesPerTile: gcl.DefaultMaxBytesPerTile}))
		if same != plain {
			t.Error("the default that is written out differs from the one that is not")
		}
		return nil
	}, gcl.WithTopology(machine))
}

// What is out of range has no text.
func TestOptionsOutOfRange(t *testing.T) {
	for name, o := range map[string]gcl.Options{
		"Method": {Method: 99}, "Implementation": {Implementation: 99}, "Topology": {Topology: 99}, "Link": {Link: 3},
		"MaxBytesPerTile": {MaxBytesPerTile: 64001}, "MaxBroadcastSize": {MaxBroadcastSize: -2},
		"IPUsPerRank": {IPUsPerRank: -1},
		"CacheBytes":  {CacheBytes: -1},
		"CheckEqual":  {CheckEqual: -1},
	} {
		var option *gcl.OptionError
		if text, err := o.Map(); !errors.As(err, &option) || option.Option != name || text != nil {
			t.Errorf("%s: %v, %v", name, text, err)
		}
		if data, err := json.Marshal(o); !errors.As(err, &option) || option.Option != name {
			t.Errorf("%s: %s, %v", name, data, err)
		}
	}
	if _, err := (gcl.Options{MaxBytesPerTile: -1}).Map(); err == nil {
		t.Error("MaxBytesPerTile below 0: no error")
	}
}

func TestOptionsJSON(t *testing.T) {
	before := gcl.Options{Method: methods.Direct, MaxBytesPerTile: 5, StageFragments: true}
	for text, want := range map[string]gcl.Options{
		`{}`:                     before,
		` null `:                 before,
		`{"method":"broadcast"}`: {Method: methods.SendToAll, MaxBytesPerTile: 5, StageFragments: true},
		`{"method":"auto", "maxBytesPerTile": 64000, "syncful.useOptimisedLayout": true, "reproducible": true}`: {MaxBytesPerTile: 64000, Reproducible: true},
	} {
		o := before
		if err := json.Unmarshal([]byte(text), &o); err != nil || o != want {
			t.Errorf("%s: %+v, %v, want %+v", text, o, err, want)
		}
	}
	for text, want := range map[string]string{
		`[]`:                                  "want one JSON object",
		`"method"`:                            "want one JSON object",
		`{"method":null}`:                     "option method=null: want a string, true, false or a number",
		`{"method":{"name":"broadcast"}}`:     "option method={: want a string, true, false or a number",
		`{"method":["broadcast"]}`:            "option method=[: want a string",
		`{"method":"direct","method":"auto"}`: "option method=auto: given twice, first as direct",
		`{"maxBytesPerTile":1e3}`:             "option maxBytesPerTile=1e3: want a whole number from 1 to 64000",
		`{"link":"gw-link","methods":"auto"}`: "option methods=auto: no such option, the closest is method; want " +
			"one of ",
		`{"collectiveImplementation":"syncless"}`: "the closest is Syncless; want one of ",
	} {
		o := before
		if err := o.UnmarshalJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || o != before {
			t.Errorf("%s: %+v, %v, want %q", text, o, err, want)
		}
	}
	for _, text := range []string{"", "{", `{"method"`, `{"method":`,
		`{"method":"auto"`, `{"method" "auto"}`, `{"method":"auto",}`, `{"method":"auto"} {}`, `{} x`, `{"method":x}`} {
		o := before
		if err := o.UnmarshalJSON([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "gcl: options: ") ||
			o != before {
			t.Errorf("%s: %+v, %v", text, o, err)
		}
	}
}

// FuzzParseOptions: what parses survives both text forms; what does not is an *OptionError.
func FuzzParseOptions(f *testing.F) {
	for key, values := range optionValues {
		for value := range values {
			f.Add(key, value, "method", "direct")
		}
	}
	f.Add("collectiveImplementation", "Syncful", "useSynclessCollectives", "true")
	f.Add("maxBytesPerTile", "+5", "syncful.maxBroadcastSize", "-0")
	f.Fuzz(func(t *testing.T, key1, value1, key2, value2 string) {
		o, err := gcl.ParseOptions(map[string]string{key1: value1, key2: value2})
		if err == nil {
			roundTrip(t, o)
			return
		}
		var option *gcl.OptionError
		if !errors.As(err, &option) || o != (gcl.Options{}) {
			t.Errorf("%+v, %v", o, err)
		}
	})
}

// FuzzOptions: every options that are in range survive both text forms, and no others have any.
func FuzzOptions(f *testing.F) {
	f.Add(uint8(0), uint8(0), uint8(0), uint8(0), 0, 0, 0, false, false)
	f.Add(uint8(8), uint8(3), uint8(5), uint8(2), 64000, -1, 1, true, true)
	f.Add(uint8(9), uint8(0), uint8(0), uint8(0), 0, 0, 3, false, false)
	f.Add(uint8(10), uint8(4), uint8(6), uint8(3), 64001, -2, -1, true, false)
	f.Fuzz(func(t *testing.T, method, implementation, ring, link uint8, bytesPerTile, broadcastSize, ipus int, stage,
		reproducible bool) {
		o := gcl.Options{
			Method: methods.Method(method), Implementation: gcl.Implementation(implementation),
			Topology: topology.RingName(ring), Link: gcl.Link(link),
			MaxBytesPerTile: bytesPerTile, MaxBroadcastSize: broadcastSize, IPUsPerRank: ipus, StageFragments: stage,
			Reproducible: reproducible,
		}
		inRange := int(method) < len(methods.Values()) &&
			implementation <= 3 && ring <= 5 && link <= 2 && bytesPerTile >= 0 &&
			bytesPerTile <= 64000 && broadcastSize >= -1 && ipus >= 0
		if _, err := o.Map(); (err == nil) != inRange {
			t.Fatalf("%+v: %v", o, err)
		}
		if inRange {
			roundTrip(t, o)
		}
	})
}

// FuzzOptionsJSON: any bytes are options that survive, or an error that leaves the options as they were.
func FuzzOptionsJSON(f *testing.F) {
	for _, text := range []string{`{}`, `null`, `{"method":"direct"}`, `{"maxBytesPerTile":64000,"reproducible":true}`,
		`{"method":null}`, `{"a":{"b":[1]}}`, `{"method":"auto"}}`, "{\"\xff\":\"\"}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := gcl.Options{Method: methods.Direct, MaxBytesPerTile: 5}
		o := before
		if err := o.UnmarshalJSON(data); err != nil {
			if o != before || !strings.HasPrefix(err.Error(), "gcl: option") {
				t.Errorf("%q: %+v, %v", data, o, err)
			}
			return
		}
		roundTrip(t, o)
	})
}
