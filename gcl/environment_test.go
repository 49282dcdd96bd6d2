package gcl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
)

// GCL_OPTIONS overrides what Run and With are given, key by key, and is read when the replicas are started.
func TestEnvironmentOverrides(t *testing.T) {
	trace := &gcl.Trace{}
	given := gcl.Options{Method: methods.Direct, IPUsPerRank: 2, Implementation: gcl.Syncless, Trace: trace}
	t.Setenv("GCL_OPTIONS", `{"method": "clockwise_ring", "collectiveImplementation": "Syncful"}`)
	want := gcl.Options{Method: methods.ClockwiseRing, IPUsPerRank: 2, Implementation: gcl.Syncful, Trace: trace}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 0 {
			if err := os.Setenv("GCL_OPTIONS", "no longer looked at"); err != nil {
				return err
			}
		}
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		for name, have := range map[string]gcl.Options{
			"Run": c.Options(), "With": withOptions(c, given).Options(), "Dup": dup.Options(),
			"With after Dup": withOptions(dup, given).Options(), "Group": grouped(c, commgroup.Group{}).Options(),
		} {
			if have != want {
				return fmt.Errorf("%s: %+v, want %+v", name, have, want)
			}
		}
		if o := withOptions(c, gcl.Options{Reproducible: true}).Options(); o != (gcl.Options{Reproducible: true,
			Method: methods.ClockwiseRing, Implementation: gcl.Syncful}) {
			return fmt.Errorf("With another option: %+v", o)
		}
		_, err = c.With(gcl.Options{MaxBytesPerTile: -1}) // which no override makes right
		if err == nil || strings.Contains(err.Error(), "GCL_OPTIONS") {
			return fmt.Errorf("a bad option: %v", err)
		}
		return dup.Close()
	}, gcl.WithOptions(given))

	t.Setenv("GCL_OPTIONS", "")
	replicas(t, 1, func(_ context.Context, c *gcl.Comm) error {
		if c.Options() != given {
			return fmt.Errorf("empty: %+v, want %+v", c.Options(), given)
		}
		return nil
	}, gcl.WithOptions(given))
}

