package gcl

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/methods"
)

// TestCompareTerms: what replicas do not have alike is named, and where it comes from.
func TestCompareTerms(t *testing.T) {
	plain := terms{Version: "v1", Options: map[string]term{}}
	for _, test := range []struct {
		name  string
		other terms
		want  string
	}{
		{"nothing", terms{Version: "v1"}, ""},
		{"version", terms{Version: "v2"}, "replica 2 has version v2 of gogcl.dev, replica 0 version v1"},
		{"program", terms{Version: "v1", Options: map[string]term{"method": {Value: "direct"}}},
			"the options: method differs: it is the default on replica 0, and direct on replica 2"},
		{"environment", terms{Version: "v1", Options: map[string]term{"method": {"direct", true}}},
			"GCL_OPTIONS: method differs: it is the default on replica 0, and direct on replica 2"},
		{"set in another way", terms{Version: "v1", Options: map[string]term{"method": {"", true}}}, ""},
	} {
		var blobs [][]byte
		for _, each := range []terms{plain, plain, test.other} {
			b, err := json.Marshal(each)
			if err != nil {
				t.Fatal(err)
			}
			blobs = append(blobs, b)
		}
		err := compareTerms(blobs, replicaWord)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	if err := compareTerms([][]byte{[]byte("{}"), []byte("nonsense")}, newcomerWord); err == nil ||
		!strings.Contains(err.Error(), "the newcomer does not say") {
		t.Errorf("of no terms: %v", err)
	}
}

// TestNewTerms: options of the program and of the environment are compared. Those that say what a machine is are not.
func TestNewTerms(t *testing.T) {
	c := &config{
		options:  Options{Method: methods.Direct, CacheBytes: 1 << 20, PrivateAlloc: true},
		elastic:  &Elastic{Min: 1, Max: 9},
		override: overrides{text: map[string]string{"reproducible": "true"}},
	}
	got, err := newTerms(c)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]term{
		"method": {"direct", false}, "reproducible": {"true", true}, "cacheBytes": {},
		"sharedAlloc": {}, "Max of WithElastic": {"9", false},
	} {
		if got.Options[key] != want {
			t.Errorf("%s is %+v, want %+v", key, got.Options[key], want)
		}
	}
}

// TestResolve: what the program says goes before the environment, which fills in the rest.
func TestResolve(t *testing.T) {
	env := map[string]string{
		"GCL_JOB": "env", "GCL_SECRET": "secret of env", "GCL_PORTS": "6000-6009", "GCL_TRANSPORT": "tcp",
		"GCL_RENDEZVOUS": "dir:/env",
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	open := JoinConfig{Rank: 1, Size: 2}
	said := JoinConfig{
		Rank: 1, Size: 2, Job: "own", Secret: []byte("own"), Ports: [2]int{7000, 7009}, Transport: "unix",
		Rendezvous: "dir:/own",
	}
	for _, test := range []struct {
		cfg                         JoinConfig
		job, secret, network, where string
		ports                       [2]int
	}{
		{open, "env", "secret of env", "tcp", "dir:/env", [2]int{6000, 6009}},
		{said, "own", "own", "unix", "dir:/own", [2]int{7000, 7009}},
	} {
		job, err := test.cfg.job(lookup)
		if err != nil {
			t.Error(err)
			continue
		}
		c, m, err := test.cfg.resolve(&job, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		got := []any{c.Rank, c.Size, c.Job, string(c.Secret), string(c.Network), m.Where, c.Ports}
		want := []any{1, 2, test.job, test.secret, test.network, test.where, test.ports}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
