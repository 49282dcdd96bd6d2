package measure

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"gogcl.dev/internal/machine"
)

// Origin says where and how a measurement was made.
type Origin struct {
	Version    string `json:"version"` // of the program's module, or the revision that it was built from, or devel
	Date       string `json:"date"`    // when the program began, RFC 3339, UTC
	Machine    string `json:"machine"` // the processor's name, system and architecture, of the host of replica 0
	Cores      int    `json:"cores"`   // that the process of replica 0 may use
	GOMAXPROCS int    `json:"gomaxprocs"`
	Settings   string `json:"settings"` // what no other field has, as flags and GCL_OPTIONS
}

// NewOrigin is where and how this process measures. settings are flags, to which GCL_OPTIONS is added.
func NewOrigin(settings string, now time.Time) Origin {
	build, _ := debug.ReadBuildInfo() // nil without modules
	if text := Overrides(); text != "" {
		settings += " GCL_OPTIONS=" + text
	}
	return Origin{
		Version: version(build), Date: now.UTC().Format(time.RFC3339), Machine: machine.Processor(),
		Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Settings: strings.TrimSpace(settings),
	}
}

// version is the version of the module, else the revision, else devel.
func version(build *debug.BuildInfo) string {
	if build == nil {
		return "devel"
	}
	if v := build.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, modified := "devel", ""
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+dirty"
		}
	}
	return revision + modified
}

// Overrides is GCL_OPTIONS in one line.
func Overrides() string { return strings.Join(strings.Fields(os.Getenv("GCL_OPTIONS")), " ") }