// Every key and value reaches a Comm made by New on a machine that it fits.
func TestEnvironmentReachesNew(t *testing.T) {
	ipus := map[string]int{"rung-ring-2": 2, "rung-ring-4": 4, "rung-ring-8": 8, "ring-on-line": 2}
	for key, values := range optionValues {
		for value, want := range values {
			machine, err := topology.New(topology.Config{Replicas: []int{1}, IPUsPerReplica: ipus[value]})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(map[string]string{key: value})
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("GCL_OPTIONS", string(text))
			_, endpoints := counted(t, 1)
			c, err := gcl.New(endpoints[0], gcl.WithTopology(machine))
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if c.Options() != want {
				t.Errorf("%s: %+v, want %+v", text, c.Options(), want)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Collectives within a replica, on Dups too, have the options that the environment overrides.
func TestEnvironmentWithinReplica(t *testing.T) {
	t.Setenv("GCL_OPTIONS", `{"ipusPerRank": 2, "method": "clockwise_ring", "collectiveImplementation": "Syncless"}`)
	alone(t, func(ctx context.Context, c *gcl.Comm) error {
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		for _, c := range []*gcl.Comm{c, withOptions(c, gcl.Options{}), dup,
			withOptions(dup, gcl.Options{IPUsPerRank: 4})} {
			rows, err := gcl.AllReduceWithinReplica(ctx, c, [][]int32{{1}, {2}, {3}, {4}}, gcl.Add)
			if err != nil {
				return err
			}
			if text := fmt.Sprint(rows); text != "[[4] [6] [4] [6]]" {
				return fmt.Errorf("rows %s", text)
			}
		}
		return dup.Close()
	})
}

func TestEnvironmentErrors(t *testing.T) {
	for text, want := range map[string]string{
		"method=broadcast": "gcl: environment variable GCL_OPTIONS: options: want one JSON object",
		"null":             "gcl: environment variable GCL_OPTIONS: options: want one JSON object",
		`{"method":"broadcast"`: "gcl: environment variable GCL_OPTIONS: options: after byte 21 of 21: the text " +
			"ends inside the object: want one JSON object",
		`{"method":"broad`: "gcl: environment variable GCL_OPTIONS: options: after byte 10 of 16: the text " +
			"ends inside the object: want one JSON object",
		`{method:"broadcast"}`: "gcl: environment variable GCL_OPTIONS: options: after byte 1 of 20: invalid " +
			"character 'm': want one JSON object",
		`{"method":null}`: "gcl: option method=null in the environment variable GCL_OPTIONS: want a string",
		`{"metod":"broadcast"}`: "gcl: option metod=broadcast in the environment variable GCL_OPTIONS: no such " +
			"option, the closest is method",
		`{"method":"broadcats"}`: "gcl: option method=broadcats in the environment variable GCL_OPTIONS: no such " +
			"value, the closest is broadcast",
	} {
		t.Setenv("GCL_OPTIONS", text)
		_, endpoints := counted(t, 1)
		_, err1 := gcl.New(endpoints[0])
		err2 := gcl.Run(t.Context(), 1, func(context.Context, *gcl.Comm) error {
			t.Errorf("%s: the body runs", text)
			return nil
		})
		for _, err := range []error{err1, err2} {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		}
	}
}

// An override that does not go with the group is an error that names the variable. What the program itself says wrong
// does not.
func TestEnvironmentDoesNotFit(t *testing.T) {
	run := func(o gcl.Options, body func(context.Context, *gcl.Comm) error, hostSizes ...int) error {
		n := 0
		for _, size := range hostSizes {
			n += size
		}
		return gcl.Run(t.Context(), n, body, gcl.WithTopology(hosts(t, hostSizes...)), gcl.WithOptions(o))
	}
	for _, x := range []struct {
		text, option string
		given        gcl.Options
		hosts        []int
		environment  bool
	}{
		{`{"link": "ipu-link"}`, "Link=ipu-link", gcl.Options{}, []int{1, 1}, true},
		{`{"link": "gw-link"}`, "Link=gw-link", gcl.Options{Link: gcl.IPULink}, []int{2}, true},
		{`{"topology": "rung-ring-2"}`, "Topology=rung-ring-2", gcl.Options{}, []int{2}, true},
		{`{"collectiveImplementation": "hybrid"}`, "Implementation=Hybrid", gcl.Options{}, []int{1, 2}, true},
		{`{"useSynclessCollectives": "hybrid"}`, "Implementation=Hybrid", gcl.Options{}, []int{1, 2}, true},
		{`{"method": "direct", "topology": "auto"}`, "Link=gw-link", gcl.Options{Link: gcl.GWLink}, []int{2}, false},
		{`{"link": "auto-link"}`, "Topology=rung-ring-2", gcl.Options{Topology: topology.RungRing2}, []int{2}, false},
		{`{}`, "Implementation=Hybrid", gcl.Options{Implementation: gcl.Hybrid}, []int{1, 2}, false},
	} {
		t.Setenv("GCL_OPTIONS", x.text)
		err := run(x.given, func(context.Context, *gcl.Comm) error { return nil }, x.hosts...)
		want := "gcl: option " + x.option
		if x.environment {
			want += " in the environment variable GCL_OPTIONS"
		}
		var option *gcl.OptionError
		if !errors.As(err, &option) || !strings.HasPrefix(err.Error(), want+": ") || len(option.Reason) < 10 {
			t.Errorf("%s on %+v: %v, want %s", x.text, x.given, err, want)
		}
	}

	t.Setenv("GCL_OPTIONS", `{"link": "ipu-link"}`)
	err := run(gcl.Options{Link: gcl.GWLink}, func(ctx context.Context, c *gcl.Comm) error {
		return goodCall(ctx, withOptions(c, gcl.Options{Link: gcl.GWLink}))
	}, 2)
	if err != nil {
		t.Errorf("an override that fits in place of what does not: %v", err)
	}
	t.Setenv("GCL_OPTIONS", `{"collectiveImplementation": "Hybrid"}`)
	err = run(gcl.Options{}, func(_ context.Context, c *gcl.Comm) error {
		_, err := c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 3}) // 0 1 and 2 in two domains; 3 and 4 5
		if err == nil || !strings.HasPrefix(err.Error(), "gcl: option Implementation=Hybrid in the environment "+
			"variable GCL_OPTIONS: ") {
			return fmt.Errorf("Group: %v", err)
		}
		return nil
	}, 2, 2, 2)
	if err != nil {
		t.Error(err)
	}
}
