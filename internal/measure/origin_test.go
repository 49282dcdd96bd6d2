package measure

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
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
	at := time.Date(2026, 11, 23, 4, 0, 0, 0, time.FixedZone("", 3600))
	got := NewOrigin("-c 2", at)
	const settings = `-c 2 GCL_OPTIONS={"method": "auto"}`
	if got.Date != "2026-11-23T03:00:00Z" || got.Settings != settings || got.Cores != runtime.NumCPU() ||
		got.GOMAXPROCS != runtime.GOMAXPROCS(0) || got.Version == "" {
		t.Errorf("%+v", got)
	}
}
