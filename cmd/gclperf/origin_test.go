package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"
	"time"

	"gogcl.dev/methods"
)

func TestVersion(t *testing.T) {
	for _, x := range []struct {
		version            string
		revision, modified string
		want               string
	}{
		{"v0.2.0", "", "", "v0.2.0"},
		{"(devel)", "", "", "devel"},
		{"(devel)", "0123456789abcdef", "false", "0123456789ab"},
		{"", "0123456789abcdef", "true", "0123456789ab+dirty"},
	} {
		build := &debug.BuildInfo{Main: debug.Module{Version: x.version}}
		if x.revision != "" {
			build.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: x.revision},
				{Key: "vcs.modified", Value: x.modified}}
		}
		if got := version(build); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
	if got := version(nil); got != "devel" {
		t.Errorf("without modules: %s", got)
	}
}

func TestOrigin(t *testing.T) {
	t.Setenv("GCL_OPTIONS", "{\"method\":\n \"auto\"}")
	s := &settings{methods: []methods.Method{methods.Auto}, time: 20 * time.Millisecond, warm: 5, tries: 2, sync: true,
		reproducible: true}
	at := time.Date(2026, 11, 23, 4, 0, 0, 0, time.FixedZone("", 3600))
	got := newOrigin(s, at)
	const settings = `-time 20ms -w 5 -c 2 -sync -reproducible GCL_OPTIONS={"method": "auto"}`
	if got.Date != "2026-11-23T03:00:00Z" || got.Settings != settings || got.Cores != runtime.NumCPU() ||
		got.GOMAXPROCS != runtime.GOMAXPROCS(0) || got.Version == "" {
		t.Errorf("%+v", got)
	}
	system := runtime.GOOS + "/" + runtime.GOARCH
	cpuinfo := "processor\t: 0\nmodel name\t: Some   CPU @ 3 GHz\nprocessor\t: 1\nmodel name\t: other\n"
	if got := machine(fstest.MapFS{"proc/cpuinfo": {Data: []byte(cpuinfo)}}); got != "Some CPU @ 3 GHz "+system {
		t.Error(got)
	}
	if got := machine(fstest.MapFS{}); got != system {
		t.Error(got)
	}
}

// TestLoad is two programs beside this one, on three processors.
func TestLoad(t *testing.T) {
	at := func(user, idle, steal, own string) cpuTimes {
		return readTimes(fstest.MapFS{
			"proc/stat": {Data: []byte("cpu  " + user + " 10 20 " + idle + " 5 0 0 " + steal + " 7 0\n" +
				"cpu0 1\ncpu1 1\ncpu2 1\nintr 5\n")},
			"proc/self/stat": {Data: []byte("77 (a) b) R 1 1 1 0 -1 4194304 0 0 0 0 " + own + " 9 0 0 20 0 1 0 5 0\n")},
		})
	}
	before, after := at("100", "1000", "0", "50"), at("350", "1040", "10", "150")
	if got := loadOf(before, after, after.own-before.own); got != 1.6 { // 260 busy of 300, 100 our own, in 100 of time
		t.Errorf("%v, want 1.6: %+v, %+v", got, before, after)
	}
	if got := loadOf(before, after, 1000); got != 0 {
		t.Errorf("%v, want 0", got)
	}
	unknown := readTimes(fstest.MapFS{})
	for _, pair := range [][2]cpuTimes{{unknown, after}, {before, unknown}, {after, after}} {
		if got := loadOf(pair[0], pair[1], 0); got != -1 {
			t.Errorf("%+v: %v, want -1", pair, got)
		}
	}
	for _, self := range []string{"", "77 (a) R 1 2", "77 (a) R 1 1 1 0 -1 4194304 0 0 0 0 x 9 0 0"} {
		if got := readTimes(fstest.MapFS{"proc/stat": {Data: []byte("cpu 1 1 1 1 1 1 1 1\ncpu0 1\n")},
			"proc/self/stat": {Data: []byte(self)}}); got.known {
			t.Errorf("%q: %+v", self, got)
		}
	}
}
