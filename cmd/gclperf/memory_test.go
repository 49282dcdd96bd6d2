package main

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// TestTooLarge: what no machine has memory for is refused before anything is allocated or printed, like wrong flags.
func TestTooLarge(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nobody is asked for memory there")
	}
	for _, args := range []string{"-sizes 1048576G", "-sizes 1048576G -transport tcp",
		"-sizes 8,1048576G -json", "-n 512 -max 4096G -csv", "-collective all -sizes 8589934591G"} {
		if math.MaxInt == math.MaxInt32 {
			args = strings.NewReplacer("1048576G", "2047M", "4096G", "2047M", "8589934591G", "2047M").Replace(args)
		}
		got := perform(t, t.Context(), nil, strings.Fields(args)...)
		if got.code != command.Usage || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 ||
			!strings.HasPrefix(got.stderr, "gclperf: two buffers of ") ||
			!strings.Contains(got.stderr, " replicas on this host: mmap: cannot allocate memory; want a smaller -max or ") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestLimitOfMemory: a limit of the shell's is as good as one of the machine.
func TestLimitOfMemory(t *testing.T) {
	if runtime.GOOS != "linux" || math.MaxInt == math.MaxInt32 {
		t.Skip("not every system limits what a process may have")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -v 8000000 && exec "$0" "$@"`, self, "-sizes", "3G")
	c.Env = append(os.Environ(), asGclperf+"=")
	text, _ := c.CombinedOutput() // the state says it
	want := "gclperf: two buffers of 3 GiB for each of 2 replicas on this host: mmap: cannot allocate memory; want a " +
		"smaller -max or -sizes, or a smaller -n\n"
	if c.ProcessState.ExitCode() != command.Usage || string(text) != want {
		t.Errorf("%v: %s, want %s", c.ProcessState, text, want)
	}
}
