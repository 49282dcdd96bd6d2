package spawn

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestEnvironment: the variables of other launchers are gone, and everything else is kept.
func TestEnvironment(t *testing.T) {
	base := []string{"PATH=/bin", "OMPI=kept", "RANKS=kept"}
	outer := slices.Clone(base)
	for _, name := range append([]string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_SIZE", "SLURM_PROCID",
		"TORCHELASTIC_RUN_ID"}, replaced...) {
		outer = append(outer, name+"=outer")
	}
	e, err := NewEnvironment(outer, 3, "unix")
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 3 {
		got := e.Replica(rank)
		want := []string{"GCL_TRANSPORT=unix", fmt.Sprintf("RANK=%d", rank), "WORLD_SIZE=3",
			fmt.Sprintf("LOCAL_RANK=%d", rank), "LOCAL_WORLD_SIZE=3"}
		for _, entry := range append(want, base...) {
			if !slices.Contains(got, entry) {
				t.Errorf("replica %d: no %s in %q", rank, entry, got)
			}
		}
		for _, entry := range got {
			if strings.HasSuffix(entry, "=outer") {
				t.Errorf("replica %d: %s is that of the launcher around", rank, entry)
			}
		}
	}
}

// TestEnded: the end of a process in words.
func TestEnded(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	for script, want := range map[string]string{
		"exit 0":        "0 ended with exit code 0",
		"exit 7":        "7 ended with exit code 7",
		"kill -9 $$":    "137 was ended by signal 9 (killed)",
		"kill -TERM $$": "143 was ended by signal 15 (terminated)",
	} {
		cmd := exec.Command("sh", "-c", script)
		cmd.SysProcAttr = Own()
		_ = cmd.Run() // the state says it
		end := Ended(cmd.ProcessState)
		if got := fmt.Sprint(end.Code, " ", end); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
}

// TestRendezvous listens where a job would meet.
func TestRendezvous(t *testing.T) {
	at, err := rendezvous()
	if err != nil {
		t.Fatal(err)
	}
	network, address, form := "tcp", at, `^127\.0\.0\.1:\d+$`
	if runtime.GOOS == "linux" {
		network, address = "unix", strings.TrimPrefix(at, "unix:")
		form = fmt.Sprintf(`^unix:@gclrun-%d-[0-9a-f]{16}$`, os.Getuid())
	}
	if !regexp.MustCompile(form).MatchString(at) {
		t.Errorf("rendezvous %s, want %s", at, form)
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
