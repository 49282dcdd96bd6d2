package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// origin says where and how a measurement was made. Together with the other fields of a line of -json it is enough to
// repeat it.
type origin struct {
	Version    string `json:"version"` // of gclperf: of its module, or the revision that it was built from, or devel
	Date       string `json:"date"`    // when gclperf began, RFC 3339, UTC
	Machine    string `json:"machine"` // the processor's name, system and architecture, of the host of replica 0
	Cores      int    `json:"cores"`   // that the process of replica 0 may use
	GOMAXPROCS int    `json:"gomaxprocs"`
	Settings   string `json:"settings"` // what no other field has, as flags and GCL_OPTIONS
}

func newOrigin(s *settings, now time.Time) origin {
	build, _ := debug.ReadBuildInfo() // nil without modules
	return origin{
		Version: version(build), Date: now.UTC().Format(time.RFC3339), Machine: machine(os.DirFS("/")),
		Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Settings: s.String(),
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

// machine is the name of the processor, which only Linux on some architectures tells, and what programs are built for.
func machine(root fs.FS) string {
	system := runtime.GOOS + "/" + runtime.GOARCH
	text, _ := fs.ReadFile(root, "proc/cpuinfo") // nothing: not known
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.Join(strings.Fields(value), " ") + " " + system
		}
	}
	return system
}

// String is the settings that a measurement has no field for, as they are given.
func (s *settings) String() string {
	var out []string
	if s.iters > 0 {
		out = append(out, fmt.Sprint("-iters ", s.iters))
	} else {
		out = append(out, fmt.Sprint("-time ", s.time))
	}
	if s.warm >= 0 {
		out = append(out, fmt.Sprint("-w ", s.warm))
	}
	out = append(out, fmt.Sprint("-c ", s.tries))
	for _, f := range []struct {
		name string
		set  bool
	}{{"-sync", s.sync}, {"-batch", s.batch}, {"-reproducible", s.reproducible}} {
		if f.set {
			out = append(out, f.name)
		}
	}
	if text := overrides(); text != "" {
		out = append(out, "GCL_OPTIONS="+text)
	}
	return strings.Join(out, " ")
}

// overrides is GCL_OPTIONS in one line.
func overrides() string { return strings.Join(strings.Fields(os.Getenv("GCL_OPTIONS")), " ") }
