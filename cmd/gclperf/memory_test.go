package main

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// parsedFlags are the settings of a command line.
func parsedFlags(t *testing.T, args string) *settings {
	t.Helper()
	s, err := read(strings.Fields(args)).settings(0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTooLarge: what no machine has memory for is refused before anything is allocated or printed, like wrong flags.
func TestTooLarge(t *testing.T) {
	for _, args := range []string{"-sizes 1048576G",
		"-sizes 8,1048576G -json", "-n 512 -max 4096G -csv", "-collective all -sizes 8589934591G"} {
		if math.MaxInt == math.MaxInt32 {
			args = strings.NewReplacer("1048576G", "2047M",
				"4096G", "2047M", "8589934591G", "2047M").Replace(args) + " -n 1000"
		}
		var out, errs safeBuffer
		code := run(t.Context(), strings.Fields(args), &out, &errs)
		if text := errs.String(); code != exitUsage || out.String() != "" || strings.Count(text, "\n") != 1 ||
			!strings.Contains(text, " of memory, and ") ||
			!strings.Contains(text, "want a smaller -max or -sizes, or a smaller -n") {
			t.Errorf("%s: exit code %d, %q, %q", args, code, text, out.String())
		}
	}
}

// TestAddresses: there is never more memory than a process has addresses.
func TestAddresses(t *testing.T) {
	if bytes, source, known := available(); known && (bytes > addressBytes || source == "") {
		t.Errorf("%s are available (%s), of %s of addresses", formatBytes(bytes), source, formatBytes(addressBytes))
	}
	if math.MaxInt > math.MaxInt32 {
		return
	}
	var out, errs safeBuffer
	if code := run(t.Context(), []string{"-sizes", "1G"}, &out, &errs); code != exitUsage ||
		!strings.Contains(errs.String(), " need 4.") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
}

// TestMemoryTexts: the error says what is needed, for what, what there is, and by whom.
func TestMemoryTexts(t *testing.T) {
	const gib = 1 << 30
	for _, x := range []struct {
		args      string
		available float64
		want      string // "": enough
	}{
		{"-sizes 64K", gib, ""},
		{"-sizes 1G", 6 * gib, ""},
		{"-sizes 1G", 2 * gib, "2 replicas with two buffers of 1 GiB each need 4.05 GiB of memory, and 2 GiB are " +
			"available (says the test): " +
			"want a smaller -max or -sizes, or a smaller -n"},
		{"-max 64M -n 8", gib, "8 replicas with two buffers of 66 MiB each need 1.06 GiB of memory, and 1 GiB are " +
			"available (says the test): " +
			"want a smaller -max or -sizes, or a smaller -n"},
		{"-sizes 64M -n 8", 1.2 * gib, ""},
		{"-sizes 64M -n 8 -implementation syncful -method direct,auto", 1.2 * gib, ""},
		{"-sizes 64M -n 8 -method broadcast", 1.2 * gib, "8 replicas with two buffers of 66 MiB each need 2.19 GiB " +
			"of memory, of which the methods keep 1.12 GiB, " +
			"and 1.2 GiB are available (says the test): want a smaller -max or -sizes, or a smaller -n"},
		{"-sizes 64M -n 8 -method broadcast", 2.2 * gib, ""},
	} {
		s := parsedFlags(t, x.args)
		err := s.checkMemory(t.Context(), s.n, x.available, "says the test", true)
		if err == nil != (x.want == "") || err != nil && err.Error() != x.want {
			t.Errorf("%s in %s: %v, want %q", x.args, formatBytes(x.available), err, x.want)
		}
	}
	err := parsedFlags(t, "-sizes 1G -n 1024").checkMemory(t.Context(), 1024, 0, "", false)
	if enough := math.MaxInt > math.MaxInt32; err == nil != enough {
		t.Errorf("where nobody knows how much there is: %v", err)
	}
}

// TestProcessMemory: a host has to have memory for the replicas that are on it, and there is no peer memory, so methods
// keep slots.
func TestProcessMemory(t *testing.T) {
	const gib = 1 << 30
	for _, x := range []struct {
		local     int
		available float64
		want      string // "": enough
	}{
		{4, 9 * gib, "4 replicas with two buffers of 1 GiB each need 17.2 GiB of memory, of which the methods keep 9 GiB, " +
			"and 9 GiB are available (says the test): want a smaller -max or -sizes, or a smaller -n"},
		{4, 18 * gib, ""},
		{1, 3 * gib, "1 replicas with two buffers of 1 GiB each need 4.29 GiB of memory, of which the methods keep 2.25 GiB, " +
			"and 3 GiB are available (says the test): want a smaller -max or -sizes, or a smaller -n"},
		{1, 5 * gib, ""},
	} {
		s := parsedFlags(t, "-transport tcp -n 4 -sizes 1G -method recursive_doubling")
		err := s.checkMemory(t.Context(), x.local, x.available, "says the test", true)
		if err == nil != (x.want == "") || err != nil && err.Error() != x.want {
			t.Errorf("%d replicas in %s: %v, want %q", x.local, formatBytes(x.available), err, x.want)
		}
	}
}

// TestMethodMemory counts slots and copies, by hand what they are by the methods' drawings.
func TestMethodMemory(t *testing.T) {
	const size = 1 << 20
	for _, x := range []struct {
		args        string
		environment string
		want        float64 // times the size, on all replicas
	}{
		{"-n 1 -implementation syncless", "", 0},
		{"-n 4", "", 0},
		{"-n 4 -implementation hybrid -method direct", "", 0},
		// a slot each, into which one after the other is folded
		{"-n 4 -method broadcast", "", 4},
		{"-n 4 -method recursive_doubling", "", 4},                               // a slot each
		{"-n 4 -method recursive_doubling -implementation syncful", "", 4},       // as well
		{"-n 4 -method recursive_doubling -op square_add", "", 4 + 8},            // and squares, and results
		{"-n 4 -method clockwise_ring -dtype float32 -reproducible", "", 0},      // folded on the way
		{"-n 4 -method direct,recursive_doubling,clockwise_ring", "", 4},         // the most of them
		{"-n 4", `{"method": "recursive_doubling"}`, 4},                          // the environment's
		{"-n 4 -method broadcast", `{"method": "auto"}`, 0},                      // the environment's
		{"-n 4", `{"tuning": "\nall-reduce 4 0 broadcast/Syncless"}`, 4},         // the rule's
		{"-n 4", `{"tuning": "\nall-reduce 4 0 direct"}`, 0},                     // one pass
		{"-n 3", `{"tuning": "\nall-reduce 3 0 swing/Syncless"}`, 0},             // which does not do it
		{"-n 4", `{"syncful.useOptimisedLayout": "false"}`, 8},                   // copies
		{"-n 4 -collective allgather -method clockwise_ring", "", 0},             // in place
		{"-n 4 -collective broadcast,allgather,allreduce -method direct", "", 0}, // one pass
	} {
		t.Setenv("GCL_OPTIONS", x.environment)
		s := parsedFlags(t, x.args)
		got := 0.0
		for _, coll := range s.collectives {
			n, err := s.countMethods(t.Context(), coll, size)
			if err != nil {
				t.Fatal(err)
			}
			got = max(got, n)
		}
		if got /= growth * size; math.Abs(got-x.want) > 1e-9 {
			t.Errorf("%s %s: %v times the size, want %v", x.args, x.environment, got, x.want)
		}
		if bound := s.boundMethods(demand{largest: size}); got*growth*size > bound {
			t.Errorf("%s %s: %v, more than the bound, %v", x.args, x.environment, got*growth*size, bound)
		}
	}
}

// No method takes more than the bound.
func TestMethodMemoryIsBounded(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8, 16} {
		for _, m := range methods.All() {
			for i := range schedule.Collectives() {
				coll := collective(i)
				for _, reproducible := range []bool{false, true} {
					s := &settings{n: n, methods: []methods.Method{m},
						implementations: []gcl.Implementation{gcl.Syncless}, reproducible: reproducible}
					got, err := s.countMethods(t.Context(), coll, 1<<20)
					if bound := s.boundMethods(demand{largest: 1 << 20}); err != nil || got > bound {
						t.Errorf("n=%d %v %v: %v, more than %v; %v", n, m, coll, got, bound, err)
					}
				}
			}
		}
	}
}

// TestAvailable reads what Linux has in its files: the least of what the machine and all groups leave.
func TestAvailable(t *testing.T) {
	const meminfo = "MemTotal:       24683660 kB\nMemFree:        22298224 kB\nMemAvailable:       1000 kB\n"
	for _, x := range []struct {
		name   string
		files  map[string]string
		bytes  float64
		source string // "": not known
	}{
		{"nothing", nil, 0, ""},
		{"no cgroups", map[string]string{"proc/meminfo": meminfo}, 1024000, "MemAvailable in /proc/meminfo"},
		{"nonsense", map[string]string{"proc/meminfo": "MemAvailable: much kB", "proc/self/cgroup": "x\n1:2\n0::relative\n"}, 0, ""},
		{"version 2", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.current": "77\n",
			"sys/fs/cgroup/a/memory.max": "500000\n", "sys/fs/cgroup/a/memory.current": "300000\n",
			"sys/fs/cgroup/a/memory.stat": "anon 5\ninactive_file 100000\n",
		}, 300000, "limit of memory in /sys/fs/cgroup/a/memory.max"},
		{"version 2, used up", map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "500000\n",
			"sys/fs/cgroup/memory.current": "600000\n",
		}, 0, "limit of memory in /sys/fs/cgroup/memory.max"},
		{"version 2, more than the machine", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "5000000\n", "sys/fs/cgroup/memory.current": "60\n",
		}, 1024000, "MemAvailable in /proc/meminfo"},
		{"version 1", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "9:name=systemd:/\n4:memory:/box/one\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":         "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes":         "1\n",
			"sys/fs/cgroup/memory/box/one/memory.limit_in_bytes": "90000\n",
			"sys/fs/cgroup/memory/box/one/memory.usage_in_bytes": "50000\n",
			"sys/fs/cgroup/memory/box/one/memory.stat":           "inactive_file 1\ntotal_inactive_file 10000\n",
		}, 50000, "limit of memory in /sys/fs/cgroup/memory/box/one/memory.limit_in_bytes"},
		{"version 1, a path of the host in a container", map[string]string{
			"proc/self/cgroup":                           "4:cpu,memory:/host/path\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "90000\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "50000\n",
		}, 40000, "limit of memory in /sys/fs/cgroup/memory/memory.limit_in_bytes"},
	} {
		root := fstest.MapFS{}
		for name, text := range x.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		bytes, source, known := availableIn(root)
		if known != (x.source != "") || known && (bytes != x.bytes || source != x.source) {
			t.Errorf("%s: %v by %q, want %v by %q", x.name, bytes, source, x.bytes, x.source)
		}
	}
}
